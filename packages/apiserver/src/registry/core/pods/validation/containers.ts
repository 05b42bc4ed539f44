import type { FieldError } from "@coxswain/apimachinery/errors/field-error";
import {
  duplicate,
  fieldNotFound,
  forbiddenField,
  invalidValue,
  notSupported,
  required,
} from "@coxswain/apimachinery/errors/field-error";
import { child, index } from "@coxswain/apimachinery/errors/field-path";
import type {
  Container,
  ContainerPort,
  EnvFromSource,
  EnvVar,
  EphemeralContainer,
  PodSpec,
  Volume,
  VolumeDevice,
  VolumeMount,
} from "@coxswain/apimachinery/schema/kinds/core/v1";
import { dns1123Label, isEnvVarName, isPortName, isValidPort, oneOf } from "../../../field-checks.ts";
import type { PodValidationOptions } from "./options.ts";
import { validateLifecycleHandler, validateLivenessProbe, validateReadinessProbe } from "./probes.ts";
import { validateResourceRequirements } from "./resources.ts";
import { validateSecurityContext } from "./security-context.ts";
import { checkFieldRef, checkResourceFieldRef, localDescendingPath } from "./volumes.ts";

type ContainerLike = Omit<Container, "name"> & { name: string };

/** Source: pkg/apis/core/validation validateContainers */
export function validateContainers(
  spec: PodSpec,
  volumes: ReadonlyMap<string, Volume>,
  path: string,
  options: PodValidationOptions,
): FieldError[] {
  const containers = spec.containers ?? [];
  const at = child(path, "containers");
  if (containers.length === 0) return [required(at)];
  const errors: FieldError[] = [];
  const names = new Set<string>();
  for (const [i, container] of containers.entries()) {
    const own = index(at, i);
    errors.push(...validateContainer(container, volumes, own, options));
    if (container.name && names.has(container.name)) errors.push(duplicate(child(own, "name"), container.name));
    names.add(container.name);
    for (const [field, handler] of [
      ["postStart", container.lifecycle?.postStart],
      ["preStop", container.lifecycle?.preStop],
    ] as const) {
      if (handler) errors.push(...validateLifecycleHandler(handler, child(own, "lifecycle", field)));
    }
    errors.push(...validateLivenessProbe(container.livenessProbe, child(own, "livenessProbe")));
    errors.push(...validateReadinessProbe(container.readinessProbe, child(own, "readinessProbe")));
    errors.push(...validateLivenessProbe(container.startupProbe, child(own, "startupProbe")));
  }
  errors.push(...hostPortConflicts(containers, at));
  return errors;
}

/** Run one after the other before the others: nothing here that only makes sense for what keeps running. */
export function validateInitContainers(
  spec: PodSpec,
  volumes: ReadonlyMap<string, Volume>,
  path: string,
  options: PodValidationOptions,
): FieldError[] {
  const at = child(path, "initContainers");
  const errors: FieldError[] = [];
  const names = new Set((spec.containers ?? []).map((container) => container.name));
  for (const [i, container] of (spec.initContainers ?? []).entries()) {
    const own = index(at, i);
    errors.push(...validateContainer(container, volumes, own, options));
    if (container.name && names.has(container.name)) errors.push(duplicate(child(own, "name"), container.name));
    names.add(container.name);
    errors.push(...hostPortConflicts([container], at));
    for (const field of ["lifecycle", "livenessProbe", "readinessProbe", "startupProbe"] as const) {
      const value = container[field];
      if (value) errors.push(invalidValue(child(own, field), value, "must not be set for init containers"));
    }
  }
  return errors;
}

const allowedForEphemeral = new Set([
  "name",
  "image",
  "command",
  "args",
  "workingDir",
  "env",
  "envFrom",
  "volumeMounts",
  "terminationMessagePath",
  "terminationMessagePolicy",
  "imagePullPolicy",
  "securityContext",
  "stdin",
  "stdinOnce",
  "tty",
  "targetContainerName",
]);

/** Source: pkg/apis/core/validation validateEphemeralContainers */
export function validateEphemeralContainers(
  spec: PodSpec,
  volumes: ReadonlyMap<string, Volume>,
  path: string,
  options: PodValidationOptions,
): FieldError[] {
  const errors: FieldError[] = [];
  const at = child(path, "ephemeralContainers");
  const taken = new Set([...(spec.containers ?? []), ...(spec.initContainers ?? [])].map((container) => container.name));
  const others = new Set(taken);
  for (const [i, container] of (spec.ephemeralContainers ?? []).entries()) {
    const own = index(at, i);
    errors.push(...validateContainer(container as ContainerLike, volumes, own, options));
    if (container.name && taken.has(container.name)) errors.push(duplicate(child(own, "name"), container.name));
    taken.add(container.name);
    if (container.targetContainerName && !others.has(container.targetContainerName)) {
      errors.push(fieldNotFound(child(own, "targetContainerName"), container.targetContainerName));
    }
    for (const [field, value] of Object.entries(container as EphemeralContainer)) {
      if (allowedForEphemeral.has(field) || isEmpty(value)) continue;
      errors.push(forbiddenField(child(own, field), "cannot be set for an Ephemeral Container"));
    }
    for (const [j, mount] of (container.volumeMounts ?? []).entries()) {
      if (mount.subPath)
        errors.push(
          forbiddenField(child(index(child(own, "volumeMounts"), j), "subPath"), "cannot be set for an Ephemeral Container"),
        );
      if (mount.subPathExpr) {
        errors.push(
          forbiddenField(child(index(child(own, "volumeMounts"), j), "subPathExpr"), "cannot be set for an Ephemeral Container"),
        );
      }
    }
  }
  return errors;
}

function isEmpty(value: unknown): boolean {
  return value === undefined || value === null || (typeof value === "object" && Object.keys(value as object).length === 0);
}

function validateContainer(
  container: ContainerLike,
  volumes: ReadonlyMap<string, Volume>,
  path: string,
  options: PodValidationOptions,
): FieldError[] {
  const errors: FieldError[] = [];
  if (!container.name) errors.push(required(child(path, "name"), ""));
  else errors.push(...dns1123Label(container.name, child(path, "name")));
  const image = container.image ?? "";
  if (image === "") errors.push(required(child(path, "image"), ""));
  else if (image !== image.trim())
    errors.push(invalidValue(child(path, "image"), image, "must not have leading or trailing whitespace"));
  const policy: string = container.terminationMessagePolicy ?? "";
  if (policy === "") errors.push(required(child(path, "terminationMessagePolicy"), "must be 'File' or 'FallbackToLogsOnError'"));
  else if (policy !== "File" && policy !== "FallbackToLogsOnError") {
    errors.push(invalidValue(child(path, "terminationMessagePolicy"), policy, "must be 'File' or 'FallbackToLogsOnError'"));
  }
  const mounts = container.volumeMounts ?? [];
  const devices = container.volumeDevices ?? [];
  errors.push(...validatePorts(container.ports ?? [], child(path, "ports")));
  errors.push(...validateEnv(container.env ?? [], child(path, "env")));
  errors.push(...validateEnvFrom(container.envFrom ?? [], child(path, "envFrom")));
  errors.push(...validateMounts(mounts, devices, volumes, child(path, "volumeMounts")));
  errors.push(...validateDevices(devices, mounts, volumes, child(path, "volumeDevices")));
  errors.push(...oneOf(container.imagePullPolicy, ["Always", "IfNotPresent", "Never"], child(path, "imagePullPolicy")));
  errors.push(...validateResourceRequirements(container.resources, child(path, "resources")));
  errors.push(...validateSecurityContext(container.securityContext, child(path, "securityContext"), options));
  return errors;
}

function validatePorts(ports: readonly ContainerPort[], path: string): FieldError[] {
  const errors: FieldError[] = [];
  const names = new Set<string>();
  for (const [i, port] of ports.entries()) {
    const at = index(path, i);
    if (port.name) {
      const messages = isPortName(port.name);
      for (const message of messages) errors.push(invalidValue(child(at, "name"), port.name, message));
      if (messages.length === 0) {
        if (names.has(port.name)) errors.push(duplicate(child(at, "name"), port.name));
        names.add(port.name);
      }
    }
    if (!port.containerPort) errors.push(required(child(at, "containerPort"), ""));
    else
      for (const message of isValidPort(port.containerPort))
        errors.push(invalidValue(child(at, "containerPort"), port.containerPort, message));
    if (port.hostPort) {
      for (const message of isValidPort(port.hostPort)) errors.push(invalidValue(child(at, "hostPort"), port.hostPort, message));
    }
    errors.push(...oneOf(port.protocol, ["TCP", "UDP", "SCTP"], child(at, "protocol")));
  }
  return errors;
}

function hostPortConflicts(containers: readonly Container[], path: string): FieldError[] {
  const errors: FieldError[] = [];
  const taken = new Set<string>();
  for (const [i, container] of containers.entries()) {
    for (const [j, port] of (container.ports ?? []).entries()) {
      if (!port.hostPort) continue;
      const key = `${port.protocol ?? ""}/${port.hostIP ?? ""}/${port.hostPort}`;
      if (taken.has(key)) errors.push(duplicate(child(index(child(index(path, i), "ports"), j), "hostPort"), key));
      taken.add(key);
    }
  }
  return errors;
}

const envFields = [
  "metadata.name",
  "metadata.namespace",
  "metadata.uid",
  "spec.nodeName",
  "spec.serviceAccountName",
  "status.hostIP",
  "status.podIP",
  "status.podIPs",
];

function validateEnv(variables: readonly EnvVar[], path: string): FieldError[] {
  const errors: FieldError[] = [];
  for (const [i, variable] of variables.entries()) {
    const at = index(path, i);
    if (!variable.name) errors.push(required(child(at, "name"), ""));
    else for (const message of isEnvVarName(variable.name)) errors.push(invalidValue(child(at, "name"), variable.name, message));
    errors.push(...validateEnvSource(variable, child(at, "valueFrom")));
  }
  return errors;
}

function validateEnvSource(variable: EnvVar, path: string): FieldError[] {
  const source = variable.valueFrom;
  if (!source) return [];
  const errors: FieldError[] = [];
  let count = 0;
  if (source.fieldRef) {
    count++;
    errors.push(...checkFieldRef(source.fieldRef, envFields, child(path, "fieldRef")));
  }
  if (source.resourceFieldRef) {
    count++;
    errors.push(...checkResourceFieldRef(source.resourceFieldRef, child(path, "resourceFieldRef"), false));
  }
  for (const field of ["configMapKeyRef", "secretKeyRef"] as const) {
    const reference = source[field];
    if (!reference) continue;
    count++;
    if (!reference.name) errors.push(required(child(path, field, "name"), ""));
    if (!reference.key) errors.push(required(child(path, field, "key"), ""));
  }
  if (count === 0)
    errors.push(
      invalidValue(path, "", "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef` or `secretKeyRef`"),
    );
  else if (variable.value) errors.push(invalidValue(path, "", "may not be specified when `value` is not empty"));
  else if (count > 1) errors.push(invalidValue(path, "", "may not have more than one field specified at a time"));
  return errors;
}

function validateEnvFrom(sources: readonly EnvFromSource[], path: string): FieldError[] {
  const errors: FieldError[] = [];
  for (const [i, source] of sources.entries()) {
    const at = index(path, i);
    if (source.prefix)
      for (const message of isEnvVarName(source.prefix)) errors.push(invalidValue(child(at, "prefix"), source.prefix, message));
    let count = 0;
    for (const field of ["configMapRef", "secretRef"] as const) {
      const reference = source[field];
      if (!reference) continue;
      count++;
      if (!reference.name) errors.push(required(child(at, field, "name"), ""));
    }
    if (count === 0) errors.push(invalidValue(path, "", "must specify one of: `configMapRef` or `secretRef`"));
    else if (count > 1) errors.push(invalidValue(path, "", "may not have more than one field specified at a time"));
  }
  return errors;
}

function validateMounts(
  mounts: readonly VolumeMount[],
  devices: readonly VolumeDevice[],
  volumes: ReadonlyMap<string, Volume>,
  path: string,
): FieldError[] {
  const errors: FieldError[] = [];
  const points = new Set<string>();
  const deviceNames = new Set(devices.map((device) => device.name));
  const devicePaths = new Set(devices.map((device) => device.devicePath));
  for (const [i, mount] of mounts.entries()) {
    const at = index(path, i);
    if (!mount.name) errors.push(required(child(at, "name"), ""));
    else if (!volumes.has(mount.name)) errors.push(fieldNotFound(child(at, "name"), mount.name));
    if (!mount.mountPath) errors.push(required(child(at, "mountPath"), ""));
    if (points.has(mount.mountPath)) errors.push(invalidValue(child(at, "mountPath"), mount.mountPath, "must be unique"));
    points.add(mount.mountPath);
    if (deviceNames.has(mount.name))
      errors.push(invalidValue(child(at, "name"), mount.name, "must not already exist in volumeDevices"));
    if (devicePaths.has(mount.mountPath)) {
      errors.push(invalidValue(child(at, "mountPath"), mount.mountPath, "must not already exist as a path in volumeDevices"));
    }
    if (mount.subPath) errors.push(...localDescendingPath(mount.subPath, child(path, "subPath")));
    if (mount.subPathExpr) {
      if (mount.subPath)
        errors.push(
          invalidValue(child(path, "subPathExpr"), mount.subPathExpr, "subPathExpr and subPath are mutually exclusive"),
        );
      errors.push(...localDescendingPath(mount.subPathExpr, child(path, "subPathExpr")));
    }
    const propagation: string | undefined = mount.mountPropagation;
    if (propagation && !["None", "HostToContainer", "Bidirectional"].includes(propagation)) {
      errors.push(notSupported(child(at, "mountPropagation"), propagation, ["Bidirectional", "HostToContainer", "None"]));
    }
  }
  return errors;
}

function validateDevices(
  devices: readonly VolumeDevice[],
  mounts: readonly VolumeMount[],
  volumes: ReadonlyMap<string, Volume>,
  path: string,
): FieldError[] {
  const errors: FieldError[] = [];
  const paths = new Set<string>();
  const names = new Set<string>();
  const mountNames = new Set(mounts.map((mount) => mount.name));
  const mountPoints = new Set(mounts.map((mount) => mount.mountPath));
  for (const [i, device] of devices.entries()) {
    const at = index(path, i);
    if (!device.name) errors.push(required(child(at, "name"), ""));
    if (!device.devicePath) errors.push(required(child(at, "devicePath"), ""));
    if (names.has(device.name)) errors.push(invalidValue(child(at, "name"), device.name, "must be unique"));
    if (paths.has(device.devicePath)) errors.push(invalidValue(child(at, "devicePath"), device.devicePath, "must be unique"));
    if (device.devicePath?.split("/").includes("..")) {
      errors.push(invalidValue(child(at, "devicePath"), device.devicePath, "can not contain backsteps ('..')"));
    } else paths.add(device.devicePath);
    const volume = volumes.get(device.name);
    if (device.name && volume && !volume.persistentVolumeClaim && !volume.ephemeral) {
      errors.push(
        invalidValue(
          child(at, "name"),
          device.name,
          "can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode",
        ),
      );
    } else if (device.name && !volume) errors.push(fieldNotFound(child(at, "name"), device.name));
    if (mountNames.has(device.name))
      errors.push(invalidValue(child(at, "name"), device.name, "must not already exist in volumeMounts"));
    if (mountPoints.has(device.devicePath)) {
      errors.push(invalidValue(child(at, "devicePath"), device.devicePath, "must not already exist as a path in volumeMounts"));
    }
    names.add(device.name);
  }
  return errors;
}

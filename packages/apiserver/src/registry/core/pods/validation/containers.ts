import {
  addErrors,
  child,
  duplicate,
  type FieldError,
  fieldNotFound,
  forbiddenField,
  index,
  invalidValue,
  required,
} from "@coxswain/apimachinery/objects/errors/field-error";
import { goStruct } from "@coxswain/apimachinery/objects/schema/go/go-print";
import type {
  Container,
  ContainerPort,
  EphemeralContainer,
  PodSpec,
  Volume,
} from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import type { Steps } from "@coxswain/apimachinery/process/event-loop/steps";
import { dns1123Label, portNameProblems, portProblems } from "../../../field-checks.ts";
import { eachInSteps, eachWithSteps, need, requiredOneOf, saying } from "../../../rules.ts";
import { validateEnv, validateEnvFrom } from "./environment.ts";
import { validateDevices, validateMounts } from "./mounts.ts";
import type { PodValidationOptions } from "./options.ts";
import { checkNoGracePeriod, checkSuccessThreshold, validateLifecycleHandler, validateProbe } from "./probes.ts";
import { validateResourceRequirements } from "./resources.ts";
import { validateSecurityContext } from "./security-context.ts";

type Volumes = ReadonlyMap<string, Volume>;

/**
 * At least one container is required.
 * Source: pkg/apis/core/validation validateContainers
 * @param oneByOne init containers, each of which may use the host ports of the others
 */
export function* validateContainers(
  containers: readonly Container[],
  volumes: Volumes,
  path: string,
  options: PodValidationOptions,
  oneByOne = false,
): Steps<FieldError[]> {
  if (containers.length === 0) return [required(path)];
  const names = new Set<string>();
  const errors = yield* eachWithSteps(containers, path, (container, at) => {
    const twice = names.has(container.name ?? "");
    names.add(container.name ?? "");
    return validateContainer(container, twice, volumes, at, options);
  });
  // Init containers run sequentially and may use the same host ports.
  const groups = oneByOne ? containers.map((container) => [container]) : [containers];
  for (const group of groups) addErrors(errors, yield* hostPortConflicts(group, path));
  return errors;
}

const neverForInit = ["lifecycle", "livenessProbe", "readinessProbe", "startupProbe"] as const;

/**
 * None is required. Their names must differ from those of the containers, and they have neither probes nor lifecycle.
 * Source: pkg/apis/core/validation validateInitContainers
 */
export function* validateInitContainers(
  spec: PodSpec,
  volumes: Volumes,
  path: string,
  options: PodValidationOptions,
): Steps<FieldError[]> {
  const containers = spec.initContainers ?? [];
  if (containers.length === 0) return [];
  const errors = yield* validateContainers(containers, volumes, path, options, true);
  const names = new Set((spec.containers ?? []).map((container) => container.name));
  const checkInit = (container: Container, at: string): FieldError[] => {
    const own: FieldError[] = [];
    if (names.has(container.name)) own.push(duplicate(child(at, "name"), container.name));
    if (container.name) names.add(container.name);
    for (const field of neverForInit) {
      const value = container[field];
      if (!value) continue;
      const shown = goStruct(field === "lifecycle" ? "core/v1.Lifecycle" : "core/v1.Probe", value);
      own.push(invalidValue(child(at, field), shown, "must not be set for init containers"));
    }
    return own;
  };
  addErrors(errors, yield* eachInSteps(containers, path, checkInit));
  return errors;
}

const ephemeralText = "cannot be set for an Ephemeral Container";
/** In the order of the Go struct fields. */
const neverForEphemeral = ["ports", "resources", "livenessProbe", "readinessProbe", "startupProbe", "lifecycle"] as const;

/**
 * Names differ from those of all other containers; ports, resources, probes, lifecycle and subPath are not allowed.
 * Source: pkg/apis/core/validation validateEphemeralContainers
 */
export function validateEphemeralContainers(
  spec: PodSpec,
  volumes: Volumes,
  path: string,
  options: PodValidationOptions,
): Steps<FieldError[]> {
  const names = new Set([...(spec.containers ?? []), ...(spec.initContainers ?? [])].map((container) => container.name));
  return eachWithSteps(spec.ephemeralContainers, path, function* (container: EphemeralContainer, at) {
    const errors: FieldError[] = [];
    const { name, targetContainerName } = container;
    if (targetContainerName && !names.has(targetContainerName))
      errors.push(fieldNotFound(child(at, "targetContainerName"), targetContainerName));
    if (!name) return [...errors, required(at, "ephemeralContainer requires a name")];
    // Upstream validates a list with only this container, which shows in its error paths.
    addErrors(errors, yield* validateContainers([container], volumes, at, options));
    addErrors(errors, yield* withoutSpaces([container], at));
    if (names.has(name)) errors.push(duplicate(child(at, "name"), name));
    names.add(name);
    for (const field of neverForEphemeral)
      if (!isUnset(container[field])) errors.push(forbiddenField(child(at, field), ephemeralText));
    for (const [i, mount] of (container.volumeMounts ?? []).entries()) {
      const own = index(child(at, "volumeMounts"), i);
      if (mount.subPath) errors.push(forbiddenField(child(own, "subPath"), ephemeralText));
      if (mount.subPathExpr) errors.push(forbiddenField(child(own, "subPathExpr"), ephemeralText));
    }
    return errors;
  });
}

function isUnset(value: unknown): boolean {
  return value === undefined || value === null || (typeof value === "object" && Object.keys(value).length === 0);
}

/**
 * Image names in pods, but not in templates, must not have surrounding white space.
 * Source: pkg/apis/core/validation validateContainersOnlyForPod
 */
export function withoutSpaces(containers: readonly Container[] | undefined, path: string): Steps<FieldError[]> {
  return eachInSteps(containers, path, ({ image = "" }, at) =>
    image === image.trim() ? [] : [invalidValue(child(at, "image"), image, "must not have leading or trailing whitespace")],
  );
}

const messagePolicyText = "must be 'File' or 'FallbackToLogsOnError'";

function* validateContainer(
  container: Container,
  twice: boolean,
  volumes: Volumes,
  path: string,
  options: PodValidationOptions,
): Steps<FieldError[]> {
  const errors = container.name ? dns1123Label(container.name, child(path, "name")) : [required(child(path, "name"))];
  if (twice) errors.push(duplicate(child(path, "name"), container.name ?? ""));
  errors.push(...need(container.image, child(path, "image")));
  for (const field of ["postStart", "preStop"] as const) {
    const handler = container.lifecycle?.[field];
    if (handler) addErrors(errors, yield* validateLifecycleHandler(handler, child(path, "lifecycle", field)));
  }
  const { livenessProbe, readinessProbe, startupProbe } = container;
  const [liveness, readiness, startup] = [
    child(path, "livenessProbe"),
    child(path, "readinessProbe"),
    child(path, "startupProbe"),
  ];
  addErrors(errors, yield* validateProbe(livenessProbe, liveness));
  errors.push(...checkNoGracePeriod(readinessProbe, readiness));
  addErrors(errors, yield* validateProbe(startupProbe, startup));
  errors.push(...checkSuccessThreshold(livenessProbe, liveness), ...checkSuccessThreshold(startupProbe, startup));
  const policy: string = container.terminationMessagePolicy ?? "";
  if (policy === "") errors.push(required(child(path, "terminationMessagePolicy"), messagePolicyText));
  else if (policy !== "File" && policy !== "FallbackToLogsOnError")
    errors.push(invalidValue(child(path, "terminationMessagePolicy"), policy, messagePolicyText));
  addErrors(errors, yield* validateProbe(readinessProbe, readiness));
  addErrors(errors, yield* validatePorts(container.ports ?? [], child(path, "ports")));
  addErrors(errors, yield* validateEnv(container.env ?? [], child(path, "env"), options));
  addErrors(errors, yield* validateEnvFrom(container.envFrom ?? [], child(path, "envFrom")));
  addErrors(errors, yield* validateMounts(container, volumes, child(path, "volumeMounts")));
  addErrors(errors, yield* validateDevices(container, volumes, child(path, "volumeDevices")));
  errors.push(...requiredOneOf(container.imagePullPolicy, ["Always", "IfNotPresent", "Never"], child(path, "imagePullPolicy")));
  addErrors(errors, yield* validateResourceRequirements(container.resources, child(path, "resources"), options));
  errors.push(...validateSecurityContext(container.securityContext, child(path, "securityContext"), options));
  return errors;
}

function validatePorts(ports: readonly ContainerPort[], path: string): Steps<FieldError[]> {
  const names = new Set<string>();
  return eachInSteps(ports, path, (port, at) => {
    const errors: FieldError[] = [];
    if (port.name) {
      const messages = portNameProblems(port.name);
      errors.push(...saying(messages, port.name, child(at, "name")));
      if (messages.length === 0 && names.has(port.name)) errors.push(duplicate(child(at, "name"), port.name));
      if (messages.length === 0) names.add(port.name);
    }
    if (!port.containerPort) errors.push(required(child(at, "containerPort")));
    else errors.push(...saying(portProblems(port.containerPort), port.containerPort, child(at, "containerPort")));
    if (port.hostPort) errors.push(...saying(portProblems(port.hostPort), port.hostPort, child(at, "hostPort")));
    return [...errors, ...requiredOneOf(port.protocol, ["SCTP", "TCP", "UDP"], child(at, "protocol"))];
  });
}

function hostPortConflicts(containers: readonly Container[], path: string): Steps<FieldError[]> {
  const taken = new Set<string>();
  return eachWithSteps(containers, path, (container, at) =>
    eachInSteps(container.ports, child(at, "ports"), (port, own) => {
      if (!port.hostPort) return [];
      const key = `${port.protocol ?? ""}/${port.hostIP ?? ""}/${port.hostPort}`;
      if (taken.has(key)) return [duplicate(child(own, "hostPort"), key)];
      taken.add(key);
      return [];
    }),
  );
}

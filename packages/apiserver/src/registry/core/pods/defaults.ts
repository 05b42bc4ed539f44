import { setOwn } from "@coxswain/apimachinery/objects/codec/json-parse";
import { valuesPerStep } from "@coxswain/apimachinery/objects/meta/deep-equal";
import { Quantity } from "@coxswain/apimachinery/objects/meta/quantity";
import type {
  Container,
  EnvVar,
  PersistentVolumeSpec,
  Pod,
  PodSpec,
  PodTemplateSpec,
  Probe,
  ResourceList,
  Volume,
} from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { parseImageReference } from "@coxswain/apimachinery/objects/validation/image-reference";
import { atOnce, type Steps } from "@coxswain/apimachinery/process/event-loop/steps";
import { emptyStruct } from "../../rules.ts";
import { defaultClaimSpec } from "../persistentvolumeclaims/defaults.ts";

/**
 * Sets defaults of a pod. Fields that are values in Go get the default when they are zero (`||=`), pointers only when they are
 * absent (`??=`).
 * Source: pkg/apis/core/v1/defaults.go
 */
export function defaultPod(pod: Pod): void {
  pod.spec ??= emptyStruct();
  // Requests default to limits, in pods but not in templates.
  for (const container of [...(pod.spec.containers ?? []), ...(pod.spec.initContainers ?? [])]) {
    requestsFromLimits(container);
  }
  pod.spec.enableServiceLinks ??= true;
  defaultPodSpec(pod.spec);
  if (pod.status) mirrorPodIps(pod.status);
}

/**
 * `podIP` mirrors the first of `podIPs` and wins when they differ, for kubelets that only set `podIP`.
 * Source: pkg/apis/core/v1/conversion.go Convert_v1_PodStatus_To_core_PodStatus and back
 */
function mirrorPodIps(status: NonNullable<Pod["status"]>): void {
  const first = status.podIPs?.[0]?.ip ?? "";
  if (status.podIP && status.podIP !== first) status.podIPs = [{ ip: status.podIP }];
  else if (first) status.podIP = first;
}

/** Sets defaults of a template in place, unless it is missing. Unlike in pods, requests do not default to limits. */
export function defaultPodTemplate(template: PodTemplateSpec | undefined | null): void {
  if (!template) return;
  template.spec ??= emptyStruct();
  defaultPodSpec(template.spec);
}

/** Sets defaults of a template, creating an empty one when it is missing. */
export function defaultTemplateOf(spec: { template?: PodTemplateSpec }): void {
  spec.template ??= emptyStruct();
  defaultPodTemplate(spec.template);
}

function defaultPodSpec(spec: PodSpec): void {
  spec.dnsPolicy ||= "ClusterFirst";
  spec.restartPolicy ||= "Always";
  spec.terminationGracePeriodSeconds ??= 30;
  spec.securityContext ??= {};
  spec.schedulerName ||= "default-scheduler";
  // The deprecated serviceAccount mirrors serviceAccountName.
  if (!spec.serviceAccountName && spec.serviceAccount) spec.serviceAccountName = spec.serviceAccount;
  if (spec.serviceAccountName) spec.serviceAccount = spec.serviceAccountName;
  for (const volume of spec.volumes ?? []) defaultVolume(volume);
  const containers: Container[] = [...(spec.containers ?? []), ...(spec.initContainers ?? [])];
  for (const container of containers) defaultContainer(container);
  for (const container of spec.ephemeralContainers ?? []) defaultContainer(container);
  if (spec.hostNetwork) for (const container of containers) useHostPorts(container);
  if (spec.overhead) roundUpToMilli(spec.overhead);
}

function requestsFromLimits(container: Container): void {
  const { limits } = container.resources ?? {};
  if (!limits || !container.resources) return;
  const requests = container.resources.requests ?? {};
  for (const name of Object.keys(limits)) {
    if (!Object.hasOwn(requests, name)) setOwn(requests, name, limits[name]);
  }
  if (Object.keys(requests).length > 0) container.resources.requests = requests;
}

type ContainerLike = Omit<Container, "name"> & { name?: string };

function defaultContainer(container: ContainerLike): void {
  container.imagePullPolicy ||= pullPolicyOf(container.image ?? "");
  container.terminationMessagePath ||= "/dev/termination-log";
  container.terminationMessagePolicy ||= "File";
  container.resources ??= {};
  for (const port of container.ports ?? []) port.protocol ||= "TCP";
  for (const variable of container.env ?? []) defaultEnv(variable);
  for (const probe of [container.livenessProbe, container.readinessProbe, container.startupProbe]) if (probe) defaultProbe(probe);
  for (const handler of [container.lifecycle?.postStart, container.lifecycle?.preStop]) {
    if (handler?.httpGet) defaultHttpGet(handler.httpGet);
  }
  if (container.resources.limits) roundUpToMilli(container.resources.limits);
  if (container.resources.requests) roundUpToMilli(container.resources.requests);
}

/** Always for the tag `latest` and for references without tag and digest. */
export function pullPolicyOf(image: string): "Always" | "IfNotPresent" {
  const reference = parseImageReference(image);
  if (reference === undefined) return "IfNotPresent"; // invalid reference: no tag to derive a policy from
  const { tag, digest } = reference;
  return tag === "latest" || (tag === undefined && digest === undefined) ? "Always" : "IfNotPresent";
}

function defaultEnv(variable: EnvVar): void {
  if (variable.valueFrom?.fieldRef) variable.valueFrom.fieldRef.apiVersion ||= "v1";
}

function defaultProbe(probe: Probe): void {
  if (probe.httpGet) defaultHttpGet(probe.httpGet);
  if (probe.grpc) probe.grpc.service ??= "";
  probe.timeoutSeconds ||= 1;
  probe.periodSeconds ||= 10;
  probe.successThreshold ||= 1;
  probe.failureThreshold ||= 3;
}

function defaultHttpGet(action: { path?: string; scheme?: string }): void {
  action.path ||= "/";
  action.scheme ||= "HTTP";
}

/** With hostNetwork, host ports default to the container ports. */
function useHostPorts(container: Container): void {
  for (const port of container.ports ?? []) {
    if (!port.hostPort && port.containerPort) port.hostPort = port.containerPort;
  }
}

const defaultFileMode = 0o644;

function defaultVolume(volume: Volume): void {
  const kinds = Object.keys(volume).filter(
    (key) => key !== "name" && (volume as unknown as Record<string, unknown>)[key] != null, // cast: read by its own keys
  );
  if (kinds.length === 0) volume.emptyDir = {};
  if (volume.secret) volume.secret.defaultMode ??= defaultFileMode;
  if (volume.configMap) volume.configMap.defaultMode ??= defaultFileMode;
  if (volume.downwardAPI) {
    volume.downwardAPI.defaultMode ??= defaultFileMode;
    for (const item of volume.downwardAPI.items ?? []) if (item.fieldRef) item.fieldRef.apiVersion ||= "v1";
  }
  if (volume.projected) {
    volume.projected.defaultMode ??= defaultFileMode;
    for (const source of volume.projected.sources ?? []) {
      for (const item of source.downwardAPI?.items ?? []) if (item.fieldRef) item.fieldRef.apiVersion ||= "v1";
      if (source.serviceAccountToken) source.serviceAccountToken.expirationSeconds ??= 3600;
    }
  }
  defaultSource(volume);
  if (volume.ephemeral?.volumeClaimTemplate?.spec) defaultClaimSpec(volume.ephemeral.volumeClaimTemplate.spec);
}

type SharedSources = Pick<PersistentVolumeSpec, "hostPath" | "iscsi" | "rbd" | "azureDisk" | "scaleIO">;

/** Defaults of the volume sources that pods and PersistentVolumes share; also used for inline volumes of VolumeAttachments. */
export function defaultSource(spec: SharedSources): void {
  if (spec.hostPath) spec.hostPath.type ??= "";
  if (spec.iscsi) spec.iscsi.iscsiInterface ||= "default";
  if (spec.rbd) {
    spec.rbd.pool ||= "rbd";
    spec.rbd.user ||= "admin";
    spec.rbd.keyring ||= "/etc/ceph/keyring";
  }
  if (spec.azureDisk) {
    spec.azureDisk.cachingMode ??= "ReadWrite";
    spec.azureDisk.kind ??= "Shared";
    spec.azureDisk.fsType ??= "ext4";
    spec.azureDisk.readOnly ??= false;
  }
  if (spec.scaleIO) {
    spec.scaleIO.storageMode ||= "ThinProvisioned";
    spec.scaleIO.fsType ||= "xfs";
  }
}

/** Rounds quantities finer than a milli unit up, in place. */
function roundUpToMilli(list: ResourceList): void {
  atOnce(roundUpToMilliInSteps(list));
}

/** As `roundUpToMilli`, for many quantities. */
export function* roundUpToMilliInSteps(list: ResourceList): Steps<void> {
  for (const [i, name] of Object.keys(list).entries()) {
    if (i % valuesPerStep === valuesPerStep - 1) yield;
    const value = list[name];
    if (typeof value !== "string" || !/[nu.e]/i.test(value)) continue;
    const quantity = Quantity.tryParse(value);
    if (quantity && /[nu]$/.test(quantity.toString())) setOwn(list, name, `${quantity.milliValue()}m`);
  }
}

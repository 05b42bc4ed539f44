import type { ObjectMeta } from "@coxswain/apimachinery/objects/meta/types";
import type { Container, EphemeralContainer, Pod, PodSpec, Volume } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";

/** A Pod on this node; Pods from all sources have these fields set. */
export interface NodePod extends Pod {
  metadata: ObjectMeta & { name: string; namespace: string; uid: string };
  spec: PodSpec;
}

export const configSourceAnnotation = "kubernetes.io/config.source";
export const configHashAnnotation = "kubernetes.io/config.hash";
export const configMirrorAnnotation = "kubernetes.io/config.mirror";
export const configSeenAnnotation = "kubernetes.io/config.seen";

/** `name_namespace`: identical for a static Pod and its mirror Pod. */
type PodFullName = string;

export function fullName(pod: { metadata: { name: string; namespace: string } }): PodFullName {
  return `${pod.metadata.name}_${pod.metadata.namespace}`;
}

/** `name_namespace(uid)`, as used in messages. */
export function describePod(pod: { metadata: { name: string; namespace: string; uid: string } }): string {
  return `${fullName(pod)}(${pod.metadata.uid})`;
}

/** A Pod from a file or a URL. Its mirror Pod, which has the same annotations, does not count. */
export function isStaticPod(pod: Pod): boolean {
  const source = pod.metadata.annotations?.[configSourceAnnotation];
  return source !== undefined && source !== "api" && !isMirrorPod(pod);
}

/** Whether this is the API object that an agent created for a static Pod, by the annotation `kubernetes.io/config.mirror`. */
export function isMirrorPod(pod: Pod): boolean {
  return pod.metadata.annotations?.[configMirrorAnnotation] !== undefined;
}

/** Static Pods, mirror Pods, and Pods with at least the priority of system-cluster-critical. */
export function isCriticalPod(pod: NodePod): boolean {
  return isStaticPod(pod) || isMirrorPod(pod) || (pod.spec.priority ?? 0) >= 2_000_000_000;
}

/** Critical Pods of the priority class system-node-critical. Source: pkg/kubelet/types/pod_update.go */
export function isNodeCriticalPod(pod: NodePod): boolean {
  return isCriticalPod(pod) && pod.spec.priorityClassName === "system-node-critical";
}

export type AnyContainer = Container | EphemeralContainer;
export type ContainerKind = "init" | "regular" | "ephemeral";

/** All containers of a Pod, init containers first. */
export function* containersOf(pod: NodePod): Generator<{ container: AnyContainer; kind: ContainerKind }> {
  for (const container of pod.spec.initContainers ?? []) yield { container, kind: "init" };
  for (const container of pod.spec.containers) yield { container, kind: "regular" };
  for (const container of pod.spec.ephemeralContainers ?? []) yield { container, kind: "ephemeral" };
}

/** Volumes that at least one container uses; others are not mounted. Source: pkg/volume/util GetPodVolumeNames */
export function usedVolumes(pod: NodePod): Volume[] {
  const used = new Set<string>();
  for (const { container } of containersOf(pod)) {
    for (const { name } of [...(container.volumeMounts ?? []), ...(container.volumeDevices ?? [])]) used.add(name);
  }
  return (pod.spec.volumes ?? []).filter(({ name }) => used.has(name));
}

/** The container with that name, of any kind. */
export function findContainer(pod: NodePod, name: string): { container: AnyContainer; kind: ContainerKind } | undefined {
  for (const found of containersOf(pod)) if (found.container.name === name) return found;
  return undefined;
}

/** `spec.containers{name}`: the field path of events about a container. */
export function containerFieldPath(kind: ContainerKind, name: string): string {
  const list = kind === "init" ? "initContainers" : kind === "regular" ? "containers" : "ephemeralContainers";
  return `spec.${list}{${name}}`;
}

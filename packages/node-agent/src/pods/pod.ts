import type { ObjectMeta } from "@coxswain/apimachinery/meta/types";
import type { Container, EphemeralContainer, Pod, PodSpec, Volume } from "@coxswain/apimachinery/schema/kinds/core/v1";

/** A Pod that is wanted on this node: what sources hand out always has these. */
export interface NodePod extends Pod {
  metadata: ObjectMeta & { name: string; namespace: string; uid: string };
  spec: PodSpec;
}

export const configSourceAnnotation = "kubernetes.io/config.source";
export const configHashAnnotation = "kubernetes.io/config.hash";
export const configMirrorAnnotation = "kubernetes.io/config.mirror";
export const configSeenAnnotation = "kubernetes.io/config.seen";

/** `name_namespace`: the same for a static Pod and its mirror. */
export type PodFullName = string;

export function fullName(pod: { metadata: { name: string; namespace: string } }): PodFullName {
  return `${pod.metadata.name}_${pod.metadata.namespace}`;
}

/** `name_namespace(uid)`, as messages write it. */
export function describePod(pod: { metadata: { name: string; namespace: string; uid: string } }): string {
  return `${fullName(pod)}(${pod.metadata.uid})`;
}

/** A Pod that came from a file or a URL; its mirror, which bears the same annotations, came from the API server. */
export function isStaticPod(pod: Pod): boolean {
  const source = pod.metadata.annotations?.[configSourceAnnotation];
  return source !== undefined && source !== "api" && !isMirrorPod(pod);
}

export function isMirrorPod(pod: Pod): boolean {
  return pod.metadata.annotations?.[configMirrorAnnotation] !== undefined;
}

/** Priority classes system-cluster-critical and above, and Pods that came from files. */
export function isCriticalPod(pod: NodePod): boolean {
  return isStaticPod(pod) || isMirrorPod(pod) || (pod.spec.priority ?? 0) >= 2_000_000_000;
}

export function isNodeCriticalPod(pod: NodePod): boolean {
  return (
    isCriticalPod(pod) && (pod.spec.priorityClassName === "system-node-critical" || (pod.spec.priority ?? 0) >= 2_000_001_000)
  );
}

export type AnyContainer = Container | EphemeralContainer;
export type ContainerKind = "init" | "regular" | "ephemeral";

/** Every container of a Pod, init containers first. */
export function* containersOf(pod: NodePod): Generator<{ container: AnyContainer; kind: ContainerKind }> {
  for (const container of pod.spec.initContainers ?? []) yield { container, kind: "init" };
  for (const container of pod.spec.containers) yield { container, kind: "regular" };
  for (const container of pod.spec.ephemeralContainers ?? []) yield { container, kind: "ephemeral" };
}

/** Volumes that a container has a use for; the others are not brought up. Source: pkg/volume/util GetPodVolumeNames */
export function usedVolumes(pod: NodePod): Volume[] {
  const used = new Set<string>();
  for (const { container } of containersOf(pod)) {
    for (const { name } of [...(container.volumeMounts ?? []), ...(container.volumeDevices ?? [])]) used.add(name);
  }
  return (pod.spec.volumes ?? []).filter(({ name }) => used.has(name));
}

export function findContainer(pod: NodePod, name: string): { container: AnyContainer; kind: ContainerKind } | undefined {
  for (const found of containersOf(pod)) if (found.container.name === name) return found;
  return undefined;
}

/** `spec.containers{name}`: where an Event about a container points. */
export function containerFieldPath(kind: ContainerKind, name: string): string {
  const list = kind === "init" ? "initContainers" : kind === "regular" ? "containers" : "ephemeralContainers";
  return `spec.${list}{${name}}`;
}

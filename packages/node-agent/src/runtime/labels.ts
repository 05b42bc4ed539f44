import { encodeJson } from "@coxswain/apimachinery/objects/codec/json";
import { Fnv32a } from "@coxswain/apimachinery/objects/meta/fnv";
import type { Container, ContainerPort, LifecycleHandler } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { scheme } from "@coxswain/apimachinery/objects/schema/scheme";
import type { AnyContainer, NodePod } from "../pod/pod.ts";

/**
 * Labels and annotations on sandboxes and containers that identify their Pod to a restarted agent or to another kubelet
 * implementation. Names and formats match upstream's. Source: pkg/kubelet/kuberuntime/labels.go, types/labels.go
 */
export const labelNames = {
  podName: "io.kubernetes.pod.name",
  podNamespace: "io.kubernetes.pod.namespace",
  podUid: "io.kubernetes.pod.uid",
  containerName: "io.kubernetes.container.name",
} as const;

export const annotationNames = {
  hash: "io.kubernetes.container.hash",
  restartCount: "io.kubernetes.container.restartCount",
  terminationMessagePath: "io.kubernetes.container.terminationMessagePath",
  terminationMessagePolicy: "io.kubernetes.container.terminationMessagePolicy",
  preStop: "io.kubernetes.container.preStopHandler",
  ports: "io.kubernetes.container.ports",
  podDeletionGracePeriod: "io.kubernetes.pod.deletionGracePeriod",
  podTerminationGracePeriod: "io.kubernetes.pod.terminationGracePeriod",
} as const;

function podIdentityLabels(pod: NodePod): Record<string, string> {
  return {
    [labelNames.podName]: pod.metadata.name,
    [labelNames.podNamespace]: pod.metadata.namespace,
    [labelNames.podUid]: pod.metadata.uid,
  };
}

/** Includes the Pod's own labels: network plugins and log collectors read them. */
export function sandboxLabels(pod: NodePod): Record<string, string> {
  return { ...pod.metadata.labels, ...podIdentityLabels(pod) };
}

/** The annotations of a sandbox: those of the Pod. */
export function sandboxAnnotations(pod: NodePod): Record<string, string> {
  return { ...pod.metadata.annotations };
}

/** The labels of a container: the Pod's identity and the container's name. */
export function containerLabels(pod: NodePod, container: AnyContainer): Record<string, string> {
  return { ...podIdentityLabels(pod), [labelNames.containerName]: container.name };
}

/** The annotations of a container: spec hash, restart count, termination message and what is needed to stop it. */
export function containerAnnotations(pod: NodePod, container: AnyContainer, restartCount: number): Record<string, string> {
  const annotations: Record<string, string> = {
    [annotationNames.hash]: containerHash(container),
    [annotationNames.restartCount]: String(restartCount),
    [annotationNames.terminationMessagePath]: container.terminationMessagePath ?? "",
    [annotationNames.terminationMessagePolicy]: container.terminationMessagePolicy ?? "",
  };
  const { deletionGracePeriodSeconds } = pod.metadata;
  if (deletionGracePeriodSeconds !== undefined)
    annotations[annotationNames.podDeletionGracePeriod] = String(deletionGracePeriodSeconds);
  const { terminationGracePeriodSeconds } = pod.spec;
  if (terminationGracePeriodSeconds !== undefined) {
    annotations[annotationNames.podTerminationGracePeriod] = String(terminationGracePeriodSeconds);
  }
  // Needed to stop a container whose Pod is no longer known.
  if (container.lifecycle?.preStop !== undefined)
    annotations[annotationNames.preStop] = JSON.stringify(container.lifecycle.preStop);
  if ((container.ports ?? []).length > 0) annotations[annotationNames.ports] = JSON.stringify(container.ports);
  return annotations;
}

/** Restores the grace periods of a Pod that is no longer known from the annotations of its container. */
export function restorePod(pod: NodePod, annotations: Readonly<Record<string, string>>): NodePod {
  const seconds = (name: string): number | undefined => {
    const text = annotations[name];
    return text !== undefined && /^\d{1,9}$/.test(text) ? Number(text) : undefined;
  };
  const deletion = seconds(annotationNames.podDeletionGracePeriod);
  const termination = seconds(annotationNames.podTerminationGracePeriod);
  return {
    ...pod,
    metadata: { ...pod.metadata, ...(deletion !== undefined && { deletionGracePeriodSeconds: deletion }) },
    spec: { ...pod.spec, ...(termination !== undefined && { terminationGracePeriodSeconds: termination }) },
  };
}

/** Restores the parts of a container's spec that are needed to stop it. */
export function restoreContainer(name: string, annotations: Readonly<Record<string, string>>): Container {
  /** T is the part of the spec from which a kubelet, this one or upstream's, has made the annotation. */
  const parsed = <T>(annotation: string): T | null => {
    try {
      return JSON.parse(annotations[annotation] ?? "null") as T | null; // cast: see above
    } catch {
      return null;
    }
  };
  const preStop = parsed<LifecycleHandler>(annotationNames.preStop);
  const ports = parsed<ContainerPort[]>(annotationNames.ports);
  return { name, ...(preStop !== null && { lifecycle: { preStop } }), ...(ports !== null && { ports }) };
}

const containerType = "io.k8s.api.core.v1.Container";

/** A pure cache: containers of a Pod never change, and each sync of the Pod compares their hashes. */
const hashes = new WeakMap<AnyContainer, string>();

/**
 * Identifies the spec that a container was created from: 32-bit FNV-1a, in hexadecimal, of the printed form of its JSON
 * bytes. Matches upstream's hash, so that either kubelet keeps containers created by the other.
 * Source: pkg/kubelet/container/helpers.go HashContainer, pkg/util/hash/hash.go
 */
export function containerHash(container: AnyContainer): string {
  return hashes.getOrInsertComputed(container, hashOf);
}

function hashOf(container: AnyContainer): string {
  const descriptor = scheme.type(containerType);
  if (descriptor === undefined) throw new Error(`type ${containerType} is not in the scheme`);
  const json = encodeJson(container, descriptor).toString("utf8");
  // Go's JSON encoder escapes these five characters, and the hash is over its output.
  const escaped = json.replace(/[<>&\u2028\u2029]/g, (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, "0")}`);
  const hash = new Fnv32a();
  hash.text("([]uint8)");
  hash.printedBytes(Buffer.from(escaped, "utf8"));
  return hash.value.toString(16);
}

import { encodeJson } from "@coxswain/apimachinery/codec/json";
import { fnv32a } from "@coxswain/apimachinery/meta/fnv";
import type { Container, ContainerPort, LifecycleHandler } from "@coxswain/apimachinery/schema/kinds/core/v1";
import { scheme } from "@coxswain/apimachinery/schema/scheme";
import type { AnyContainer, NodePod } from "../pods/pod.ts";

/**
 * What the agent writes on sandboxes and containers, so that one that starts anew (or another implementation) knows
 * whose they are. Names and forms are those of upstream's agent. Source: pkg/kubelet/kuberuntime/labels.go, types/labels.go
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

/** The Pod's own labels too: network plugins and log collectors read them. */
export function sandboxLabels(pod: NodePod): Record<string, string> {
  return { ...pod.metadata.labels, ...podIdentityLabels(pod) };
}

export function sandboxAnnotations(pod: NodePod): Record<string, string> {
  return { ...pod.metadata.annotations };
}

export function containerLabels(pod: NodePod, container: AnyContainer): Record<string, string> {
  return { ...podIdentityLabels(pod), [labelNames.containerName]: container.name };
}

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
  // Kept for a container whose Pod is no longer known when it has to be stopped.
  if (container.lifecycle?.preStop !== undefined)
    annotations[annotationNames.preStop] = JSON.stringify(container.lifecycle.preStop);
  if ((container.ports ?? []).length > 0) annotations[annotationNames.ports] = JSON.stringify(container.ports);
  return annotations;
}

/** What a container tells of the Pod that it was made for, where nobody else knows of it any more. */
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

/** The same of its own specification: how it is to be ended. */
export function restoreContainer(name: string, annotations: Readonly<Record<string, string>>): Container {
  const parsed = (annotation: string): unknown => {
    try {
      return JSON.parse(annotations[annotation] ?? "null");
    } catch {
      return null;
    }
  };
  const preStop = parsed(annotationNames.preStop) as LifecycleHandler | null;
  const ports = parsed(annotationNames.ports) as ContainerPort[] | null;
  return { name, ...(preStop !== null && { lifecycle: { preStop } }), ...(ports !== null && { ports }) };
}

const containerType = "io.k8s.api.core.v1.Container";

/**
 * Tells whether a running container was made from this specification: 32-bit FNV-1a, in hexadecimal, over the printed
 * form of the specification's JSON bytes, as upstream computes it, so that either agent keeps the other's containers.
 * Source: pkg/kubelet/container/helpers.go HashContainer, pkg/util/hash/hash.go
 */
export function containerHash(container: AnyContainer): string {
  const descriptor = scheme.type(containerType);
  if (descriptor === undefined) throw new Error(`type ${containerType} is not in the scheme`);
  const json = encodeJson(container as never, descriptor).toString("utf8");
  // Go writes these five as escapes; the numbers of its bytes are what is hashed.
  const escaped = json.replace(/[<>&\u2028\u2029]/g, (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, "0")}`);
  const bytes = Buffer.from(escaped, "utf8");
  return fnv32a(Buffer.from(`([]uint8)[${bytes.join(" ")}]`, "latin1")).toString(16);
}

/**
 * True when an update changes a mutable part of the pod that is relevant to the standards. Other updates are not evaluated,
 * since the pod may have been created under a laxer standard.
 * Source: k8s.io/pod-security-admission admission/admission.go isSignificantPodUpdate
 */
import { seccompContainer, seccompPod } from "@coxswain/apimachinery/objects/meta/pod-security-names";
import type { KubeObject } from "@coxswain/apimachinery/objects/meta/types";
import type { Container, EphemeralContainer, PodSpec } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";

interface PodLike extends KubeObject {
  readonly spec: PodSpec;
}
type AnyContainer = Container | EphemeralContainer;

export function isSignificant(pod: PodLike, before: PodLike): boolean {
  const changed = (key: string): boolean => pod.metadata.annotations?.[key] !== before.metadata.annotations?.[key];
  const differs = (now: AnyContainer, had: AnyContainer | undefined): boolean =>
    had === undefined || now.image !== had.image || changed(seccompContainer + now.name);
  const listDiffers = (now: readonly AnyContainer[] = [], had: readonly AnyContainer[] = []): boolean =>
    now.length !== had.length || now.some((container, i) => differs(container, had[i]));
  const ephemeral = new Map((before.spec.ephemeralContainers ?? []).toReversed().map((had) => [had.name, had])); // the first of a name counts
  return (
    changed(seccompPod) ||
    listDiffers(pod.spec.containers, before.spec.containers) ||
    listDiffers(pod.spec.initContainers, before.spec.initContainers) ||
    (pod.spec.ephemeralContainers ?? []).some((now) => differs(now, ephemeral.get(now.name)))
  );
}

import { keyOf } from "@coxswain/apimachinery/objects/meta/object-key";
import type { Pod } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { newPodInfo, type PodInfo } from "../cache/node-info.ts";

/**
 * Pods nominated to a node by preemption. Their requests count there when other pods of equal or lower priority are filtered.
 * Source: pkg/scheduler/internal/queue PodNominator
 */
export interface Nominator {
  /** Replaces the pod's nomination by `nodeName`, `status.nominatedNodeName` by default; `""` removes it. */
  set(pod: Pod, nodeName?: string): void;
  delete(pod: Pod): void;
  /** As `set`, but keeps a nomination that the API does not show yet when neither `old` nor `pod` names a node. */
  update(old: Pod | undefined, pod: Pod): void;
  onNode(nodeName: string): readonly PodInfo[];
}

/** @param isLive false for pods that no longer exist, whose nominations are ignored */
export function newNominator(isLive: (pod: Pod) => boolean = () => true): Nominator {
  const byUid = new Map<string, { nodeName: string; info: PodInfo }>();
  const byNode = new Map<string, Map<string, PodInfo>>();

  const remove = (uid: string): void => {
    const nomination = byUid.get(uid);
    if (nomination === undefined) return;
    byUid.delete(uid);
    const pods = byNode.get(nomination.nodeName);
    pods?.delete(uid);
    if (pods?.size === 0) byNode.delete(nomination.nodeName);
  };
  const set = (pod: Pod, nodeName = pod.status?.nominatedNodeName ?? ""): void => {
    const uid = uidOf(pod);
    remove(uid);
    if (nodeName === "" || pod.spec.nodeName || !isLive(pod)) return;
    const info = newPodInfo(pod);
    byUid.set(uid, { nodeName, info });
    byNode.getOrInsertComputed(nodeName, () => new Map()).set(uid, info);
  };

  return {
    set,
    delete: (pod) => remove(uidOf(pod)),
    update(old, pod) {
      const before = old?.status?.nominatedNodeName ?? "";
      const after = pod.status?.nominatedNodeName ?? "";
      const kept = before === "" && after === "" ? byUid.get(uidOf(pod))?.nodeName : undefined;
      set(pod, kept ?? after);
    },
    onNode: (nodeName) => {
      const pods = byNode.get(nodeName);
      return pods === undefined ? none : [...pods.values()];
    },
  };
}

const none: readonly PodInfo[] = [];
const uidOf = (pod: Pod): string => pod.metadata.uid ?? keyOf(pod);

import type { Clock } from "@coxswain/apimachinery/clock/clock";
import type { Node, Pod } from "@coxswain/apimachinery/schema/kinds/core/v1";
import { addPod, type NodeInfo, newNodeInfo, newPodInfo, type PodInfo, removePod, setNode } from "./node-info.ts";
import type { ClusterSnapshot } from "./snapshot.ts";

/**
 * The scheduler's view of nodes and the pods on them. It includes assumed pods: placements that were decided but that
 * the API does not show yet.
 * Source: pkg/scheduler/internal/cache/cache.go
 */
export interface ClusterCache {
  setNode(node: Node): void;
  removeNode(node: Node): void;
  /** Adds or replaces a pod that the API shows as assigned to a node; confirms an assumed pod. */
  setPod(pod: Pod): void;
  removePod(pod: Pod): void;
  /** Adds the pod to the node before it is bound. */
  assume(pod: PodInfo, nodeName: string): void;
  /** Starts the expiry of an assumed pod: it is dropped unless the API shows it within 15 minutes. */
  finishBinding(pod: Pod): void;
  /** Reverts `assume`. */
  forget(pod: Pod): void;
  isAssumed(pod: Pod): boolean;
  snapshot(): ClusterSnapshot;
  readonly counts: { nodes: number; pods: number; assumedPods: number };
}

const zoneLabel = "topology.kubernetes.io/zone";
/** Time after binding until an assumed pod that the API never showed is dropped. Source: durationToExpireAssumedPod */
const assumedExpiryMs = 15 * 60_000;

export function newClusterCache(clock: Clock): ClusterCache {
  /** Includes deleted nodes that still have pods; snapshots leave those out. */
  const infos = new Map<string, NodeInfo>();
  const present = new Set<string>();
  const podNodes = new Map<string, string>();
  const assumed = new Map<string, { pod: PodInfo; expiresMs: number | undefined }>();
  const havingAffinity = new Set<NodeInfo>();
  const havingRequiredAntiAffinity = new Set<NodeInfo>();
  const imageCounts = new Map<string, number>();
  let order: NodeInfo[] | undefined;

  const infoOf = (name: string): NodeInfo => infos.getOrInsertComputed(name, () => newNodeInfo({ metadata: { name } } as Node));
  const noteAffinity = (info: NodeInfo): void => {
    const refuses = [...info.podsWithAffinity].some(({ affinity }) => (affinity?.requiredAnti.length ?? 0) > 0);
    setMembership(havingAffinity, info, info.podsWithAffinity.size > 0);
    setMembership(havingRequiredAntiAffinity, info, refuses);
  };
  const countImages = ({ images }: NodeInfo, by: 1 | -1): void => {
    for (const name of images.keys()) {
      const count = (imageCounts.get(name) ?? 0) + by;
      if (count > 0) imageCounts.set(name, count);
      else imageCounts.delete(name);
    }
  };
  const isPresent = (info: NodeInfo): boolean => present.has(info.name);
  const detach = (uid: string): void => {
    const nodeName = podNodes.get(uid);
    if (nodeName === undefined) return;
    podNodes.delete(uid);
    const info = infos.get(nodeName);
    if (info === undefined) return;
    const hadAffinity = info.podsWithAffinity.size > 0;
    removePod(info, uid);
    if (hadAffinity) noteAffinity(info);
    if (info.pods.size === 0 && !present.has(nodeName)) infos.delete(nodeName);
  };
  const attach = (pod: PodInfo, nodeName: string): void => {
    const uid = pod.pod.metadata.uid ?? "";
    detach(uid);
    podNodes.set(uid, nodeName);
    const info = infoOf(nodeName);
    addPod(info, pod);
    if (pod.affinity !== undefined) noteAffinity(info);
  };
  const expire = (): void => {
    const now = clock.monotonic();
    for (const [uid, { expiresMs }] of assumed) {
      if (expiresMs === undefined || expiresMs > now) continue;
      assumed.delete(uid);
      detach(uid);
    }
  };

  return {
    setNode(node) {
      const name = node.metadata.name ?? "";
      const info = infoOf(name);
      if (!present.has(name) || info.node.metadata.labels?.[zoneLabel] !== node.metadata.labels?.[zoneLabel]) order = undefined;
      if (present.has(name)) countImages(info, -1);
      present.add(name);
      setNode(info, node);
      countImages(info, 1);
    },
    removeNode(node) {
      const name = node.metadata.name ?? "";
      const info = infos.get(name);
      if (info === undefined || !present.delete(name)) return;
      countImages(info, -1);
      order = undefined;
      if (info.pods.size === 0) infos.delete(name);
    },
    setPod(pod) {
      assumed.delete(pod.metadata.uid ?? "");
      attach(newPodInfo(pod), pod.spec.nodeName ?? "");
    },
    removePod(pod) {
      assumed.delete(pod.metadata.uid ?? "");
      detach(pod.metadata.uid ?? "");
    },
    assume(pod, nodeName) {
      attach(pod, nodeName);
      assumed.set(pod.pod.metadata.uid ?? "", { pod, expiresMs: undefined });
    },
    finishBinding(pod) {
      const entry = assumed.get(pod.metadata.uid ?? "");
      if (entry !== undefined) entry.expiresMs = clock.monotonic() + assumedExpiryMs;
    },
    forget(pod) {
      const uid = pod.metadata.uid ?? "";
      if (assumed.delete(uid)) detach(uid);
    },
    isAssumed: (pod) => assumed.has(pod.metadata.uid ?? ""),
    snapshot() {
      expire();
      order ??= spreadOverZones([...present].map((name) => infoOf(name)));
      return {
        nodes: order,
        havingAffinity: [...havingAffinity].filter(isPresent),
        havingRequiredAntiAffinity: [...havingRequiredAntiAffinity].filter(isPresent),
        get: (name) => (present.has(name) ? infos.get(name) : undefined),
        nodesWithImage: (name) => imageCounts.get(name) ?? 0,
      };
    },
    get counts() {
      return { nodes: present.size, pods: podNodes.size, assumedPods: assumed.size };
    },
  };
}

function setMembership<T>(set: Set<T>, member: T, belongs: boolean): void {
  if (belongs) set.add(member);
  else set.delete(member);
}

/** Interleaves zones, so that evaluating only a part of the nodes still covers all zones. Source: node_tree.go */
function spreadOverZones(infos: readonly NodeInfo[]): NodeInfo[] {
  const zones = [...Map.groupBy(infos, (info) => info.node.metadata.labels?.[zoneLabel] ?? "").values()];
  const spread: NodeInfo[] = [];
  for (let turn = 0; spread.length < infos.length; turn++) {
    for (const zone of zones) {
      const info = zone[turn];
      if (info !== undefined) spread.push(info);
    }
  }
  return spread;
}

import type { Clock } from "@coxswain/apimachinery/clock/clock";
import type { Node, Pod } from "@coxswain/apimachinery/schema/kinds/core/v1";
import { addPod, type NodeInfo, newNodeInfo, newPodInfo, type PodInfo, removePod, setNode } from "./node-info.ts";
import type { ClusterSnapshot } from "./snapshot.ts";

/**
 * What the scheduler knows of nodes and of the pods on them, its own decisions that the API does not show yet
 * (assumed pods) included.
 * Source: pkg/scheduler/internal/cache/cache.go
 */
export interface ClusterCache {
  setNode(node: Node): void;
  removeNode(node: Node): void;
  /** A pod that has a node, as the API shows it; confirms an assumed one. */
  setPod(pod: Pod): void;
  removePod(pod: Pod): void;
  /** Counts the pod on the node before it is bound. */
  assume(pod: PodInfo, nodeName: string): void;
  /** Binding ended; the API has to show the pod within 15 minutes, or it does not count any more. */
  finishBinding(pod: Pod): void;
  /** Takes back `assume`. */
  forget(pod: Pod): void;
  isAssumed(pod: Pod): boolean;
  snapshot(): ClusterSnapshot;
  readonly counts: { nodes: number; pods: number; assumedPods: number };
}

const zoneLabel = "topology.kubernetes.io/zone";
/** An assumed pod that the API never showed: the binding was lost. Source: durationToExpireAssumedPod */
const assumedExpiryMs = 15 * 60_000;

export function newClusterCache(clock: Clock): ClusterCache {
  /** Also nodes that are gone while pods still name them; those have no place in a snapshot. */
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

/** One node of each zone in turn, so that a look at a part of the nodes sees all zones. Source: node_tree.go */
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

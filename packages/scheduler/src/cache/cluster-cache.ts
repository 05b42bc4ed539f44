import type { Node, Pod } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import type { Clock } from "@coxswain/apimachinery/process/clock/clock";
import { NodeChanges } from "./node-changes.ts";
import { addPod, type NodeInfo, newNodeInfo, newPodInfo, type PodInfo, removePod, setNode } from "./node-info.ts";
import type { ClusterSnapshot } from "./snapshot.ts";

const zoneLabel = "topology.kubernetes.io/zone";
/** Time after binding until an assumed pod that the API never showed is dropped. Source: durationToExpireAssumedPod */
const assumedExpiryMs = 15 * 60_000;

/**
 * The scheduler's view of nodes and the pods on them. It includes assumed pods: placements that were decided but that
 * the API does not show yet.
 * Source: pkg/scheduler/internal/cache/cache.go
 */
export class ClusterCache {
  readonly #clock: Clock;
  /** Includes deleted nodes that still have pods; snapshots leave those out. */
  readonly #infos = new Map<string, NodeInfo>();
  readonly #present = new Set<string>();
  readonly #podNodes = new Map<string, string>();
  /** UIDs of assumed pods. */
  readonly #assumed = new Set<string>();
  /** Assumed pods that are bound, by UID: when they expire, the first one first. */
  readonly #expiring = new Map<string, number>();
  readonly #havingAffinity = new Set<NodeInfo>();
  readonly #havingRequiredAntiAffinity = new Set<NodeInfo>();
  readonly #imageCounts = new Map<string, number>();
  readonly #changes = new NodeChanges();
  #order: NodeInfo[] | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Adds or replaces a node; Pods that were known to be on it before it was added count at once. */
  setNode(node: Node): void {
    const name = node.metadata.name ?? "";
    const info = this.#infoOf(name);
    if (!this.#present.has(name) || info.node.metadata.labels?.[zoneLabel] !== node.metadata.labels?.[zoneLabel])
      this.#order = undefined;
    if (this.#present.has(name)) this.#countImages(info, -1);
    this.#present.add(name);
    setNode(info, node);
    this.#changes.note(info);
    this.#countImages(info, 1);
  }

  /** Removes a node from snapshots. Its Pods are kept until they are removed themselves, or the node is added again. */
  removeNode(node: Node): void {
    const name = node.metadata.name ?? "";
    const info = this.#infos.get(name);
    if (info === undefined || !this.#present.delete(name)) return;
    this.#countImages(info, -1);
    this.#changes.note(info);
    this.#order = undefined;
    if (info.pods.size === 0) this.#infos.delete(name);
  }

  /** Adds or replaces a pod that the API shows as assigned to a node; confirms an assumed pod. */
  setPod(pod: Pod): void {
    this.#endAssumption(pod.metadata.uid ?? "");
    this.#attach(newPodInfo(pod), pod.spec.nodeName ?? "");
  }

  /** Removes a deleted Pod, assumed or not. */
  removePod(pod: Pod): void {
    this.#endAssumption(pod.metadata.uid ?? "");
    this.#detach(pod.metadata.uid ?? "");
  }

  /** Adds the pod to the node before it is bound. */
  assume(pod: PodInfo, nodeName: string): void {
    const uid = pod.pod.metadata.uid ?? "";
    this.#attach(pod, nodeName);
    this.#expiring.delete(uid);
    this.#assumed.add(uid);
  }

  /** Starts the expiry of an assumed pod: it is dropped unless the API shows it within 15 minutes. */
  finishBinding(pod: Pod): void {
    const uid = pod.metadata.uid ?? "";
    if (this.#assumed.has(uid)) this.#expiring.set(uid, this.#clock.monotonic() + assumedExpiryMs);
  }

  /** Reverts `assume`. */
  forget(pod: Pod): void {
    const uid = pod.metadata.uid ?? "";
    if (this.#endAssumption(uid)) this.#detach(uid);
  }

  isAssumed(pod: Pod): boolean {
    return this.#assumed.has(pod.metadata.uid ?? "");
  }

  /**
   * The current nodes, round-robin over zones; drops expired assumed Pods first. Shares the NodeInfos with the cache: valid for
   * one cycle, and read-only.
   */
  snapshot(): ClusterSnapshot {
    this.#expire();
    this.#order ??= spreadOverZones([...this.#present].map((name) => this.#infoOf(name)));
    const present = (infos: ReadonlySet<NodeInfo>): NodeInfo[] => [...infos].filter(({ name }) => this.#present.has(name));
    return {
      nodes: this.#order,
      changes: this.#changes,
      havingAffinity: () => present(this.#havingAffinity),
      havingRequiredAntiAffinity: () => present(this.#havingRequiredAntiAffinity),
      hasAffinity: () => this.#havingAffinity.size > 0,
      hasRequiredAntiAffinity: () => this.#havingRequiredAntiAffinity.size > 0,
      get: (name) => (this.#present.has(name) ? this.#infos.get(name) : undefined),
      nodesWithImage: (name) => this.#imageCounts.get(name) ?? 0,
    };
  }

  get counts(): { nodes: number; pods: number; assumedPods: number } {
    return { nodes: this.#present.size, pods: this.#podNodes.size, assumedPods: this.#assumed.size };
  }

  #infoOf(name: string): NodeInfo {
    return this.#infos.getOrInsertComputed(name, () => newNodeInfo({ metadata: { name }, spec: {} }));
  }

  #noteAffinity(info: NodeInfo): void {
    setMembership(this.#havingAffinity, info, info.podsWithAffinity.size > 0);
    setMembership(this.#havingRequiredAntiAffinity, info, info.refusing > 0);
  }

  #countImages({ images }: NodeInfo, by: 1 | -1): void {
    for (const name of images.keys()) {
      const count = (this.#imageCounts.get(name) ?? 0) + by;
      if (count > 0) this.#imageCounts.set(name, count);
      else this.#imageCounts.delete(name);
    }
  }

  #detach(uid: string): void {
    const nodeName = this.#podNodes.get(uid);
    if (nodeName === undefined) return;
    this.#podNodes.delete(uid);
    const info = this.#infos.get(nodeName);
    if (info === undefined) return;
    const hadAffinity = info.podsWithAffinity.size > 0;
    removePod(info, uid);
    this.#changes.note(info);
    if (hadAffinity) this.#noteAffinity(info);
    if (info.pods.size === 0 && !this.#present.has(nodeName)) this.#infos.delete(nodeName);
  }

  #attach(pod: PodInfo, nodeName: string): void {
    const uid = pod.pod.metadata.uid ?? "";
    this.#detach(uid);
    this.#podNodes.set(uid, nodeName);
    const info = this.#infoOf(nodeName);
    addPod(info, pod);
    this.#changes.note(info);
    if (pod.affinity !== undefined) this.#noteAffinity(info);
  }

  #expire(): void {
    if (this.#expiring.size === 0) return;
    const now = this.#clock.monotonic();
    for (const [uid, expiresMs] of this.#expiring) {
      if (expiresMs > now) break;
      this.#endAssumption(uid);
      this.#detach(uid);
    }
  }

  /** @returns false when the pod was not assumed */
  #endAssumption(uid: string): boolean {
    this.#expiring.delete(uid);
    return this.#assumed.delete(uid);
  }
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

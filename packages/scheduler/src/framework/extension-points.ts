import type { Pod } from "@coxswain/apimachinery/schema/kinds/core/v1";
import type { NodeInfo, PodInfo } from "../cache/node-info.ts";
import type { ClusterSnapshot } from "../cache/snapshot.ts";
import type { CycleState } from "./cycle-state.ts";
import type { Status } from "./status.ts";

export const maxNodeScore = 100;

/** A change in the cluster that may make a pod fit: `Node/UpdateNodeTaint`, `Pod/Delete`. `*` is any. */
export type ClusterEvent =
  `${"Node" | "Pod" | "PersistentVolumeClaim" | "*"}/${"Add" | "Delete" | "UpdateAllocatable" | "UpdateLabel" | "UpdateTaint" | "UpdateCondition" | "Update" | "*"}`;

/**
 * The points a plugin may take part in, in the order they run. A plugin has those it needs.
 * Source: KEP-624, pkg/scheduler/framework/interface.go
 */
export interface Plugin {
  readonly name: string;
  /** Which changes may make a pod fit that this plugin refused; absent: any. */
  readonly wakeUpOn?: readonly ClusterEvent[];

  /** Orders the queue; one plugin of a profile has it. Negative: `a` first. */
  compare?(a: QueuedPodView, b: QueuedPodView): number;
  preFilter?(state: CycleState, pod: PodInfo, snapshot: ClusterSnapshot): Status | undefined;
  filter?(state: CycleState, pod: PodInfo, node: NodeInfo): Status | undefined;
  /** Runs when no node fits. @returns the node that fits once the plugin's work is done (preemption). */
  postFilter?(state: CycleState, pod: PodInfo, statuses: ReadonlyMap<string, Status>): Promise<string | undefined>;
  preScore?(state: CycleState, pod: PodInfo, nodes: readonly NodeInfo[]): Status | undefined;
  /** From 0 to 100 after `normalize`. */
  score?(state: CycleState, pod: PodInfo, node: NodeInfo, snapshot: ClusterSnapshot): number;
  /** Brings the scores of all nodes to 0 to 100, in place. */
  normalize?(state: CycleState, pod: PodInfo, scores: number[]): void;
  reserve?(state: CycleState, pod: PodInfo, nodeName: string): Status | undefined;
  unreserve?(state: CycleState, pod: PodInfo, nodeName: string): void;
  permit?(state: CycleState, pod: PodInfo, nodeName: string): Promise<Status | undefined>;
  preBind?(state: CycleState, pod: PodInfo, nodeName: string): Promise<Status | undefined>;
  bind?(state: CycleState, pod: PodInfo, nodeName: string): Promise<Status | undefined>;
  postBind?(state: CycleState, pod: PodInfo, nodeName: string): void;
}

/** What ordering the queue may look at. */
export interface QueuedPodView {
  readonly pod: Pod;
  /** When it came into the queue, in ms. */
  readonly queuedAtMs: number;
}

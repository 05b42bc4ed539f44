import type { Pod } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import type { Steps } from "@coxswain/apimachinery/process/event-loop/steps";
import type { NodeInfo, PodInfo } from "../cache/node-info.ts";
import type { ClusterSnapshot } from "../cache/snapshot.ts";
import type { ClusterEvent } from "./cluster-event.ts";
import type { CycleState } from "./cycle-state.ts";
import type { Status } from "./status.ts";

export const maxNodeScore = 100;

/** Outcome of `postFilter`. */
export interface PostFilterResult {
  /** Sets the pod's nominated node. `""` clears an earlier nomination, undefined keeps it. */
  readonly nominatedNode?: string;
  readonly status?: Status;
}

/**
 * The extension points in the order they run. A plugin implements those it needs. A status of undefined means Success.
 * Source: KEP-624, pkg/scheduler/framework/interface.go
 */
export interface Plugin {
  readonly name: string;
  /** Events that may make a pod schedulable that this plugin rejected; `allEvents` when absent. */
  readonly wakeUpOn?: readonly ClusterEvent[];
  /** Points at which a configuration may enable the plugin without effect, because upstream's plugin implements them. */
  readonly idleAt?: readonly ("preFilter" | "preScore" | "score")[];

  /** Orders the queue; negative when `a` comes first. Each profile has exactly one queue sort plugin. */
  compare?(a: QueuedPodView, b: QueuedPodView): number;
  /** In steps where it compares the pod with all nodes. */
  preFilter?(state: CycleState, pod: PodInfo, snapshot: ClusterSnapshot): Steps<Status | undefined> | Status | undefined;
  /** Update the state of preFilter as if `other` were added to, or removed from, the node. */
  addPod?(state: CycleState, pod: PodInfo, other: PodInfo, node: NodeInfo): void;
  removePod?(state: CycleState, pod: PodInfo, other: PodInfo, node: NodeInfo): void;
  /** False when `filter` accepts the pod on every node: it need not be called then. @param state as preFilter left it, not simulated */
  mayRefuse?(state: CycleState, pod: PodInfo): boolean;
  filter?(state: CycleState, pod: PodInfo, node: NodeInfo): Status | undefined;
  /** Runs when no node fits. Must read the snapshot before its first await. */
  postFilter?(
    state: CycleState,
    pod: PodInfo,
    statuses: ReadonlyMap<string, Status>,
    snapshot: ClusterSnapshot,
  ): Promise<PostFilterResult>;
  /** In steps where it compares the pod with all nodes. */
  preScore?(
    state: CycleState,
    pod: PodInfo,
    nodes: readonly NodeInfo[],
    snapshot: ClusterSnapshot,
  ): Steps<Status | undefined> | Status | undefined;
  /** The normalized score of all nodes when it is the same for each: `score` and `normalize` need not be called then. */
  commonScore?(state: CycleState, pod: PodInfo, nodes: readonly NodeInfo[], snapshot: ClusterSnapshot): number | undefined;
  /** Higher is better; from 0 to 100 once normalized. */
  score?(state: CycleState, pod: PodInfo, node: NodeInfo, snapshot: ClusterSnapshot): number;
  /** Scales scores to 0..100 in place; `scores[i]` belongs to `nodes[i]`. */
  normalize?(state: CycleState, pod: PodInfo, scores: number[], nodes: readonly NodeInfo[]): void;
  reserve?(state: CycleState, pod: PodInfo, nodeName: string): Status | undefined;
  unreserve?(state: CycleState, pod: PodInfo, nodeName: string): void;
  permit?(state: CycleState, pod: PodInfo, nodeName: string): Promise<Status | undefined>;
  preBind?(state: CycleState, pod: PodInfo, nodeName: string): Promise<Status | undefined>;
  bind?(state: CycleState, pod: PodInfo, nodeName: string): Promise<Status | undefined>;
  postBind?(state: CycleState, pod: PodInfo, nodeName: string): void;
}

/** Name in the configuration → method that a plugin implements to take part, and upstream's interface name for errors. */
export const extensionPoints = {
  preFilter: { method: "preFilter", type: "PreFilterPlugin" },
  filter: { method: "filter", type: "FilterPlugin" },
  postFilter: { method: "postFilter", type: "PostFilterPlugin" },
  reserve: { method: "reserve", type: "ReservePlugin" },
  preScore: { method: "preScore", type: "PreScorePlugin" },
  score: { method: "score", type: "ScorePlugin" },
  preBind: { method: "preBind", type: "PreBindPlugin" },
  bind: { method: "bind", type: "BindPlugin" },
  postBind: { method: "postBind", type: "PostBindPlugin" },
  permit: { method: "permit", type: "PermitPlugin" },
  queueSort: { method: "compare", type: "QueueSortPlugin" },
} as const satisfies Record<string, { method: keyof Plugin; type: string }>;
export type ExtensionPoint = keyof typeof extensionPoints;

/** The part of a queue entry that queue sort plugins see. */
export interface QueuedPodView {
  readonly pod: Pod;
  /** Time of the last enqueue in ms, monotonic clock. */
  readonly queuedAtMs: number;
}

import type { Pod } from "@coxswain/apimachinery/schema/kinds/core/v1";
import type { NodeInfo, PodInfo } from "../cache/node-info.ts";
import type { ClusterSnapshot } from "../cache/snapshot.ts";
import type { ClusterEvent } from "./cluster-event.ts";
import type { CycleState } from "./cycle-state.ts";
import type { Status } from "./status.ts";

export const maxNodeScore = 100;

/** What `postFilter` found. */
export interface PostFilterResult {
  /** The node that fits once the plugin's work is done; `""` takes an earlier nomination back, absent leaves it. */
  readonly nominatedNode?: string;
  readonly status?: Status;
}

/**
 * The points a plugin may take part in, in the order they run. A plugin has those it needs; undefined as an answer is
 * success.
 * Source: KEP-624, pkg/scheduler/framework/interface.go
 */
export interface Plugin {
  readonly name: string;
  /** Which changes may make a pod fit that this plugin refused; absent: any. */
  readonly wakeUpOn?: readonly ClusterEvent[];
  /** Where a configuration may name it although it has nothing to do there: upstream's prepares itself. */
  readonly idleAt?: readonly ("preFilter" | "preScore" | "score")[];

  /** Orders the queue; one plugin of a profile has it. Negative: `a` first. */
  compare?(a: QueuedPodView, b: QueuedPodView): number;
  preFilter?(state: CycleState, pod: PodInfo, snapshot: ClusterSnapshot): Status | undefined;
  /** What preFilter noted, as if `other` were on the node, too; and as if it were not. */
  addPod?(state: CycleState, pod: PodInfo, other: PodInfo, node: NodeInfo): void;
  removePod?(state: CycleState, pod: PodInfo, other: PodInfo, node: NodeInfo): void;
  filter?(state: CycleState, pod: PodInfo, node: NodeInfo): Status | undefined;
  /** Runs when no node fits. The look at the cluster comes before its first await. */
  postFilter?(
    state: CycleState,
    pod: PodInfo,
    statuses: ReadonlyMap<string, Status>,
    snapshot: ClusterSnapshot,
  ): Promise<PostFilterResult>;
  preScore?(state: CycleState, pod: PodInfo, nodes: readonly NodeInfo[], snapshot: ClusterSnapshot): Status | undefined;
  /** From 0 to 100 after `normalize`. */
  score?(state: CycleState, pod: PodInfo, node: NodeInfo, snapshot: ClusterSnapshot): number;
  /** Brings the scores of all nodes to 0 to 100, in place; `scores[i]` is of `nodes[i]`. */
  normalize?(state: CycleState, pod: PodInfo, scores: number[], nodes: readonly NodeInfo[]): void;
  reserve?(state: CycleState, pod: PodInfo, nodeName: string): Status | undefined;
  unreserve?(state: CycleState, pod: PodInfo, nodeName: string): void;
  permit?(state: CycleState, pod: PodInfo, nodeName: string): Promise<Status | undefined>;
  preBind?(state: CycleState, pod: PodInfo, nodeName: string): Promise<Status | undefined>;
  bind?(state: CycleState, pod: PodInfo, nodeName: string): Promise<Status | undefined>;
  postBind?(state: CycleState, pod: PodInfo, nodeName: string): void;
}

/** As the configuration names them, with the method that makes a plugin take part. */
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

/** What ordering the queue may look at. */
export interface QueuedPodView {
  readonly pod: Pod;
  /** When it came into the queue, in ms of a clock that only grows. */
  readonly queuedAtMs: number;
}

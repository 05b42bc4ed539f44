import type { ResourceRef } from "../objects/meta/group-version.ts";
import type { KubeObject } from "../objects/meta/types.ts";

/** One object of the API. */
export interface ObjectRef {
  /** `""` for the core group. */
  readonly group: string;
  /** Plural, as in the URL. */
  readonly resource: string;
  readonly kind: string;
  /** `""` for objects without a namespace. */
  readonly namespace: string;
  readonly name: string;
  /** `""` when it is not known. */
  readonly uid: string;
}

/**
 * `waiting`: will be tried again when something else happens; `refused`: a rule forbids it; `failed`: an attempt ended with an
 * error; `done`: the final decision.
 */
export type Verdict = "waiting" | "refused" | "failed" | "done";

/** What a daemon last decided about an object, and why. */
export interface Decision {
  /** The daemon: `kube-scheduler`, `kube-controller-manager`, `kubelet`, `kube-apiserver`. */
  readonly component: string;
  /** The part of it: `scheduler/NodeResourcesFit`, `replicaset-controller`, `volumes`, `admission/ResourceQuota`. */
  readonly source: string;
  readonly object: ObjectRef;
  readonly verdict: Verdict;
  /** CamelCase and stable, for programs: `InsufficientResources`, `FinalizerPending`. */
  readonly reason: string;
  /** One line of plain English with the numbers: `needs 300m more CPU on any of 3 nodes`. */
  readonly summary: string;
  /** Shown instead of the summary to users who may not read `related`. Default: the reason as text. */
  readonly plain?: string;
  /** Since when verdict and reason are the same; RFC 3339, as `lastAt` and `nextTryAt`. */
  readonly since: string;
  readonly lastAt: string;
  /** How often in a row it was decided so. */
  readonly count: number;
  /** When it is tried again without anything else happening. */
  readonly nextTryAt?: string;
  /** What it waits for, or what refused it. */
  readonly related?: readonly ObjectRef[];
  /** Numbers and parts for programs, by source: per node plugin and reason, the scores of the best three. */
  readonly details?: Readonly<Record<string, unknown>>;
  readonly remedy?: string;
}

/** What the daemons of a cluster decided, for the API server. */
export interface DecisionReader {
  /**
   * Queries the daemons involved, waits for about a second at most, and continues without those that did not answer.
   * @returns the decisions about the objects, in no order; `silent`: daemons that did not answer in time, such as `kubelet/n1`
   */
  of(refs: readonly ObjectRef[], signal: AbortSignal): Promise<DecisionAnswers>;
}

export interface DecisionAnswers {
  readonly decisions: readonly Decision[];
  readonly silent: readonly string[];
}

/** Where no authenticator is configured. */
export const noDecisions: DecisionReader = { of: async () => ({ decisions: [], silent: [] }) };

/** Refers to an object of the API; its namespace is empty when it is cluster-scoped, its uid when it is not stored yet. */
export function objectRef(
  { group, resource, kind }: Pick<ResourceRef, "group" | "resource" | "kind">,
  { metadata }: Pick<KubeObject, "metadata">,
): ObjectRef {
  return { group, resource, kind, namespace: metadata.namespace ?? "", name: metadata.name ?? "", uid: metadata.uid ?? "" };
}

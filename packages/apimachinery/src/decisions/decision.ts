import type { ResourceRef } from "../objects/meta/group-version.ts";
import type { KubeObject } from "../objects/meta/types.ts";

/** A reference to an API object. */
export interface ObjectRef {
  /** `""` for the core group. */
  readonly group: string;
  /** Plural, as in the URL. */
  readonly resource: string;
  readonly kind: string;
  /** `""` for objects without a namespace. */
  readonly namespace: string;
  readonly name: string;
  /** `""` when unknown. */
  readonly uid: string;
}

/**
 * `waiting`: will be tried again when something else happens; `refused`: a rule forbids it; `failed`: an attempt ended with an
 * error; `done`: the final decision.
 */
export type Verdict = "waiting" | "refused" | "failed" | "done";

/** The last decision of a daemon about an object, with its reason. */
export interface Decision {
  /** The daemon: `kube-scheduler`, `kube-controller-manager`, `kubelet`, `kube-apiserver`. */
  readonly component: string;
  /** Component of the daemon: `scheduler/NodeResourcesFit`, `replicaset-controller`, `volumes`, `admission/ResourceQuota`. */
  readonly source: string;
  readonly object: ObjectRef;
  readonly verdict: Verdict;
  /** CamelCase and stable, for programs: `InsufficientResources`, `FinalizerPending`. */
  readonly reason: string;
  /** One line of English with the relevant numbers: `needs 300m more CPU on any of 3 nodes`. */
  readonly summary: string;
  /** Shown instead of the summary to users who may not read `related`. Default: the reason as text. */
  readonly plain?: string;
  /** Since when verdict and reason are the same; RFC 3339, as `lastAt` and `nextTryAt`. */
  readonly since: string;
  readonly lastAt: string;
  /** Number of consecutive equal decisions. */
  readonly count: number;
  /** Time of the next attempt if nothing changes before. */
  readonly nextTryAt?: string;
  /** Objects that it waits for, or that refused it. */
  readonly related?: readonly ObjectRef[];
  /** Numbers and parts for programs, by source: per node plugin and reason, the scores of the best three. */
  readonly details?: Readonly<Record<string, unknown>>;
  readonly remedy?: string;
}

/** Queries the decisions of a cluster's daemons, for the API server. */
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

/** Used where no authenticator is configured. */
export const noDecisions: DecisionReader = { of: async () => ({ decisions: [], silent: [] }) };

/** Refers to an object of the API; its namespace is empty when it is cluster-scoped, its uid when it is not stored yet. */
export function objectRef(
  { group, resource, kind }: Pick<ResourceRef, "group" | "resource" | "kind">,
  { metadata }: Pick<KubeObject, "metadata">,
): ObjectRef {
  return { group, resource, kind, namespace: metadata.namespace ?? "", name: metadata.name ?? "", uid: metadata.uid ?? "" };
}

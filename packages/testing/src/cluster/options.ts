import type { NodeSpec } from "../nodes/fake-nodes.ts";
import type { PodRule } from "../nodes/pod-rules.ts";
import type { SocketOptions } from "./socket.ts";

export interface ClusterOptions {
  /** Fake nodes: how many, or which. Default 1. */
  readonly nodes?: number | readonly NodeSpec[];
  /** How their pods behave. Default: they are ready immediately, and those that are not restarted succeed after 1 s. */
  readonly pods?: readonly PodRule[];
  /** Which controllers run: all that kube-controller-manager runs by default, none, or those named, as in `--controllers`. */
  readonly controllers?: boolean | readonly string[];
  /** Default true. */
  readonly scheduler?: boolean;
  /** URLs of a real etcd. Default: a store in memory. */
  readonly etcd?: readonly string[];
  /** Keys in etcd start with it. Default `/registry`; give each cluster its own when several share an etcd. */
  readonly etcdPrefix?: string;
  /**
   * `real`, or `virtual`: time stands still but for `advance`, `settle` and the waiting functions of the cluster. A time (ISO 8601 or ms
   * since the epoch) is where virtual time begins. Default real.
   */
  readonly clock?: "real" | "virtual" | { readonly startsAt: string | number };
  /** Opens a port, for programs that need one. Default: none; `cluster.listen()` opens one later. */
  readonly socket?: boolean | SocketOptions;
  /** More flags of kube-apiserver: `["--authorization-mode=AlwaysAllow"]`. */
  readonly apiServerFlags?: readonly string[];
  /** Verbosity of the programs' logs on stderr. Default: no logs. */
  readonly log?: number;
}

/**
 * @returns the nodes; a number stands for `node-1`, `node-2` …
 * @throws Error for a number that is not an integer from 0 to 5,000
 */
export function nodesOf(given: ClusterOptions["nodes"] = 1): readonly NodeSpec[] {
  if (typeof given !== "number") return given;
  if (!Number.isInteger(given) || given < 0 || given > 5_000)
    throw new Error(`nodes: ${given} must be a whole number from 0 to 5000`);
  return Array.from({ length: given }, (_, index) => ({ name: `node-${index + 1}` }));
}

/** @returns the value of --controllers; true: all, false: none */
export function controllersOf(given: ClusterOptions["controllers"] = true): readonly string[] {
  return given === true ? ["*"] : given === false ? [] : given;
}

/** @returns where virtual time begins; undefined: real time */
export function startOf(given: ClusterOptions["clock"] = "real"): number | undefined {
  if (given === "real") return undefined;
  const startsAt = given === "virtual" ? Date.UTC(2022, 0, 1) : given.startsAt;
  const ms = typeof startsAt === "number" ? startsAt : Date.parse(startsAt);
  if (!Number.isFinite(ms)) throw new Error(`clock: ${JSON.stringify(startsAt)} is no time`);
  return ms;
}

import type { NodeSpec } from "../nodes/fake-nodes.ts";
import type { PodRule } from "../nodes/pod-rules.ts";
import type { SocketOptions } from "./socket.ts";

export interface ClusterOptions {
  /** Fake nodes: a number, or a list of nodes. Default 1. */
  readonly nodes?: number | readonly NodeSpec[];
  /** Behaviour of their Pods. Default: ready immediately; those that are not restarted succeed after 1 s. */
  readonly pods?: readonly PodRule[];
  /** Controllers to run: true for kube-controller-manager's defaults, false for none, or names as in `--controllers`. */
  readonly controllers?: boolean | readonly string[];
  /** Default true. */
  readonly scheduler?: boolean;
  /** URLs of a real etcd. Default: a store in memory. */
  readonly etcd?: readonly string[];
  /** Prefix of keys in etcd. Default `/registry`; clusters that share an etcd need different ones. */
  readonly etcdPrefix?: string;
  /**
   * `real`, or `virtual`: time only advances in `advance`, `settle` and the waiting functions of the cluster. A time (ISO 8601 or ms
   * since the epoch) starts virtual time there. Default real.
   */
  readonly clock?: "real" | "virtual" | { readonly startsAt: string | number };
  /** Opens a port, for programs that need an address. Default: none; `cluster.listen()` opens one later. */
  readonly socket?: boolean | SocketOptions;
  /** Additional flags of kube-apiserver: `["--authorization-mode=AlwaysAllow"]`. */
  readonly apiServerFlags?: readonly string[];
  /** Log verbosity of all parts, on stderr. Default: no logs. */
  readonly log?: number;
}

/**
 * @returns the nodes; a number `n` gives `node-1` to `node-n`
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

/** @returns the start of virtual time; undefined: real time */
export function startOf(given: ClusterOptions["clock"] = "real"): number | undefined {
  if (given === "real") return undefined;
  const startsAt = given === "virtual" ? Date.UTC(2022, 0, 1) : given.startsAt;
  const ms = typeof startsAt === "number" ? startsAt : Date.parse(startsAt);
  if (!Number.isFinite(ms))
    throw new Error(
      `clock: ${JSON.stringify(startsAt)} is no time; give a date such as "2022-01-01T00:00:00Z", or ms since 1970`,
    );
  return ms;
}

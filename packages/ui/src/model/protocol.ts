/** Messages between page and worker. */
import type { Resource, Row } from "./row.ts";

export interface Start {
  readonly type: "start";
  readonly token: string;
  /** Requested where the user may not list all namespaces; `""` for none. */
  readonly namespace: string;
  /** Whether the connection carries many requests at once (HTTP/2). Without it some resources are requested now and then. */
  readonly isMultiplexed: boolean;
}

/**
 * `loading`: the first list is under way; `live`: up to date; `away`: the server cannot be reached, or failed, and is tried again;
 * `denied`: the user may not; `absent`: not served.
 */
type SourceState = "loading" | "live" | "away" | "denied" | "absent";

export interface Source {
  readonly state: SourceState;
  /** Why, as the server put it. */
  readonly message: string;
}

export type Usage = readonly [key: string, cpuMilli: number, memoryBytes: number];

export type FromWorker =
  | { readonly type: "rows"; readonly set: readonly Row[]; readonly gone: readonly string[] }
  | { readonly type: "source"; readonly resource: Resource; readonly source: Source }
  /** Of nodes by name, of pods by `namespace/name`; each message replaces the last. */
  | { readonly type: "usage"; readonly nodes: readonly Usage[]; readonly pods: readonly Usage[] }
  /** The credentials are not accepted any more. */
  | { readonly type: "refused"; readonly message: string };

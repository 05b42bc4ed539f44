/** Messages between page and worker. */
import type { Resource, Row } from "./row.ts";

export interface Start {
  readonly type: "start";
  readonly token: string;
  /** Requested where the user may not list all namespaces; `""` for none. */
  readonly namespace: string;
  /** True when the connection multiplexes requests (HTTP/2). Otherwise some resources are polled. */
  readonly isMultiplexed: boolean;
}

/**
 * `loading`: the first list is in progress; `live`: up to date; `away`: the server is unreachable or failed, and is retried;
 * `denied`: the user may not list it; `absent`: not served.
 */
type SourceState = "loading" | "live" | "away" | "denied" | "absent";

export interface Source {
  readonly state: SourceState;
  /** The server's message. */
  readonly message: string;
}

export type Usage = readonly [key: string, cpuMilli: number, memoryBytes: number];

export type FromWorker =
  | { readonly type: "rows"; readonly set: readonly Row[]; readonly gone: readonly string[] }
  | { readonly type: "source"; readonly resource: Resource; readonly source: Source }
  /** Usage of nodes by name and of pods by `namespace/name`; each message replaces the previous one. */
  | { readonly type: "usage"; readonly nodes: readonly Usage[]; readonly pods: readonly Usage[] }
  /** The server no longer accepts the credentials. */
  | { readonly type: "refused"; readonly message: string };

/** A hostile client: a table row, run in the attacker's process next to a well-behaved client. */
import type { Socket } from "node:net";
import type { TLSSocket } from "node:tls";
import type { Client } from "@coxswain/apimachinery/client/client";
import type { RawClient, RawClientOptions } from "@coxswain/apimachinery/transport/http2/testing/raw-client";
import type { Field } from "@coxswain/apimachinery/transport/http2/testing/raw-frames";
import type { Backend, BackendHandler } from "./backend.ts";

/**
 * - anonymous: no credential
 * - ordinary: authenticated, may read and write ConfigMaps of `attacked` and nothing else
 * - node: the credential of the node `hostile`
 * - account: the service account `attacked/robot`, with the permissions of ordinary
 * - owner: may do everything in `attacked` and `audited`
 * - platform: may install definitions, webhooks and aggregated APIs, and do the rest too
 */
export const userNames = ["anonymous", "ordinary", "node", "account", "owner", "platform"] as const;
export type UserName = (typeof userNames)[number];

export interface Case {
  readonly name: string;
  readonly user: UserName;
  /** Runs before the measurement. */
  setup?(attack: Attack): Promise<unknown>;
  /** Runs until `attack.signal` is aborted; then pending operations are abandoned and its connections are destroyed. */
  run(attack: Attack): Promise<unknown>;
  cleanup?(attack: Attack): Promise<unknown>;
}

export interface RequestOptions {
  readonly body?: object | string | Buffer;
  /** JSON when absent. */
  readonly type?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

export interface Attack {
  readonly port: number;
  readonly ca: string;
  /** Aborted at the end of the attack. */
  readonly signal: AbortSignal;
  /** For setup and cleanup. */
  readonly admin: Client;
  /** Header fields with the attacker's credentials; empty for anonymous. */
  readonly auth: readonly Field[];
  /** Sends a request as the case's user and counts the status. Does not throw for error statuses. */
  request(method: string, path: string, options?: RequestOptions): Promise<{ status: number; body: Buffer }>;
  /** Sends a request as the administrator, not counted. @throws Error for a status of 400 and above */
  prepare(method: string, path: string, options?: RequestOptions): Promise<Buffer>;
  /** Deletes the objects of a collection as the administrator, in pages, and waits until they are gone. */
  removeAll(path: string): Promise<void>;
  http2(options?: Partial<RawClientOptions>): Promise<RawClient>;
  tls(protocol?: "http/1.1" | "h2"): Promise<TLSSocket>;
  tcp(): Promise<Socket>;
  /** Repeats an operation until the end of the attack, in `lanes` concurrent loops; errors are counted. */
  repeat(lanes: number, work: (lane: number, round: number) => Promise<unknown>): Promise<void>;
  /** Resolves at the end of the attack. */
  readonly over: Promise<void>;
  count(what: string): void;
  /** A TLS server with a certificate of the cluster's CA; it is stopped after cleanup. */
  backend(handler: BackendHandler): Promise<Backend>;
}

/** The namespace in which all users except anonymous may write ConfigMaps. */
export const attacked = "/api/v1/namespaces/attacked";

import { setTimeout as pause } from "node:timers/promises";
import type { Clock } from "@coxswain/apimachinery/process/clock/clock";
import type { Logger } from "@coxswain/apimachinery/process/logging/logger";
import type { Connect } from "@coxswain/apimachinery/transport/connect";
import type { GrpcCalls } from "@coxswain/apimachinery/transport/grpc/calls";
import type { GrpcChannel } from "@coxswain/apimachinery/transport/grpc/channel";
import type { StorageMetrics } from "../metrics.ts";
import { type EtcdIdentity, newEtcdChannel } from "./channel.ts";
import { EtcdError, etcdErrorOf, statusErrorOf } from "./errors.ts";
import {
  decodeLeaseGrant,
  decodeRange,
  decodeRevision,
  decodeTxn,
  encodeCompaction,
  encodeLeaseGrant,
  encodePut,
  encodeRange,
  encodeTxn,
  type RangeRequest,
  type RangeResponse,
  type TxnRequest,
  type TxnResponse,
} from "./wire.ts";
import { decodeMemberList, decodeStatus, type Member, memberListRequest, type StatusResponse } from "./wire-cluster.ts";

/**
 * Client of one etcd cluster: raw messages over a connection to each member. Calls stay with one member until it fails. Reads
 * are retried on the next member; a write is retried only when no member can have received it. Every call has a deadline.
 * @throws EtcdError
 */
export interface EtcdClient {
  readonly servers: readonly string[];
  /** Linearizable. */
  range(request: RangeRequest): Promise<RangeResponse>;
  txn(request: TxnRequest): Promise<TxnResponse>;
  /** @returns the revision of the write. */
  put(key: string, value: Uint8Array): Promise<number>;
  compact(revision: number): Promise<void>;
  grantLease(ttlSeconds: number): Promise<bigint>;
  /** Status of one member, by its index in `servers`. */
  status(server: number): Promise<StatusResponse>;
  /** The current members of the cluster, whether or not listed in `servers`. */
  members(): Promise<Member[]>;
  /** Status of the member that answers at `url`, over a connection for this single call. */
  statusAt(url: string): Promise<StatusResponse>;
  /**
   * Opens a watch stream. @param failed index of the member whose stream failed: the stream is opened to the next member; undefined: to the
   * current one
   */
  openWatch(failed: number | undefined, handlers: WatchHandlers): WatchStream;
  close(): void;
}

export interface WatchHandlers {
  /** @param message a view on memory that is not reused; may be kept */
  message(message: Buffer): void;
  /** Called last, exactly once unless the stream is cancelled. */
  ended(err: EtcdError): void;
}

export interface WatchStream {
  /** Index of its member in `servers`. */
  readonly server: number;
  /** Buffered until the connection is established. */
  write(message: Buffer): void;
  cancel(): void;
}

interface EtcdClientOptions {
  /** URLs with a scheme: `https://10.0.0.1:2379`. */
  servers: readonly string[];
  /** PEM. */
  ca?: Buffer | undefined;
  cert?: Buffer | undefined;
  key?: Buffer | undefined;
  /** The current client certificate, used instead of `cert` and `key` for each new connection. */
  identity?: (() => EtcdIdentity | undefined) | undefined;
  calls?: GrpcCalls | undefined;
  /** Dials members; undefined: directly. */
  connect?: Connect | undefined;
  /** Deadline of one call, including all its retries. */
  deadlineMs?: number;
}

const defaultDeadlineMs = 10_000;
/** Timeout of `statusAt`; a member that takes longer counts as unreachable. */
const statusAtMs = 2_000;
/** Pause between rounds of retries through all members. */
const roundMs = 100;

/** Creates a client; connections are made on the first call. @throws Error when `servers` is empty */
export function newEtcdClient(options: EtcdClientOptions): EtcdClient {
  if (options.servers.length === 0) throw new Error("the list of etcd servers is empty");
  const members = options.servers.map((server) => newEtcdChannel(server, options));
  const deadlineMs = options.deadlineMs ?? defaultDeadlineMs;
  let current = Math.floor(Math.random() * members.length);
  const closing = new AbortController();

  async function call(path: string, bytes: Buffer, repeatable: boolean): Promise<Buffer> {
    const started = performance.now();
    let leftMs = deadlineMs;
    for (let attempt = 1; ; attempt++) {
      const used = current;
      try {
        return await members[used]!.unary(path, bytes, leftMs);
      } catch (err) {
        const failure = etcdErrorOf(err);
        const { reason } = failure;
        const movable = reason === "unsent" || (repeatable && reason === "unavailable");
        if ((movable || reason === "unavailable" || reason === "deadline") && current === used) {
          current = (used + 1) % members.length;
        }
        if (!movable || closing.signal.aborted) throw failure;
        // All members failed: retry until the deadline, or until the call is aborted.
        if (attempt % members.length === 0) await pause(roundMs, undefined, { signal: closing.signal }).catch(() => {});
        leftMs = deadlineMs - Math.ceil(performance.now() - started);
        if (leftMs <= 0) throw failure;
      }
    }
  }

  return {
    servers: options.servers,
    async range(request) {
      return decodeRange(await call("/etcdserverpb.KV/Range", encodeRange(request), true));
    },
    async txn(request) {
      return decodeTxn(await call("/etcdserverpb.KV/Txn", encodeTxn(request), false));
    },
    async put(key, value) {
      return decodeRevision(await call("/etcdserverpb.KV/Put", encodePut(key, value), false));
    },
    async compact(revision) {
      await call("/etcdserverpb.KV/Compact", encodeCompaction(revision), true);
    },
    async grantLease(ttlSeconds) {
      return decodeLeaseGrant(await call("/etcdserverpb.Lease/LeaseGrant", encodeLeaseGrant(ttlSeconds), false));
    },
    async status(server) {
      const member = members[server];
      if (member === undefined) throw new Error(`no etcd server with index ${server}: there are ${members.length}`);
      return statusOf(member, deadlineMs);
    },
    async members() {
      return decodeMemberList(await call("/etcdserverpb.Cluster/MemberList", memberListRequest, true));
    },
    async statusAt(url) {
      const connection = newEtcdChannel(url, options);
      try {
        return await statusOf(connection, statusAtMs);
      } finally {
        connection.close();
      }
    },
    openWatch(failed, handlers) {
      // Not the one after the current one: calls may have left the same member already.
      const server = failed === undefined ? current : (failed + 1) % members.length;
      return openStream(members[server]!, server, handlers);
    },
    close() {
      closing.abort();
      for (const member of members) member.close();
    },
  };
}

function openStream(member: GrpcChannel, server: number, handlers: WatchHandlers): WatchStream {
  const stream = member.stream(
    "/etcdserverpb.Watch/Watch",
    {
      message: (bytes) => handlers.message(bytes),
      ended: (err) => handlers.ended(err === undefined ? new EtcdError("other", "etcd ended the watch") : etcdErrorOf(err)),
    },
    needsLeader,
  );
  return { server, write: (message) => stream.write(message), cancel: () => stream.cancel() };
}

const noBytes = Buffer.alloc(0);
/** Makes a member that loses its leader end the watch instead of leaving it silent. */
const needsLeader = { name: "hasleader", value: "true" };

async function statusOf(member: GrpcChannel, timeoutMs: number): Promise<StatusResponse> {
  try {
    return decodeStatus(await member.unary("/etcdserverpb.Maintenance/Status", noBytes, timeoutMs));
  } catch (err) {
    throw etcdErrorOf(err);
  }
}

const noSpaceWarningMs = 60_000;

interface MeasuredCallsOptions {
  /** Go's name of the stored type, `*core.Pod`. */
  readonly goType: string;
  /** For the log. */
  readonly servers: readonly string[];
  /** For the log: `/registry/pods/`. */
  readonly prefix: string;
  readonly clock: Clock;
  readonly log: Logger;
  readonly metrics?: StorageMetrics | undefined;
}

/** Times the etcd calls of one resource and converts their errors to Status errors. */
export class MeasuredCalls {
  readonly #options: MeasuredCallsOptions;
  readonly #listType: string;
  /** Time of the last warning. Reads and readiness are unaffected, so the log must show it, at a limited rate. */
  #warnedAt = Number.NEGATIVE_INFINITY;

  constructor(options: MeasuredCallsOptions) {
    this.#options = options;
    this.#listType = `*[]${options.goType.slice(1)}`;
  }

  /**
   * @param operation `get`, `list`, `update`, …: the metric's label
   * @param type the metric's other label; the resource's type or, for `list`, the type of its list
   * @throws what `call` throws, as a Status error
   */
  async timed<T>(
    operation: string,
    call: Promise<T>,
    type = operation === "list" ? this.#listType : this.#options.goType,
  ): Promise<T> {
    const { clock, metrics } = this.#options;
    const started = clock.monotonic();
    try {
      return await call;
    } catch (err) {
      if (err instanceof EtcdError && err.reason === "no-space") this.#warnOfNoSpace();
      throw statusErrorOf(err);
    } finally {
      metrics?.etcdRequest(operation, type, (clock.monotonic() - started) / 1000);
    }
  }

  #warnOfNoSpace(): void {
    const { clock, log, servers, prefix } = this.#options;
    if (clock.monotonic() - this.#warnedAt < noSpaceWarningMs) return;
    this.#warnedAt = clock.monotonic();
    log.warn("etcd has no space left and refuses all writes; compact and defragment it, then disarm the alarm", {
      servers: servers.join(","),
      prefix,
    });
  }
}

import { isIP } from "node:net";
import { checkServerIdentity, type PeerCertificate } from "node:tls";
import {
  type CallOptions,
  type ChannelCredentials,
  type ClientDuplexStream,
  credentials,
  type Client as GrpcClient,
  Metadata,
} from "@grpc/grpc-js";
import { Etcd3, type IOptions } from "etcd3";
import { EtcdError, etcdErrorOf } from "./errors.ts";
import {
  decodeLeaseGrant,
  decodeRange,
  decodeRevision,
  decodeStatus,
  decodeTxn,
  encodeCompaction,
  encodeLeaseGrant,
  encodePut,
  encodeRange,
  encodeTxn,
  type RangeRequest,
  type RangeResponse,
  type StatusResponse,
  type TxnRequest,
  type TxnResponse,
} from "./wire.ts";

/**
 * One etcd cluster. Raw bytes over etcd3's channels: its own calls have a 4 MiB limit, no deadline, a circuit breaker
 * that stays blind for 5 s and messages as slow objects. A channel for each member; calls stay with one member until
 * it fails. Reads move on to the next; a write does so only when it was never sent. Every call has a deadline.
 * @throws EtcdError
 */
export interface EtcdClient {
  readonly servers: readonly string[];
  /** Linearizable unless `serializable`. */
  range(request: RangeRequest): Promise<RangeResponse>;
  txn(request: TxnRequest): Promise<TxnResponse>;
  /** @returns the revision of the write. */
  put(key: string, value: Uint8Array): Promise<number>;
  compact(revision: number): Promise<void>;
  grantLease(ttlSeconds: number): Promise<bigint>;
  /** Of one member, by its place in `servers`. */
  status(server: number): Promise<StatusResponse>;
  /** A watch stream to the present member; `turn` counts up to use another one after a failure. */
  openWatch(turn: number): ClientDuplexStream<Buffer, Buffer>;
  close(): void;
}

export interface EtcdClientOptions {
  /** `https://10.0.0.1:2379`, scheme and all. */
  servers: readonly string[];
  /** PEM. */
  ca?: Buffer | undefined;
  cert?: Buffer | undefined;
  key?: Buffer | undefined;
  /** Of one call, all its attempts together. */
  deadlineMs?: number;
}

const defaultDeadlineMs = 10_000;

export function newEtcdClient(options: EtcdClientOptions): EtcdClient {
  if (options.servers.length === 0) throw new Error("no etcd server given");
  const members = options.servers.map((server) => new RawEtcd(server, options));
  const deadlineMs = options.deadlineMs ?? defaultDeadlineMs;
  let current = Math.floor(Math.random() * members.length);
  let closed = false;

  async function call(path: string, service: Service, bytes: Buffer, repeatable: boolean): Promise<Buffer> {
    const deadline = Date.now() + deadlineMs;
    for (let attempt = 1; ; attempt++) {
      if (closed) throw new EtcdError("canceled", "etcd client is closed");
      const used = current;
      // Only the last attempt waits for a connection, so that a dead member costs nothing while others live.
      const last = attempt >= members.length;
      try {
        return await (members[used] as RawEtcd).unary(service, path, bytes, deadline, last);
      } catch (cause) {
        const err = etcdErrorOf(cause);
        const movable = err.reason === "unsent" || (repeatable && err.reason === "unavailable");
        if (err.reason === "deadline" || movable) {
          if (current === used) current = (used + 1) % members.length;
        }
        if (!movable || attempt > members.length || Date.now() >= deadline) throw err;
      }
    }
  }

  return {
    servers: options.servers,
    async range(request) {
      return decodeRange(await call("/etcdserverpb.KV/Range", "KV", encodeRange(request), true));
    },
    async txn(request) {
      return decodeTxn(await call("/etcdserverpb.KV/Txn", "KV", encodeTxn(request), false));
    },
    async put(key, value) {
      return decodeRevision(await call("/etcdserverpb.KV/Put", "KV", encodePut(key, value), false));
    },
    async compact(revision) {
      await call("/etcdserverpb.KV/Compact", "KV", encodeCompaction(revision), true);
    },
    async grantLease(ttlSeconds) {
      return decodeLeaseGrant(await call("/etcdserverpb.Lease/LeaseGrant", "Lease", encodeLeaseGrant(ttlSeconds), false));
    },
    async status(server) {
      const member = members[server];
      if (member === undefined) throw new Error(`no etcd server ${server}`);
      try {
        return decodeStatus(
          await member.unary("Maintenance", "/etcdserverpb.Maintenance/Status", noBytes, Date.now() + deadlineMs, true),
        );
      } catch (cause) {
        throw etcdErrorOf(cause);
      }
    },
    openWatch(turn) {
      return (members[(current + turn) % members.length] as RawEtcd).openWatch();
    },
    close() {
      closed = true;
      for (const member of members) member.close();
    },
  };
}

const noBytes = Buffer.alloc(0);
type Service = "KV" | "Lease" | "Maintenance" | "Watch";

function etcd3Options(server: string): IOptions {
  return {
    hosts: server,
    grpcOptions: {
      "grpc.max_receive_message_length": -1,
      "grpc.max_send_message_length": -1,
      "grpc.keepalive_time_ms": 30_000,
      "grpc.keepalive_timeout_ms": 10_000,
      "grpc.initial_reconnect_backoff_ms": 100,
      "grpc.max_reconnect_backoff_ms": 3_000,
      // Members share no connection with other clients of this process (tests open several).
      "grpc.use_local_subchannel_pool": 1,
      ...(ipOf(server) !== undefined && { "grpc.ssl_target_name_override": "etcd" }),
    },
  };
}

/** The address of an https server without a name. */
function ipOf(server: string): string | undefined {
  if (!server.startsWith("https://")) return undefined;
  const host = new URL(server).hostname.replace(/^\[|\]$/g, "");
  return isIP(host) === 0 ? undefined : host;
}

/**
 * grpc-js sends the host as the TLS server name, which Node refuses for an address: such a member gets the name `etcd`
 * there, and its certificate is checked against the address.
 */
function secureCredentials(server: string, { ca, cert, key }: EtcdClientOptions): ChannelCredentials {
  const ip = ipOf(server);
  const verify =
    ip === undefined ? {} : { checkServerIdentity: (_host: string, peer: PeerCertificate) => checkServerIdentity(ip, peer) };
  return credentials.createSsl(ca ?? null, key ?? null, cert ?? null, verify);
}

/** Reaches etcd3's gRPC clients, which it keeps to itself. */
class RawEtcd extends Etcd3 {
  readonly #clients = new Map<Service, GrpcClient>();

  constructor(server: string, options: EtcdClientOptions) {
    super(etcd3Options(server));
    // etcd3 takes a CA and a pair, but no check of the peer's name.
    if (server.startsWith("https://")) this.#host.channelCredentials = secureCredentials(server, options);
  }

  get #host(): RawHost {
    return (this.pool as unknown as { hosts: RawHost[] }).hosts[0] as RawHost;
  }

  unary(service: Service, path: string, bytes: Buffer, deadline: number, waitForReady: boolean): Promise<Buffer> {
    return new Promise((resolve, reject) => {
      const options: CallOptions = { deadline };
      this.#client(service).makeUnaryRequest(
        path,
        identity,
        identity,
        bytes,
        waitForReady ? patientMetadata : plainMetadata,
        options,
        (err, answer) => (err === null ? resolve(answer as Buffer) : reject(err)),
      );
    });
  }

  openWatch(): ClientDuplexStream<Buffer, Buffer> {
    return this.#client("Watch").makeBidiStreamRequest("/etcdserverpb.Watch/Watch", identity, identity, leaderMetadata);
  }

  override close(): void {
    this.#clients.clear();
    super.close();
  }

  #client(service: Service): GrpcClient {
    let client = this.#clients.get(service);
    if (client === undefined) {
      client = this.#host.getServiceClient(service);
      this.#clients.set(service, client);
    }
    return client;
  }
}

interface RawHost {
  channelCredentials: ChannelCredentials;
  getServiceClient(name: Service): GrpcClient;
}

const identity = (bytes: Buffer): Buffer => bytes;
const plainMetadata = new Metadata();
const patientMetadata = new Metadata({ waitForReady: true });
/** Makes a member that lost its leader end the watch, instead of keeping it silent. */
const leaderMetadata = new Metadata();
leaderMetadata.set("hasleader", "true");

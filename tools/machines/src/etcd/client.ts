import { readFileSync } from "node:fs";
import { GrpcChannel } from "@coxswain/apimachinery/transport/grpc/channel";
import type { GrpcIdentity } from "@coxswain/apimachinery/transport/grpc/target";
import { Failure } from "../failure.ts";
import { pkiFile } from "../machine.ts";
import {
  decodeMembers,
  decodeSnapshot,
  decodeStatus,
  encodeMemberAdd,
  encodeMemberId,
  type Member,
  type MemberStatus,
} from "./wire.ts";

const callMs = 10_000;
/** Of a snapshot, whose messages come one by one. */
const silenceMs = 60_000;

/** Calls about the cluster and its data, to one of several members: the first that answers. */
export class EtcdClient {
  readonly #channels: readonly GrpcChannel[];

  constructor(urls: readonly string[], identity: GrpcIdentity) {
    this.#channels = urls.map((url) => new GrpcChannel(url, { identity: () => identity, mostMessageBytes: 64 << 20 }));
  }

  async members(): Promise<Member[]> {
    return decodeMembers(await this.#call("/etcdserverpb.Cluster/MemberList", Buffer.alloc(0)), 2);
  }

  /** @returns all members */
  async addLearner(peerUrl: string): Promise<Member[]> {
    return decodeMembers(await this.#call("/etcdserverpb.Cluster/MemberAdd", encodeMemberAdd(peerUrl)), 3);
  }

  async promote(id: string): Promise<void> {
    await this.#call("/etcdserverpb.Cluster/MemberPromote", encodeMemberId(id));
  }

  async remove(id: string): Promise<void> {
    await this.#call("/etcdserverpb.Cluster/MemberRemove", encodeMemberId(id));
  }

  async status(): Promise<MemberStatus> {
    return decodeStatus(await this.#call("/etcdserverpb.Maintenance/Status", Buffer.alloc(0)));
  }

  /**
   * Reads a snapshot: the database, then 32 bytes, its SHA-256.
   * @param take called for each piece; the next one is read when it has been taken
   */
  snapshot(take: (piece: Uint8Array) => void): Promise<void> {
    const channel = this.#channels[0] as GrpcChannel;
    return new Promise((resolve, reject) => {
      let watchdog: NodeJS.Timeout;
      const fail = (err: Error): void => {
        clearTimeout(watchdog);
        stream.cancel();
        reject(err);
      };
      const alive = (): void => {
        clearTimeout(watchdog);
        watchdog = setTimeout(() => fail(new Failure("etcd sends nothing more of its snapshot")), silenceMs);
      };
      const stream = channel.stream("/etcdserverpb.Maintenance/Snapshot", {
        message(bytes) {
          alive();
          try {
            take(decodeSnapshot(bytes).blob);
          } catch (err) {
            fail(err as Error);
          }
        },
        ended(err) {
          clearTimeout(watchdog);
          if (err === undefined) resolve();
          else reject(new Failure(`etcd: ${err.details}`));
        },
      });
      alive();
      stream.write(Buffer.alloc(0));
      stream.end();
    });
  }

  close(): void {
    for (const channel of this.#channels) channel.close();
  }

  async #call(path: string, request: Buffer): Promise<Buffer> {
    const failures: string[] = [];
    for (const channel of this.#channels) {
      try {
        return await channel.unary(path, request, callMs);
      } catch (err) {
        const { details, unprocessed } = err as { details?: string; unprocessed?: boolean };
        failures.push(details ?? (err as Error).message);
        // What a member has seen is not sent to another one.
        if (unprocessed !== true) break;
      }
    }
    throw new Failure(`etcd: ${failures.join("; ")}`);
  }
}

/** With the certificates of a machine of the control plane. @throws Failure */
export function etcdClient(urls: readonly string[]): EtcdClient {
  const read = (name: string): Buffer => {
    try {
      return readFileSync(pkiFile(name));
    } catch (err) {
      throw new Failure(`cannot read the certificates of etcd: ${(err as Error).message}`);
    }
  };
  return new EtcdClient(urls, {
    ca: read("etcd/ca.crt"),
    cert: read("etcd/healthcheck-client.crt"),
    key: read("etcd/healthcheck-client.key"),
    certFile: pkiFile("etcd/healthcheck-client.crt"),
  });
}

export const localEtcd = "https://127.0.0.1:2379";

import { readFileSync } from "node:fs";
import { asError } from "@coxswain/apimachinery/client/transport-errors";
import { messageOf } from "@coxswain/apimachinery/objects/errors/message";
import type { Etcd3, IMember } from "etcd3";
import { Failure } from "../failure.ts";
import { pkiFile } from "../machine.ts";

const callMs = 10_000;
/** Timeout of a snapshot, which is a stream of many messages. */
const silenceMs = 60_000;

export interface Member {
  /** Hexadecimal, as etcd prints it. */
  readonly id: string;
  /** "" before its first start. */
  readonly name: string;
  readonly peerUrls: readonly string[];
  readonly clientUrls: readonly string[];
  readonly isLearner: boolean;
}

interface MemberStatus {
  readonly version: string;
  /** Hexadecimal; "0" without a leader. */
  readonly leader: string;
}

/** PEM. */
interface EtcdIdentity {
  readonly ca: Buffer;
  readonly cert: Buffer;
  readonly key: Buffer;
}

/**
 * Client of etcd's cluster and maintenance API. Calls go to the first of several members that responds. etcd3 is loaded by the
 * first call.
 */
export class EtcdClient {
  readonly #urls: readonly string[];
  readonly #identity: EtcdIdentity | undefined;
  #clients: Promise<Etcd3[]> | undefined;

  /** @param identity undefined: without TLS */
  constructor(urls: readonly string[], identity?: EtcdIdentity) {
    this.#urls = urls;
    this.#identity = identity;
  }

  async members(): Promise<Member[]> {
    const { members } = await this.#call((etcd, options) => etcd.cluster.memberList({}, options));
    return members.map(memberOf);
  }

  /** @returns all members */
  async addLearner(peerUrl: string): Promise<Member[]> {
    const request = { peerURLs: [peerUrl], isLearner: true };
    const { members } = await this.#call((etcd, options) => etcd.cluster.memberAdd(request, options));
    return members.map(memberOf);
  }

  async promote(id: string): Promise<void> {
    await this.#call((etcd, options) => etcd.cluster.memberPromote({ ID: decimal(id) }, options));
  }

  async remove(id: string): Promise<void> {
    await this.#call((etcd, options) => etcd.cluster.memberRemove({ ID: decimal(id) }, options));
  }

  async status(): Promise<MemberStatus> {
    const { version, leader } = await this.#call((etcd, options) => etcd.maintenance.status(options));
    return { version, leader: hexadecimal(leader) };
  }

  /**
   * Reads a snapshot: the database, then 32 bytes, its SHA-256.
   * @param take called for each piece, in order
   */
  async snapshot(take: (piece: Uint8Array) => void): Promise<void> {
    const [etcd] = await this.#open();
    const stream = await etcd!.maintenance.snapshot();
    await new Promise<void>((resolve, reject) => {
      let watchdog: NodeJS.Timeout;
      let isOver = false;
      const end = (err?: Error): void => {
        isOver = true;
        clearTimeout(watchdog);
        if (err === undefined) resolve();
        else reject(err);
      };
      const alive = (): void => {
        clearTimeout(watchdog);
        watchdog = setTimeout(() => end(new Failure("etcd stopped sending its snapshot")), silenceMs);
      };
      alive();
      stream.on("data", ({ blob }) => {
        if (isOver) return;
        alive();
        try {
          take(blob);
        } catch (err) {
          end(asError(err));
        }
      });
      stream.on("end", () => end());
      stream.on("error", (err) => end(new Failure(`etcd: ${detailsOf(err)}`)));
    });
  }

  close(): void {
    void this.#clients?.then((clients) => {
      for (const client of clients) client.close();
    });
  }

  #open(): Promise<Etcd3[]> {
    this.#clients ??= openClients(this.#urls, this.#identity);
    return this.#clients;
  }

  async #call<T>(send: (etcd: Etcd3, options: { deadline: number }) => Promise<T>): Promise<T> {
    const failures: string[] = [];
    for (const etcd of await this.#open()) {
      try {
        return await send(etcd, { deadline: Date.now() + callMs });
      } catch (err) {
        failures.push(detailsOf(err));
        // A call that a member may have received is not sent to another member.
        if (!isUnsent(err)) break;
      }
    }
    throw new Failure(`etcd: ${failures.join("; ")}`);
  }
}

/** One client for each member, without etcd3's retries, which would send a change of the members twice. */
async function openClients(urls: readonly string[], identity: EtcdIdentity | undefined): Promise<Etcd3[]> {
  const { Etcd3 } = await import("etcd3");
  const { noop } = await import("cockatiel");
  return urls.map(
    (hosts) =>
      new Etcd3({
        hosts,
        ...(identity && {
          credentials: { rootCertificate: identity.ca, certChain: identity.cert, privateKey: identity.key },
          // TLS server names cannot be IP addresses; the members' certificates are also valid for this name.
          grpcOptions: { "grpc.ssl_target_name_override": "localhost" },
        }),
        faultHandling: { host: () => noop, global: noop },
      }),
  );
}

/** etcd3 returns 64-bit IDs in decimal. */
const hexadecimal = (id: string): string => BigInt(id).toString(16);
const decimal = (id: string): string => BigInt(`0x${id}`).toString();

const memberOf = ({ ID, name, peerURLs, clientURLs, isLearner }: IMember): Member => ({
  id: hexadecimal(ID),
  name,
  peerUrls: peerURLs,
  clientUrls: clientURLs,
  isLearner,
});

/** The message without the leading gRPC code: "etcdserver: unhealthy cluster". */
const detailsOf = (err: unknown): string => messageOf(err).replace(/^\d+ [A-Z_]+: |^\w*Error: /, "");

/** True when no connection was made, so that the member cannot have received the call. */
const isUnsent = (err: unknown): boolean => /No connection established|ECONNREFUSED|EHOSTUNREACH|ENOTFOUND/.test(messageOf(err));

/** Recognize etcd's errors by text, because etcd3 does not expose their codes. */
export const isNotInSync = (text: string): boolean =>
  text.includes("can only promote a learner member which is in sync with leader");
export const isTooManyLearners = (text: string): boolean => text.includes("too many learner members in cluster");
export const isUnhealthy = (text: string): boolean => text.includes("unhealthy cluster");

/** With the certificates of a machine of the control plane. @throws Failure */
export function etcdClient(urls: readonly string[]): EtcdClient {
  const read = (name: string): Buffer => {
    try {
      return readFileSync(pkiFile(name));
    } catch (err) {
      throw new Failure(`cannot read the certificates of etcd: ${messageOf(err)}`);
    }
  };
  return new EtcdClient(urls, {
    ca: read("etcd/ca.crt"),
    cert: read("etcd/healthcheck-client.crt"),
    key: read("etcd/healthcheck-client.key"),
  });
}

export const localEtcd = "https://127.0.0.1:2379";

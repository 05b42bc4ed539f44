import { decodeProtobuf } from "@coxswain/apimachinery/objects/codec/protobuf";
import type { KubeObject } from "@coxswain/apimachinery/objects/meta/types";
import { linesOf } from "./recorder.ts";
import type { Resource, Version } from "./records.ts";

/**
 * Reads etcd's complete history through its JSON gateway, independent of the code under test. Follows continuously, to read
 * changes before they are compacted.
 */
export interface EtcdHistory {
  /** Everything up to this revision has been read. */
  readonly revision: number;
  /** Resolves when all writes made before the call have been read. */
  caughtUp(): Promise<void>;
  versions(resource: Resource): Version[];
  stop(): void;
}

interface RawVersion {
  key: string;
  value: Buffer | undefined;
  revision: number;
  version: number;
}

const silenceMs = 2_000;
const retryMs = 200;

/** @param prefix key prefix of the API server, such as `/registry` */
export function followEtcd(endpoints: readonly string[], prefix: string): EtcdHistory {
  const history = new FollowedHistory(endpoints, prefix);
  void history.follow();
  return history;
}

class FollowedHistory implements EtcdHistory {
  revision = 0;
  readonly #endpoints: readonly string[];
  readonly #prefix: string;
  readonly #history: RawVersion[] = [];
  readonly #stopping = new AbortController();
  readonly #waiters = new Set<() => void>();
  #failure: Error | undefined;

  constructor(endpoints: readonly string[], prefix: string) {
    this.#endpoints = endpoints;
    this.#prefix = prefix;
  }

  async follow(): Promise<void> {
    for (let turn = 0; !this.#stopping.signal.aborted && this.#failure === undefined; turn++) {
      // A partitioned member sends nothing; on a timeout switch to another member.
      const silence = new AbortController();
      let timer = setTimeout(() => silence.abort(), silenceMs);
      try {
        const watch = { key: "AA==", range_end: "AA==", start_revision: this.revision + 1 };
        const signal = AbortSignal.any([this.#stopping.signal, silence.signal]);
        const response = await this.#post(turn, "/v3/watch", { create_request: watch }, signal);
        for await (const line of linesOf(response.body as AsyncIterable<Uint8Array>)) {
          clearTimeout(timer);
          timer = setTimeout(() => silence.abort(), silenceMs);
          this.#receive((JSON.parse(line) as { result?: WatchAnswer }).result);
        }
      } catch {
        // The next member continues from the last revision.
      } finally {
        clearTimeout(timer);
      }
      await new Promise((resolve) => setTimeout(resolve, retryMs));
    }
  }

  async caughtUp(): Promise<void> {
    const wanted = await this.#present();
    const deadline = AbortSignal.timeout(60_000);
    while (this.revision < wanted) {
      if (this.#failure !== undefined) throw this.#failure;
      if (deadline.aborted) throw new Error(`etcd's history is read up to ${this.revision} only, it is at ${wanted}`);
      const woken = Promise.withResolvers<void>();
      const timer = setTimeout(woken.resolve, 1_000);
      this.#waiters.add(woken.resolve);
      await woken.promise;
      clearTimeout(timer);
      this.#waiters.delete(woken.resolve);
    }
  }

  versions({ folder }: Resource): Version[] {
    const below = `${this.#prefix}/${folder}/`;
    return this.#history
      .filter(({ key }) => key.startsWith(below))
      .map(({ key, value, ...rest }) => ({ ...rest, key: key.slice(below.length), object: value && objectOf(value) }));
  }

  stop(): void {
    this.#stopping.abort();
  }

  #receive(answer: WatchAnswer | undefined): void {
    if (answer?.compact_revision !== undefined)
      this.#failure = new Error(`history was compacted at ${answer.compact_revision} before it was read`);
    for (const { type, kv } of answer?.events ?? []) {
      const revision = Number(kv.mod_revision);
      if (revision <= this.revision) continue;
      const key = Buffer.from(kv.key, "base64").toString();
      const value = type === "DELETE" ? undefined : Buffer.from(kv.value ?? "", "base64");
      this.#history.push({ key, value, revision, version: Number(kv.version ?? 0) });
    }
    this.revision = this.#history.at(-1)?.revision ?? 0;
    for (const wake of this.#waiters) wake();
  }

  /** Current revision by a linearizable read, from any member that responds. */
  async #present(): Promise<number> {
    for (let turn = 0; ; turn++) {
      try {
        const response = await this.#post(turn, "/v3/kv/range", { key: "AA==" }, AbortSignal.timeout(2_000));
        const answer = (await response.json()) as { header?: { revision: string } };
        if (answer.header !== undefined) return Number(answer.header.revision);
      } catch {
        // Try the next member.
      }
      if (turn > 60) throw new Error("no member of etcd answers");
      await new Promise((resolve) => setTimeout(resolve, retryMs));
    }
  }

  /** @param turn number of the attempt; each goes to another member */
  #post(turn: number, path: string, body: object, signal: AbortSignal): Promise<Response> {
    const endpoint = this.#endpoints[turn % this.#endpoints.length];
    return fetch(endpoint + path, { method: "POST", body: JSON.stringify(body), signal });
  }
}

interface WatchAnswer {
  compact_revision?: string;
  events?: { type?: "DELETE"; kv: { key: string; value?: string; mod_revision: string; version?: string } }[];
}

const objectOf = (value: Buffer): KubeObject =>
  value[0] === 0x7b ? (JSON.parse(value.toString()) as KubeObject) : decodeProtobuf(value);

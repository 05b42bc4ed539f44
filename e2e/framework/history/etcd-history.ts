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
  const history: RawVersion[] = [];
  const stopping = new AbortController();
  const waiters = new Set<() => void>();
  let revision = 0;
  let failure: Error | undefined;
  void follow();

  async function follow(): Promise<void> {
    for (let turn = 0; !stopping.signal.aborted && failure === undefined; turn++) {
      // A partitioned member sends nothing; on a timeout switch to another member.
      const silence = new AbortController();
      let timer = setTimeout(() => silence.abort(), silenceMs);
      try {
        const response = await fetch(`${endpoints[turn % endpoints.length]}/v3/watch`, {
          method: "POST",
          body: JSON.stringify({ create_request: { key: "AA==", range_end: "AA==", start_revision: revision + 1 } }),
          signal: AbortSignal.any([stopping.signal, silence.signal]),
        });
        for await (const line of linesOf(response.body as AsyncIterable<Uint8Array>)) {
          clearTimeout(timer);
          timer = setTimeout(() => silence.abort(), silenceMs);
          receive((JSON.parse(line) as { result: WatchAnswer }).result);
        }
      } catch {
        // The next member continues from the last revision.
      } finally {
        clearTimeout(timer);
      }
      await new Promise((resolve) => setTimeout(resolve, retryMs));
    }
  }

  function receive(answer: WatchAnswer | undefined): void {
    if (answer?.compact_revision !== undefined)
      failure = new Error(`history was compacted at ${answer.compact_revision} before it was read`);
    for (const { type, kv } of answer?.events ?? []) {
      const at = Number(kv.mod_revision);
      if (at <= revision) continue;
      const value = type === "DELETE" ? undefined : Buffer.from(kv.value ?? "", "base64");
      history.push({ key: Buffer.from(kv.key, "base64").toString(), value, revision: at, version: Number(kv.version ?? 0) });
    }
    revision = history.at(-1)?.revision ?? 0;
    for (const wake of waiters) wake();
  }

  /** Current revision by a linearizable read, from any member that responds. */
  async function present(): Promise<number> {
    for (let turn = 0; ; turn++) {
      try {
        const response = await fetch(`${endpoints[turn % endpoints.length]}/v3/kv/range`, {
          method: "POST",
          body: JSON.stringify({ key: "AA==" }),
          signal: AbortSignal.timeout(2_000),
        });
        const answer = (await response.json()) as { header?: { revision: string } };
        if (answer.header !== undefined) return Number(answer.header.revision);
      } catch {
        // Try the next member.
      }
      if (turn > 60) throw new Error("no member of etcd answers");
      await new Promise((resolve) => setTimeout(resolve, retryMs));
    }
  }

  return {
    get revision() {
      return revision;
    },
    async caughtUp() {
      const wanted = await present();
      const deadline = AbortSignal.timeout(60_000);
      while (revision < wanted) {
        if (failure !== undefined) throw failure;
        if (deadline.aborted) throw new Error(`etcd's history is read up to ${revision} only, it is at ${wanted}`);
        const woken = Promise.withResolvers<void>();
        const timer = setTimeout(woken.resolve, 1_000);
        waiters.add(woken.resolve);
        await woken.promise;
        clearTimeout(timer);
        waiters.delete(woken.resolve);
      }
    },
    versions({ folder }) {
      const below = `${prefix}/${folder}/`;
      return history
        .filter(({ key }) => key.startsWith(below))
        .map(({ key, value, ...rest }) => ({ ...rest, key: key.slice(below.length), object: value && objectOf(value) }));
    },
    stop: () => stopping.abort(),
  };
}

interface WatchAnswer {
  compact_revision?: string;
  events?: { type?: "DELETE"; kv: { key: string; value?: string; mod_revision: string; version?: string } }[];
}

const objectOf = (value: Buffer): KubeObject =>
  value[0] === 0x7b ? (JSON.parse(value.toString()) as KubeObject) : decodeProtobuf(value);

import type { Clock } from "@coxswain/apimachinery/process/clock/clock";
import type { Logger } from "@coxswain/apimachinery/process/logging/logger";
import { compactRevisionKey } from "../key-layout.ts";
import type { EtcdClient } from "./client.ts";
import { EtcdError } from "./errors.ts";

/** State of the compaction key after one round. */
interface Round {
  /** Version of the key. */
  readonly version: number;
  /** etcd's revision now: what the next round compacts. */
  readonly revision: number;
  readonly compacted: number;
}

/**
 * Compacts etcd every `intervalMs` at the revision that was current one interval ago, so that a revision stays readable for
 * one to two intervals. API servers (also upstream's) coordinate through one key: the one that finds its version unchanged
 * writes it and compacts, the others only record the new version.
 * @param options.intervalMs 0 or less: never
 * Source: k8s.io/apiserver pkg/storage/etcd3/compact.go
 */
export function startCompactor(options: { client: EtcdClient; intervalMs: number; clock: Clock; log: Logger }): Compactor {
  return new Compactor(options);
}

/** Compacts etcd at intervals, until it is stopped. */
class Compactor {
  #round: Round = { version: 0, revision: 0, compacted: 0 };
  #isRunning = false;
  readonly #timer: { cancel(): void } | undefined;

  constructor(options: { client: EtcdClient; intervalMs: number; clock: Clock; log: Logger }) {
    const { client, intervalMs, clock, log } = options;
    this.#timer = intervalMs <= 0 ? undefined : clock.every(intervalMs, () => void this.#run(client, log));
  }

  /** The revision that this or another API server compacted last, as known since the last interval; 0: none yet. */
  get compacted(): number {
    return this.#round.compacted;
  }

  stop(): void {
    this.#timer?.cancel();
  }

  async #run(client: EtcdClient, log: Logger): Promise<void> {
    if (this.#isRunning) return;
    this.#isRunning = true;
    try {
      this.#round = await compactOnce(client, this.#round);
    } catch (err) {
      if (!(err instanceof EtcdError && err.reason === "canceled")) log.error("cannot compact etcd", err);
    } finally {
      this.#isRunning = false;
    }
  }
}

/** @param last the result of the previous round; revision 0: compacts nothing */
export async function compactOnce(client: EtcdClient, last: Round): Promise<Round> {
  const { version, revision } = last;
  const answer = await client.txn({
    compare: [{ key: compactRevisionKey, target: "version", value: version }],
    success: [{ type: "put", key: compactRevisionKey, value: Buffer.from(String(revision)) }],
    failure: [{ type: "range", range: { key: compactRevisionKey } }],
  });
  if (!answer.succeeded) {
    const found = answer.ranges[0]?.kvs[0];
    return { version: found?.version ?? 0, revision: answer.revision, compacted: Number(found?.value.toString() ?? 0) || 0 };
  }
  if (revision > 0) {
    try {
      await client.compact(revision);
    } catch (err) {
      if (!(err instanceof EtcdError && err.reason === "compacted")) throw err; // another server compacted first
    }
  }
  return { version: version + 1, revision: answer.revision, compacted: revision };
}

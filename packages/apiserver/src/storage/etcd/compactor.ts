import type { Clock } from "@coxswain/apimachinery/process/clock/clock";
import type { Logger } from "@coxswain/apimachinery/process/logging/logger";
import { compactRevisionKey } from "../key-layout.ts";
import type { EtcdClient } from "./client.ts";
import { EtcdError } from "./errors.ts";

/**
 * Compacts etcd every `intervalMs` at the revision that was current one interval ago, so that a revision stays readable for
 * one to two intervals. API servers (also upstream's) coordinate through one key: the one that finds its version unchanged
 * writes it and compacts, the others only record the new version.
 * Source: k8s.io/apiserver pkg/storage/etcd3/compact.go
 */
export function startCompactor(options: { client: EtcdClient; intervalMs: number; clock: Clock; log: Logger }): { stop(): void } {
  if (options.intervalMs <= 0) return { stop() {} };
  const { client, log } = options;
  let version = 0;
  let revision = 0;
  let running = false;

  const timer = options.clock.every(options.intervalMs, () => {
    if (running) return;
    running = true;
    compactOnce(client, version, revision)
      .then((next) => {
        ({ version, revision } = next);
      })
      .catch((err: unknown) => {
        if (!(err instanceof EtcdError && err.reason === "canceled")) log.error("cannot compact etcd", err);
      })
      .finally(() => {
        running = false;
      });
  });
  return { stop: () => timer.cancel() };
}

/** @param revision revision to compact; 0: only read the state. @returns the arguments of the next call */
export async function compactOnce(
  client: EtcdClient,
  version: number,
  revision: number,
): Promise<{ version: number; revision: number }> {
  const answer = await client.txn({
    compare: [{ key: compactRevisionKey, target: "version", value: version }],
    success: [{ type: "put", key: compactRevisionKey, value: Buffer.from(String(revision)) }],
    failure: [{ type: "range", range: { key: compactRevisionKey } }],
  });
  if (!answer.succeeded) return { version: answer.ranges[0]?.kvs[0]?.version ?? 0, revision: answer.revision };
  if (revision > 0) {
    try {
      await client.compact(revision);
    } catch (err) {
      if (!(err instanceof EtcdError && err.reason === "compacted")) throw err; // another server compacted first
    }
  }
  return { version: version + 1, revision: answer.revision };
}

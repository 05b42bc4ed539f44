import type { Clock } from "@coxswain/apimachinery/clock/clock";
import type { Logger } from "@coxswain/apimachinery/logging/logger";
import { compactRevisionKey } from "../key-layout.ts";
import type { EtcdClient } from "./client.ts";
import { EtcdError } from "./errors.ts";

/**
 * Forgets history every `intervalMs`: what was current one interval ago is compacted, so a revision stays readable for
 * one to two intervals. Several API servers (also upstream's) agree through one key: whoever finds its version as it
 * left it writes and compacts, the others only learn.
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

/** @param revision what to compact; 0: only learn. @returns what to give next time. */
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
      if (!(err instanceof EtcdError && err.reason === "compacted")) throw err; // somebody else was first
    }
  }
  return { version: version + 1, revision: answer.revision };
}

import assert from "node:assert/strict";
import { test } from "node:test";
import { newFakeClock } from "@coxswain/apimachinery/process/clock/fake-clock";
import { discardLogger } from "@coxswain/apimachinery/process/logging/logger";
import type { StorageMetrics } from "../metrics.ts";
import { MeasuredCalls } from "./client.ts";
import { EtcdError } from "./errors.ts";

test("a full etcd is logged at most once a minute, and every failure is measured", async () => {
  const clock = newFakeClock();
  const warnings: string[] = [];
  const measured: unknown[] = [];
  const calls = new MeasuredCalls({
    goType: "*core.Pod",
    servers: ["https://etcd:2379"],
    prefix: "/registry/pods/",
    clock,
    log: { ...discardLogger, warn: (message: string) => void warnings.push(message) },
    metrics: { etcdRequest: (...args: unknown[]) => void measured.push(args) } as unknown as StorageMetrics,
  });
  const fail = () => calls.timed("update", Promise.reject(new EtcdError("no-space", "mvcc: database space exceeded")));
  await assert.rejects(fail);
  await clock.advance(59_000);
  await assert.rejects(fail);
  assert.equal(warnings.length, 1);
  await clock.advance(1_000);
  await assert.rejects(fail);
  assert.equal(warnings.length, 2);
  assert.equal(await calls.timed("list", Promise.resolve(3)), 3);
  assert.deepEqual(measured, [...Array(3).fill(["update", "*core.Pod", 0]), ["list", "*[]core.Pod", 0]]);
});

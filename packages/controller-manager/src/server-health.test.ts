import assert from "node:assert/strict";
import { test } from "node:test";
import type { Client } from "@coxswain/apimachinery/client/client";
import { newFakeClock } from "@coxswain/apimachinery/process/clock/fake-clock";
import { discardLogger } from "@coxswain/apimachinery/process/logging/logger";
import { settle } from "@coxswain/apimachinery/testing/wait-for";
import { requireHealthyServer } from "./server-health.ts";

/** @param statusAt HTTP status of /healthz by seconds since the start */
function requiring(statusAt: (seconds: number, signal: AbortSignal | undefined) => number | Promise<number>) {
  const clock = newFakeClock();
  const startMs = clock.monotonic();
  const ending = new AbortController();
  const raw: Client["raw"] = async (_method, path, { signal } = {}) => {
    assert.equal(path, "/healthz");
    const status = await statusAt((clock.monotonic() - startMs) / 1000, signal);
    return { status, headers: {}, body: Buffer.from(status === 200 ? "ok" : "[-]etcd failed") };
  };
  const done = requireHealthyServer({ raw } as Client, clock, discardLogger, ending.signal);
  done.catch(() => {}); // the rejection is checked by the test
  const advance = async (seconds: number): Promise<void> => {
    for (let i = 0; i < seconds; i++) {
      await settle();
      await clock.advance(1_000);
    }
    await settle();
  };
  return { done, advance, ending, clock };
}

test("a server that becomes healthy within 10 s is enough", async () => {
  for (const at of [9, 10]) {
    const { done, advance } = requiring((seconds) => (seconds < at ? 500 : 200));
    await advance(at);
    await done;
  }
});

test("beside a server that is not healthy for 10 s no controller starts, with upstream's words", async () => {
  const { done, advance } = requiring(() => 500);
  await advance(11);
  const text =
    "error building controller context: failed to wait for apiserver being healthy: timed out waiting for the condition: APIServer isn't healthy: [-]etcd failed";
  await assert.rejects(done, { message: text });
});

test("a manager that is stopped meanwhile does not wait for it", async () => {
  const { done, ending } = requiring(() => 500);
  await settle();
  ending.abort(new Error("no longer the leader"));
  await assert.rejects(done, /no longer the leader/);
});

test("a server that does not answer for 10 s is given up, with the reason", async () => {
  const { done, advance, clock } = requiring((_seconds, signal) => {
    const { promise, reject } = Promise.withResolvers<number>();
    signal?.addEventListener("abort", () => reject(signal.reason));
    return promise;
  });
  await advance(11);
  await assert.rejects(done, /timed out waiting .*failed to get apiserver \/healthz status: no answer within 10 s$/);
  assert.equal(clock.waiting, 0, "no timer is left");
});

test("a server that refuses connections at first is asked again", async () => {
  const { done, advance, clock } = requiring((seconds) => {
    if (seconds < 3) throw new Error("connection refused");
    return 200;
  });
  await advance(3);
  await done;
  assert.equal(clock.waiting, 0, "no timer is left");
});

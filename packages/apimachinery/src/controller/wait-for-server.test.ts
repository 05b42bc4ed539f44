import assert from "node:assert/strict";
import { test } from "node:test";
import type { Client } from "../client/client.ts";
import { newFakeClock } from "../process/clock/fake-clock.ts";
import { newLogger } from "../process/logging/logger.ts";
import { settle } from "../testing/wait-for.ts";
import { waitForServer } from "./wait-for-server.ts";

type Answer = number | "away";

/** @param answer returns the response of /readyz at a time */
function waiting(answer: (nowMs: number) => Answer, timeoutMs?: number) {
  const clock = newFakeClock();
  const startMs = clock.monotonic();
  const ending = new AbortController();
  const requestedMs: number[] = [];
  const lines: string[] = [];
  const raw: Client["raw"] = async (_method, path) => {
    assert.equal(path, "/readyz");
    const nowMs = clock.monotonic() - startMs;
    requestedMs.push(nowMs);
    const status = answer(nowMs);
    if (status === "away") throw Object.assign(new Error("connect ECONNREFUSED"), { code: "ECONNREFUSED" });
    return { status, headers: {}, body: Buffer.from(status === 500 ? "[+]ping ok\n[-]etcd failed: reason withheld\n" : "") };
  };
  const state = { requestedMs, lines, clock, ending, result: undefined as { reason: string | undefined } | undefined };
  const done = waitForServer({ raw } as Client, {
    purpose: "the test",
    clock,
    log: newLogger({ write: (line) => void lines.push(String(line)) }),
    signal: ending.signal,
    ...(timeoutMs === undefined ? {} : { timeoutMs }),
  }).then((reason) => {
    state.result = { reason };
  });
  return Object.assign(state, {
    done,
    reason: () => state.result?.reason ?? "",
    /** Advances in small steps, because each response takes several microtasks. */
    async advance(ms: number) {
      for (let left = ms; left > 0; left -= 50) {
        await clock.advance(50);
        await settle(3);
      }
    },
  });
}

test("a ready server causes neither a wait nor a log line", async () => {
  const { done, lines, requestedMs, clock } = waiting(() => 200);
  await done;
  assert.deepEqual([requestedMs.length, lines, clock.waiting], [1, [], 0]);
});

test("an unreachable server is retried without a limit, with delays that grow to 2 s", async () => {
  const wait = waiting((nowMs) => (nowMs < 600_000 ? "away" : 200));
  await settle();
  await wait.advance(599_000);
  assert.equal(wait.result, undefined);
  const pauses = wait.requestedMs.slice(1).map((atMs, i) => atMs - (wait.requestedMs[i] as number));
  assert.ok((pauses[0] as number) <= 200, `the first pause is ${pauses[0]} ms`);
  const last = pauses.at(-1) as number;
  assert.ok(last >= 2_000 && last <= 2_450, `the last pause is ${last} ms`);
  await wait.advance(7_000);
  assert.deepEqual(wait.result, { reason: undefined });
  const said = wait.lines.filter((line) => line.includes("waiting for the API server to be ready"));
  assert.equal(said.length, 1, "the same reason is logged once");
  assert.match(said[0] ?? "", /the test.*ECONNREFUSED/);
});

test("a server without /readyz counts as ready", async () => {
  const wait = waiting(() => 404);
  await settle();
  assert.deepEqual([wait.result, wait.requestedMs.length], [{ reason: undefined }, 1]);
});

test("an attempt without an answer ends after 10 s, and the next one follows", async () => {
  const clock = newFakeClock();
  const ending = new AbortController();
  let attempts = 0;
  const raw: Client["raw"] = async (_method, _path, options) => {
    if (++attempts > 1) return { status: 200, headers: {}, body: Buffer.from("") };
    return new Promise((_, reject) => options?.signal?.addEventListener("abort", () => reject(options.signal?.reason)));
  };
  let isOver = false;
  const lines: string[] = [];
  const log = newLogger({ write: (line) => void lines.push(String(line)) });
  void waitForServer({ raw } as Client, { purpose: "the test", clock, log, signal: ending.signal }).then(() => {
    isOver = true;
  });
  await clock.advance(9_999);
  assert.deepEqual([attempts, isOver], [1, false]);
  await clock.advance(1_000);
  await settle();
  assert.equal(isOver, true);
  assert.match(lines.join(), /no answer within 10 s/);
});

for (const { name, status, reason } of [
  { name: "a check that fails", status: 500, reason: /answers 500: etcd/ },
  { name: "401", status: 401, reason: /answers 401/ },
  { name: "403", status: 403, reason: /answers 403/ },
]) {
  test(`${name} is retried for 30 s, counted anew after a failed connection`, async () => {
    const wait = waiting((nowMs) => (nowMs >= 20_000 && nowMs < 26_000 ? "away" : status));
    await settle();
    await wait.advance(50_000);
    assert.equal(wait.result, undefined);
    await wait.advance(20_000);
    assert.match(wait.reason(), reason);
  });
}

for (const status of [502, 503])
  test(`${status} of a load balancer is not the server's response: it is retried without a limit`, async () => {
    const wait = waiting((nowMs) => (nowMs < 300_000 ? status : 200));
    await settle();
    await wait.advance(290_000);
    assert.equal(wait.result, undefined);
    await wait.advance(20_000);
    assert.deepEqual(wait.result, { reason: undefined });
  });

test("a bounded wait ends at its time", async () => {
  const wait = waiting(() => "away", 60_000);
  await settle();
  await wait.advance(59_000);
  assert.equal(wait.result, undefined);
  await wait.advance(10_000);
  assert.match(wait.reason(), /ECONNREFUSED/);
});

test("waiting for the server ends when the process is stopped", async () => {
  const { done, ending } = waiting(() => "away");
  await settle();
  ending.abort(new Error("stopped by SIGTERM"));
  await assert.rejects(done, /stopped by SIGTERM/);
});

import assert from "node:assert/strict";
import { test } from "node:test";
import { newFakeClock } from "../process/clock/fake-clock.ts";
import { newMetricsRegistry } from "../process/metrics/registry.ts";
import { noDecisions, type ObjectRef } from "./decision.ts";
import { DecisionLog, decisionLimitBytes, type Outcome } from "./decision-log.ts";

function aPod(name: string, uid = `uid-${name}`): ObjectRef {
  return { group: "", resource: "pods", kind: "Pod", namespace: "web", name, uid };
}

const waiting: Outcome = {
  verdict: "waiting",
  reason: "InsufficientResources",
  description: "needs 300m more CPU on any of 3 nodes",
};

function aLog(limitBytes?: number) {
  const clock = newFakeClock(Date.parse("2026-01-02T03:04:05Z"));
  const registry = newMetricsRegistry();
  const log = new DecisionLog({ component: "kube-scheduler", clock, registry, ...(limitBytes && { limitBytes }) });
  return { clock, registry, log };
}

test("reports the last decision of each source, since when and how often it was repeated", async () => {
  const { clock, log } = aLog();
  log.record(aPod("a"), "scheduler", waiting);
  await clock.advance(10_000);
  const description = { summary: "needs 200m more CPU", details: { nodes: 3 }, related: [aPod("b")], remedy: "add a node" };
  log.record(aPod("a"), "scheduler", { ...waiting, description, nextTryMs: clock.now() + 5000 });
  log.record(aPod("a"), "volumes", {
    verdict: "failed",
    reason: "Timeout",
    description: () => ({ summary: "described on request" }),
  });
  const base = { component: "kube-scheduler", object: aPod("a"), lastAt: "2026-01-02T03:04:15Z" };
  assert.deepEqual(log.of(aPod("a")), [
    {
      ...{ ...base, source: "volumes", verdict: "failed", reason: "Timeout", summary: "described on request" },
      ...{ since: "2026-01-02T03:04:15Z", count: 1 },
    },
    {
      ...{ ...base, ...description, source: "scheduler", verdict: "waiting", reason: "InsufficientResources" },
      ...{ since: "2026-01-02T03:04:05Z", count: 2, nextTryAt: "2026-01-02T03:04:20Z" },
    },
  ]);
});

test("a decision that is repeated again and again is since the first time", async () => {
  const { clock, log } = aLog();
  for (let i = 0; i < 4; i++) {
    log.record(aPod("a"), "scheduler", waiting);
    await clock.advance(10_000);
  }
  const [decision] = log.of(aPod("a"));
  assert.partialDeepStrictEqual(decision, { count: 4, since: "2026-01-02T03:04:05Z", lastAt: "2026-01-02T03:04:35Z" });
});

test("begins to count again when verdict or reason change", async () => {
  const { clock, log } = aLog();
  log.record(aPod("a"), "scheduler", waiting);
  await clock.advance(60_000);
  log.record(aPod("a"), "scheduler", { ...waiting, reason: "Taint" });
  const [decision] = log.of(aPod("a"));
  assert.partialDeepStrictEqual(decision, { reason: "Taint", count: 1, since: "2026-01-02T03:05:05Z" });
  assert.equal(log.entries, 1);
});

test("calls the description function only on request, and survives their failure", () => {
  const { log } = aLog();
  let calls = 0;
  const description = (): never => {
    calls++;
    throw new Error("no words");
  };
  log.record(aPod("a"), "scheduler", { ...waiting, description });
  assert.equal(calls, 0);
  assert.match(log.of(aPod("a"))[0]?.summary ?? "", /is not available: no words/);
});

test("forgets a resolved source, a deleted object, and an object whose name was reused", () => {
  const { log } = aLog();
  log.record(aPod("a"), "two", waiting);
  const { bytes } = log;
  log.record(aPod("a"), "one", waiting);
  assert.ok(log.bytes > bytes);
  log.forget(aPod("a"), "one");
  assert.equal(log.bytes, bytes);
  log.forget(aPod("a"), "never recorded");
  log.forget(aPod("other"), "two");
  assert.deepEqual(
    log.of(aPod("a")).map(({ source }) => source),
    ["two"],
  );
  log.forgetObject(aPod("a"));
  assert.deepEqual([log.of(aPod("a")), log.entries, log.bytes], [[], 0, 0]);

  log.record(aPod("a"), "one", waiting);
  log.record(aPod("a", "second"), "two", waiting);
  assert.deepEqual(
    log.of({ ...aPod("a"), uid: "" }).map(({ source, object, count }) => [source, object.uid, count]),
    [["two", "second", 1]],
  );
  assert.deepEqual(log.of(aPod("a")), [], "queried about the former object");
  log.forget(aPod("a"), "two");
  assert.deepEqual([log.entries, log.bytes], [0, 0]);
});

test("keeps objects of the same name apart by resource, group and namespace", () => {
  const { log } = aLog();
  log.record(aPod("a"), "one", waiting);
  for (const other of [{ group: "x" }, { resource: "nodes" }, { namespace: "b" }]) {
    assert.deepEqual(log.of({ ...aPod("a"), ...other, uid: "" }), []);
  }
});

test("stays within its memory limit by evicting the oldest decisions, and counts evictions", async () => {
  const { registry, log } = aLog(100_000);
  const outcome: Outcome = { ...waiting, description: () => ({ summary: "s" }), sizeBytes: 2000 };
  for (let i = 0; i < 100; i++) {
    log.record(aPod(`p${i}`), "scheduler", outcome);
    log.record(aPod("first"), "scheduler", outcome);
    assert.ok(log.bytes <= 100_000);
  }
  assert.deepEqual(log.of(aPod("p0")), []);
  assert.equal(log.of(aPod("p99")).length, 1);
  assert.equal(log.of(aPod("first"))[0]?.count, 100, "is decided about again and again");
  const page = await registry.render();
  assert.match(page, new RegExp(`^coxswain_decisions ${log.entries}$`, "m"));
  assert.match(page, new RegExp(`^coxswain_decisions_bytes ${log.bytes}$`, "m"));
  assert.match(page, new RegExp(`^coxswain_decision_evictions_total ${101 - log.entries}$`, "m"));
});

test("settled decisions do not evict open ones", () => {
  const { log } = aLog(100_000);
  log.record(aPod("stuck"), "scheduler", waiting);
  for (let i = 0; i < 1000; i++) log.record(aPod(`p${i}`), "scheduler", { ...waiting, verdict: "done" });
  assert.equal(log.of(aPod("stuck")).length, 1);
  assert.equal(log.of(aPod("p999")).length, 1);
  assert.ok(log.bytes <= 25_000 + 2000);
  log.record(aPod("p999"), "volumes", waiting);
  for (let i = 0; i < 1000; i++) log.record(aPod(`p${i}`), "scheduler", { ...waiting, verdict: "done" });
  assert.equal(log.of(aPod("p999")).length, 2, "one open decision keeps the others of the object");
});

test("an object with an open decision is open, whichever source decided last", () => {
  const { log } = aLog(100_000);
  log.record(aPod("stuck"), "volumes", waiting);
  log.record(aPod("stuck"), "scheduler", { ...waiting, verdict: "done" });
  for (let i = 0; i < 1000; i++) log.record(aPod(`p${i}`), "scheduler", { ...waiting, verdict: "done" });
  assert.equal(log.of(aPod("stuck")).length, 2);
});

test("limits the sources of one object and the length of a summary", () => {
  const { log } = aLog();
  for (let i = 0; i < 100; i++) log.record(aPod("a"), `source-${i}`, { ...waiting, description: "x".repeat(5000) });
  const decisions = log.of(aPod("a"));
  assert.equal(decisions.length, 32);
  assert.equal(decisions[0]?.source, "source-99");
  assert.equal(decisions[0]?.summary.length, 2001);
});

test("a decision larger than the limit is not kept", () => {
  const { log } = aLog(10_000);
  log.record(aPod("a"), "one", { ...waiting, description: { summary: "s", details: { long: "x".repeat(20_000) } } });
  assert.deepEqual([log.of(aPod("a")), log.bytes], [[], 0]);
});

test("without a decision reader there are no decisions and no silent daemons", async () => {
  assert.deepEqual(await noDecisions.of([aPod("a")], AbortSignal.abort()), { decisions: [], silent: [] });
});

test("a decision that replaces an equal one takes no more memory, a longer one its difference", () => {
  const { log } = aLog();
  log.record(aPod("a"), "scheduler", waiting);
  const { bytes } = log;
  log.record(aPod("a"), "scheduler", waiting);
  assert.equal(log.bytes, bytes);
  log.record(aPod("a"), "scheduler", { ...waiting, description: `${waiting.description}!` });
  assert.equal(log.bytes, bytes + 1);
});

test("the plain text is shortened like the summary", () => {
  const { log } = aLog();
  log.record(aPod("a"), "scheduler", { ...waiting, description: { summary: "s", plain: "x".repeat(5000) } });
  assert.equal(log.of(aPod("a"))[0]?.plain?.length, 2001);
});

test("COXSWAIN_DECISIONS=off switches recording off, any other value does not", () => {
  assert.deepEqual(
    [decisionLimitBytes({ COXSWAIN_DECISIONS: "off" }), decisionLimitBytes({ COXSWAIN_DECISIONS: "on" })],
    [0, 4 << 20],
  );
  const log = new DecisionLog({ component: "c", clock: newFakeClock(), limitBytes: 0 });
  log.record(aPod("a"), "scheduler", waiting);
  assert.deepEqual([log.isKeeping, log.entries], [false, 0]);
});

import assert from "node:assert/strict";
import { test } from "node:test";
import { DecisionLog } from "../decisions/decision-log.ts";
import { newInformerFactory } from "../informers/factory.ts";
import { conflict } from "../objects/errors/status-error.ts";
import type { ReplicaSet } from "../objects/schema/kinds/apps/v1.ts";
import type { Pod } from "../objects/schema/kinds/core/v1.ts";
import { pods, replicaSets } from "../objects/schema/kinds/resources.ts";
import { newFakeClock } from "../process/clock/fake-clock.ts";
import { discardLogger } from "../process/logging/logger.ts";
import { aPod, aReplicaSet } from "../testing/builders.ts";
import { newFakeClient } from "../testing/fake-client.ts";
import { settle } from "../testing/wait-for.ts";
import { type ControllerOptions, newController } from "./controller.ts";
import { newExpectations } from "./expectations.ts";
import { enqueueControllerOwner, enqueueMapped, enqueueSelf } from "./sources.ts";

function setUp(t: { after(fn: () => void): void }) {
  const client = newFakeClient();
  const clock = newFakeClock();
  const informers = newInformerFactory(client, { log: discardLogger, clock });
  const stop = new AbortController();
  t.after(() => stop.abort());
  const run = async (options: Pick<ControllerOptions, "sources" | "reconcile"> & Partial<ControllerOptions>) => {
    const controller = newController({ name: "test", log: discardLogger, clock, ...options });
    informers.start(stop.signal);
    const finished = controller.run(stop.signal);
    await settle();
    return { controller, finished };
  };
  return { client, clock, informers, stop, run };
}

test("reconciles each object that exists, and each that changes", async (t) => {
  const { client, informers, run } = setUp(t);
  client.put(pods, aPod({ name: "a" }));
  const seen: string[] = [];
  await run({
    sources: [enqueueSelf(informers.for<Pod>(pods))],
    reconcile: async (key) => {
      seen.push(key);
      return {};
    },
  });
  client.put(pods, aPod({ name: "b", namespace: "shop" }));
  client.remove(pods, "default/a");
  await settle();
  assert.deepEqual(seen, ["default/a", "shop/b", "default/a"]);
});

test("enqueues the controlling owner of the given kind, and the keys that a function returns", async (t) => {
  const { client, informers, run } = setUp(t);
  const seen: string[] = [];
  client.put(replicaSets, aReplicaSet({ name: "web" }));
  const podInformer = informers.for<Pod>(pods);
  await run({
    sources: [
      enqueueControllerOwner(podInformer, "ReplicaSet"),
      enqueueMapped(podInformer, ({ spec }) => (spec.nodeName === undefined ? [] : [spec.nodeName])),
      enqueueSelf(informers.for<ReplicaSet>(replicaSets)),
    ],
    reconcile: async (key) => {
      seen.push(key);
      return {};
    },
  });
  seen.length = 0;
  client.put(pods, aPod({ name: "a", nodeName: "n1", owner: aReplicaSet({ name: "web" }) }));
  client.put(pods, aPod({ name: "b", owner: { kind: "Job", apiVersion: "batch/v1", metadata: { name: "j", uid: "j" } } }));
  await settle();
  assert.deepEqual(seen, ["default/web", "n1"]);
});

test("a failed key is retried with backoff, which a success resets", async (t) => {
  const { client, clock, informers, run } = setUp(t);
  client.put(pods, aPod({ name: "a" }));
  let failures = 2;
  const at: number[] = [];
  await run({
    sources: [enqueueSelf(informers.for<Pod>(pods))],
    reconcile: async () => {
      at.push(clock.monotonic());
      if (failures-- > 0) throw new Error("not yet");
      return {};
    },
  });
  await clock.advance(1000);
  assert.deepEqual(at, [0, 5, 15]);
});

test("drops a key after the maximum number of failures, until it changes", async (t) => {
  const { client, clock, informers, run } = setUp(t);
  client.put(pods, aPod({ name: "a" }));
  let calls = 0;
  await run({
    sources: [enqueueSelf(informers.for<Pod>(pods))],
    maxRetries: 2,
    reconcile: async () => {
      calls++;
      throw new Error("never");
    },
  });
  await clock.advance(60_000);
  assert.equal(calls, 3);
  client.put(pods, aPod({ name: "a", labels: { v: "2" } }));
  await settle();
  assert.equal(calls, 4);
});

test("reconciles again after the result's requeueAfterMs", async (t) => {
  const { client, clock, informers, run } = setUp(t);
  client.put(pods, aPod({ name: "a" }));
  let calls = 0;
  await run({
    sources: [enqueueSelf(informers.for<Pod>(pods))],
    reconcile: async () => (++calls < 3 ? { requeueAfterMs: 1000 } : {}),
  });
  await clock.advance(10_000);
  assert.equal(calls, 3);
});

test("never works on one key twice at once, but on several keys", async (t) => {
  const { client, clock, informers, run } = setUp(t);
  let running = 0;
  let most = 0;
  const working = new Set<string>();
  for (let i = 0; i < 5; i++) client.put(pods, aPod({ name: `p${i}` }));
  await run({
    sources: [enqueueSelf(informers.for<Pod>(pods))],
    workers: 3,
    reconcile: async (key) => {
      assert.equal(working.has(key), false);
      working.add(key);
      most = Math.max(most, ++running);
      client.put(pods, aPod({ name: "p0", labels: { v: String(Math.random()) } }));
      await clock.sleep(100);
      running--;
      working.delete(key);
      return {};
    },
  });
  await clock.advance(1000);
  assert.equal(most, 3);
});

test("reconciles one key at a time unless it has more workers", async (t) => {
  const { client, clock, informers, run } = setUp(t);
  client.put(pods, aPod({ name: "a" }), aPod({ name: "b" }));
  const seen: string[] = [];
  await run({
    sources: [enqueueSelf(informers.for<Pod>(pods))],
    reconcile: async (key) => {
      seen.push(key);
      await clock.sleep(100);
      return {};
    },
  });
  assert.deepEqual(seen, ["default/a"]);
  await clock.advance(100);
  assert.deepEqual(seen, ["default/a", "default/b"]);
});

test("starts only when its sources are synced, and ends when its signal is aborted", async (t) => {
  const { client, clock, informers, stop, run } = setUp(t);
  client.put(pods, aPod({ name: "a" }));
  let failing = true;
  client.react("list", "pods", () => {
    if (failing) throw new Error("not reachable");
    return undefined;
  });
  let calls = 0;
  const { finished } = await run({
    sources: [enqueueSelf(informers.for<Pod>(pods))],
    reconcile: async () => {
      calls++;
      return {};
    },
  });
  assert.equal(calls, 0);
  failing = false;
  await clock.advance(2000);
  assert.equal(calls, 1);
  stop.abort();
  await finished;
});

test("events that come together are handled together when batching is configured", async (t) => {
  const { client, clock, informers, run } = setUp(t);
  let calls = 0;
  await run({
    sources: [enqueueSelf(informers.for<Pod>(pods))],
    batchMs: 500,
    reconcile: async () => {
      calls++;
      return {};
    },
  });
  for (let i = 0; i < 5; i++) {
    client.put(pods, aPod({ name: "a", labels: { v: String(i) } }));
    await clock.advance(50);
  }
  assert.equal(calls, 0);
  await clock.advance(500);
  assert.equal(calls, 1);
});

test("a failure after the abort is neither logged nor retried", async (t) => {
  const { client, informers, stop, run } = setUp(t);
  client.put(pods, aPod({ name: "a" }));
  const errors: string[] = [];
  const held = Promise.withResolvers<never>();
  const { finished, controller } = await run({
    sources: [enqueueSelf(informers.for<Pod>(pods))],
    reconcile: () => held.promise,
    log: { ...discardLogger, error: (text: string) => void errors.push(text) },
  });
  stop.abort();
  held.reject(new Error("aborted"));
  await finished;
  assert.deepEqual([errors, controller.pending], [[], 0]);
});

test("a conflict is not recorded as a decision, another failure is, until a success", async (t) => {
  const { client, clock, informers, run } = setUp(t);
  client.put(pods, aPod({ name: "a" }));
  const decisions = new DecisionLog({ component: "test", clock });
  const results: unknown[] = [conflict(pods, "a", "changed"), new Error("no space")];
  await run({
    sources: [enqueueSelf(informers.for<Pod>(pods))],
    decisions,
    async reconcile() {
      const failure = results.shift();
      if (failure !== undefined) throw failure;
      return {};
    },
  });
  assert.deepEqual([results.length, decisions.entries], [1, 0]);
  await clock.advance(5);
  assert.deepEqual([results.length, decisions.entries], [0, 1]);
  await clock.advance(10);
  assert.equal(decisions.entries, 0);
});

test("expectations are unfulfilled until all expected events were observed", () => {
  const expectations = newExpectations(newFakeClock());
  assert.equal(expectations.satisfied("a"), true);
  expectations.expectCreations("a", 2);
  expectations.creationObserved("a");
  assert.equal(expectations.satisfied("a"), false);
  assert.equal(expectations.satisfied("b"), true);
  expectations.creationObserved("a");
  assert.equal(expectations.satisfied("a"), true);
});

test("a deletion counts once, however often it is observed", () => {
  const expectations = newExpectations(newFakeClock());
  expectations.expectDeletions("a", ["1", "2"]);
  for (const uid of ["1", "1", "3"]) expectations.deletionObserved("a", uid);
  assert.equal(expectations.satisfied("a"), false);
  expectations.deletionObserved("a", "2");
  assert.equal(expectations.satisfied("a"), true);
});

test("expectations expire", async () => {
  const clock = newFakeClock();
  const expectations = newExpectations(clock);
  expectations.expectCreations("a", 1);
  await clock.advance(300_000);
  assert.equal(expectations.satisfied("a"), false);
  await clock.advance(1);
  assert.equal(expectations.satisfied("a"), true);
});

test("a requeueAfterMs that is not a number counts as a failure with backoff", async (t) => {
  const { client, clock, informers, run } = setUp(t);
  client.put(pods, aPod({ name: "a" }), aPod({ name: "b" }));
  const calls: string[] = [];
  const errors: string[] = [];
  await run({
    sources: [enqueueSelf(informers.for<Pod>(pods))],
    log: { ...discardLogger, error: (message) => void errors.push(message) },
    reconcile: async (key) => {
      calls.push(key);
      return key.endsWith("a") ? { requeueAfterMs: Number.NaN } : {};
    },
  });
  await clock.advance(60_000);
  assert.ok(calls.length < 20, `${calls.length} calls in a minute`);
  assert.ok(errors.length > 3 && calls.includes("default/b"));
});

test("a thrown value that is not an Error, and one thrown before the first await, count as failures", async (t) => {
  const { client, clock, informers, run } = setUp(t);
  client.put(pods, aPod({ name: "a" }), aPod({ name: "b" }), aPod({ name: "c" }));
  const done: string[] = [];
  let ill = true;
  await run({
    sources: [enqueueSelf(informers.for<Pod>(pods))],
    reconcile: (key) => {
      if (ill && key === "default/a") throw undefined;
      if (ill && key === "default/b") return Promise.reject(null);
      done.push(key);
      return Promise.resolve({});
    },
  });
  assert.deepEqual(done, ["default/c"]);
  ill = false;
  await clock.advance(1000);
  assert.deepEqual(done.toSorted(), ["default/a", "default/b", "default/c"]);
});

test("a key dropped after its last attempt starts again with the next event, and a success clears its count", async (t) => {
  const { client, clock, informers, run } = setUp(t);
  client.put(pods, aPod({ name: "a" }));
  let calls = 0;
  let ill = true;
  await run({
    sources: [enqueueSelf(informers.for<Pod>(pods))],
    maxRetries: 2,
    reconcile: async () => {
      calls++;
      if (ill) throw new Error("no");
      return {};
    },
  });
  await clock.advance(60_000);
  assert.equal(calls, 3);
  client.put(pods, aPod({ name: "a", labels: { v: "2" } }));
  await clock.advance(60_000);
  assert.equal(calls, 6, "all its tries again");
  client.put(pods, aPod({ name: "a", labels: { v: "3" } }));
  await settle();
  ill = false;
  await clock.advance(60_000);
  assert.equal(calls, 8);
  ill = true;
  client.put(pods, aPod({ name: "a", labels: { v: "4" } }));
  await clock.advance(60_000);
  assert.equal(calls, 11, "the failure before the success does not count");
});

test("a source's handler that throws for one object still enqueues the keys of the others", async (t) => {
  const { client, informers, run } = setUp(t);
  client.put(pods, aPod({ name: "a" }), aPod({ name: "b" }));
  const seen: string[] = [];
  await run({
    sources: [
      enqueueMapped(informers.for<Pod>(pods), ({ metadata }) => {
        if (metadata.name === "a") throw new Error("unreadable");
        return [metadata.name ?? ""];
      }),
    ],
    reconcile: async (key) => {
      seen.push(key);
      return {};
    },
  });
  client.put(pods, aPod({ name: "c" }));
  await settle();
  assert.deepEqual(seen, ["b", "c"]);
});

test("a pod that changes its owner enqueues both owners, and one without a controller enqueues none", async (t) => {
  const { client, informers, run } = setUp(t);
  const [one, two] = [aReplicaSet({ name: "one" }), aReplicaSet({ name: "two" })];
  client.put(pods, aPod({ name: "a", owner: one }));
  const seen: string[] = [];
  await run({
    sources: [enqueueControllerOwner(informers.for<Pod>(pods), "ReplicaSet")],
    reconcile: async (key) => {
      seen.push(key);
      return {};
    },
  });
  seen.length = 0;
  client.put(pods, aPod({ name: "a", owner: two }));
  client.put(pods, aPod({ name: "b" }));
  await settle();
  assert.deepEqual(seen, ["default/one", "default/two"]);
});

test("renewed expectations expire after their own time, and deleted ones are fulfilled", async () => {
  const clock = newFakeClock();
  const expectations = newExpectations(clock);
  expectations.expectCreations("a", 1);
  await clock.advance(299_000);
  expectations.expect("a", 1, ["x"]);
  await clock.advance(2_000);
  assert.equal(expectations.satisfied("a"), false, "the renewed ones began anew");
  expectations.creationObserved("a");
  assert.equal(expectations.satisfied("a"), false, "the deletion is not seen yet");
  expectations.deletionObserved("a", "x");
  assert.equal(expectations.satisfied("a"), true);
  expectations.expectCreations("a", 3);
  expectations.forget("a");
  assert.equal(expectations.satisfied("a"), true);
  expectations.creationObserved("a");
  expectations.deletionObserved("a", "x");
  expectations.expectCreations("a", 1);
  assert.equal(expectations.satisfied("a"), false, "what was seen while nothing was expected counts for nothing");
});

test("surplus observed creations do not count towards later expectations", () => {
  const expectations = newExpectations(newFakeClock());
  expectations.expectCreations("a", 1);
  expectations.creationObserved("a");
  expectations.creationObserved("a");
  assert.equal(expectations.satisfied("a"), true);
  expectations.expectDeletions("a", ["x", "y"]);
  expectations.creationObserved("a");
  assert.equal(expectations.satisfied("a"), false);
  expectations.expectCreations("a", 1);
  assert.equal(expectations.satisfied("a"), false, "expecting replaces: nothing is left of the deletions either");
  expectations.creationObserved("a");
  assert.equal(expectations.satisfied("a"), true);
});

test("a failure that is retried is counted and logged as an error; a conflict is counted, but logged only with verbosity 2", async (t) => {
  const { client, clock, informers, run } = setUp(t);
  client.put(pods, aPod({ name: "a" }));
  const errors: string[] = [];
  const lines: string[] = [];
  let retried = 0;
  const info = (message: string) => void lines.push(message);
  const failures: Error[] = [conflict(pods, "a", "changed"), new Error("no space")];
  await run({
    sources: [enqueueSelf(informers.for<Pod>(pods))],
    log: {
      ...discardLogger,
      info,
      v: (level) => ({ ...discardLogger, info: (message) => info(`${level}: ${message}`) }),
      error: (message) => void errors.push(message),
    },
    metrics: () => ({ added() {}, got() {}, done() {}, retried: () => void retried++ }),
    async reconcile() {
      const failure = failures.shift();
      if (failure !== undefined) throw failure;
      return {};
    },
  });
  assert.deepEqual([retried, errors, lines], [1, [], ["2: reconcile lost against another writer"]]);
  await clock.advance(1_000);
  assert.deepEqual([retried, errors], [2, ["reconcile failed"]]);
});

test("a controller that is stopped while its sources sync reconciles nothing and ends, whether they then sync or fail", async () => {
  for (const outcome of [undefined, new Error("the server went away")]) {
    const stop = new AbortController();
    const waitForSync = async (): Promise<void> => {
      stop.abort();
      if (outcome !== undefined) throw outcome;
    };
    const controller = newController({
      name: "test",
      sources: [{ start: ({ enqueue }) => enqueue("a"), waitForSync }],
      reconcile: () => assert.fail("it is stopped"),
      log: discardLogger,
      clock: newFakeClock(),
    });
    await controller.run(stop.signal);
  }
});

test("a key that is given up has the decision of its last failure, without a next try", async (t) => {
  const { client, clock, informers, run } = setUp(t);
  client.put(pods, aPod({ name: "a" }));
  const decisions = new DecisionLog({ component: "test", clock });
  let calls = 0;
  await run({
    sources: [enqueueSelf(informers.for<Pod>(pods))],
    decisions,
    maxRetries: 1,
    reconcile: async () => Promise.reject(new Error(`failure ${++calls}`)),
  });
  const decision = () => decisions.of({ group: "", resource: "pods", kind: "Pod", namespace: "default", name: "a", uid: "" })[0];
  assert.equal(decision()?.nextTryAt, "2022-01-01T00:00:00Z");
  await clock.advance(60_000);
  assert.deepEqual([calls, decision()?.summary, decision()?.nextTryAt], [2, "failure 2", undefined]);
});

test("the next try is that of the decision, else that of the queue; a key is one of the first source that has a resource", async (t) => {
  const { client, clock, informers, run } = setUp(t);
  client.put(pods, aPod({ name: "a" }), aPod({ name: "b" }));
  const decisions = new DecisionLog({ component: "test", clock });
  const waiting = { verdict: "waiting", reason: "R", description: "waits" } as const;
  await run({
    sources: [
      enqueueMapped(informers.for<Pod>(pods), () => []),
      enqueueSelf(informers.for<Pod>(pods)),
      enqueueSelf(informers.for<ReplicaSet>(replicaSets)),
    ],
    decisions,
    reconcile: async (key) => ({
      requeueAfterMs: 60_000,
      decision: key.endsWith("a") ? { ...waiting, nextTryMs: clock.now() + 5_000 } : waiting,
    }),
  });
  const nextTryOf = (name: string) =>
    decisions.of({ group: "", resource: "pods", kind: "Pod", namespace: "default", name, uid: "" })[0]?.nextTryAt;
  assert.deepEqual([nextTryOf("a"), nextTryOf("b")], ["2022-01-01T00:00:05Z", "2022-01-01T00:01:00Z"]);
});

test("a key that the controller itself queues is not batched", async (t) => {
  const { run } = setUp(t);
  const seen: string[] = [];
  const { controller } = await run({
    sources: [],
    batchMs: 500,
    reconcile: async (key) => {
      seen.push(key);
      return {};
    },
  });
  controller.enqueue("default/a");
  await settle();
  assert.deepEqual(seen, ["default/a"]);
});

test("an update that is not relevant enqueues nothing, a relevant one its key once", async (t) => {
  const { client, informers, run } = setUp(t);
  client.put(pods, aPod({ name: "a", labels: { v: "1" } }));
  const seen: string[] = [];
  const versionOf = ({ metadata }: Pod): string | undefined => metadata.labels?.["v"];
  await run({
    sources: [enqueueSelf(informers.for<Pod>(pods), (old, now) => versionOf(old) !== versionOf(now))],
    reconcile: async (key) => {
      seen.push(key);
      return {};
    },
  });
  client.put(pods, aPod({ name: "a", labels: { v: "1", other: "x" } }));
  await settle();
  assert.deepEqual(seen, ["default/a"], "the first one is that of the addition");
  client.put(pods, aPod({ name: "a", labels: { v: "2" } }));
  await settle();
  assert.deepEqual(seen, ["default/a", "default/a"]);
});

test("what is expected says how long at most until it counts no more", async () => {
  const clock = newFakeClock();
  const expectations = newExpectations(clock);
  assert.equal(expectations.pendingMs("a"), undefined);
  expectations.expectDeletions("a", ["x"]);
  await clock.advance(100_000);
  const pendingMs = expectations.pendingMs("a");
  assert.equal(pendingMs, 200_001);
  await clock.advance(pendingMs ?? 0);
  assert.deepEqual([expectations.pendingMs("a"), expectations.satisfied("a")], [undefined, true]);
});

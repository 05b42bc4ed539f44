import assert from "node:assert/strict";
import { test } from "node:test";
import { type Clock, realClock } from "@coxswain/apimachinery/process/clock/clock";
import { newFakeClock } from "@coxswain/apimachinery/process/clock/fake-clock";
import { discardLogger } from "@coxswain/apimachinery/process/logging/logger";
import { settle } from "@coxswain/apimachinery/testing/wait-for";
import type { ChangeHandlers, ChangeSource, RawChange } from "./change-source.ts";
import { WatchMultiplexer } from "./multiplexer.ts";

/** A store whose watch emits only what the test sends. */
function aSource() {
  let handlers: ChangeHandlers = { onChanges() {}, onProgress() {}, onLost() {}, onOtherHistory() {} };
  const source = {
    revision: 10,
    reads: 0,
    barriers: 0,
    watchedFrom: [] as number[],
    stopped: [] as number[],
    canWrite: true,
    async currentRevision() {
      source.reads++;
      return source.revision;
    },
    async writeBarrier() {
      source.barriers++;
      if (!source.canWrite) throw new Error("no space");
      source.revision++;
      const written = source.revision;
      setImmediate(() => void source.deliver([{ key: "barrier", value: undefined, revision: written }]));
      return written;
    },
    /** Whether the store supports progress requests. */
    notifies: false,
    progressRequests: 0,
    watch(after: number, given: ChangeHandlers) {
      source.watchedFrom.push(after);
      handlers = given;
      const requestProgress = (): boolean => {
        if (source.notifies) source.progressRequests++;
        return source.notifies;
      };
      return { requestProgress, stop: () => void source.stopped.push(after) };
    },
    deliver(changes: RawChange[]) {
      return handlers.onChanges(changes, (changes.at(-1) as RawChange).revision);
    },
    progress: (revision: number) => handlers.onProgress(revision),
    lose: () => handlers.onLost(),
    finds: () => handlers.onOtherHistory(),
    async past(after: number) {
      return { after, changes: [{ key: "pods/web/a", value: Buffer.from("1"), revision: after + 1, previous: undefined }] };
    },
  };
  return source satisfies ChangeSource & Record<string, unknown>;
}

async function aMultiplexer(source: ReturnType<typeof aSource>, clock: Clock = realClock) {
  const multiplexer = new WatchMultiplexer({ source, clock, log: discardLogger });
  await multiplexer.start();
  source.barriers = 0;
  return multiplexer;
}

test("changes go to the cache of their folder, also of two levels", async () => {
  const source = aSource();
  const multiplexer = await aMultiplexer(source);
  const seen: string[] = [];
  for (const folder of ["pods", "services/specs", "services/endpoints", "example.com/widgets"]) {
    multiplexer.attach(folder, {
      apply: (key, value, revision) => void seen.push(`${folder}: ${key} ${value ?? "-"} ${revision}`),
      reset() {},
    });
  }
  await source.deliver([
    { key: "pods/web/a", value: Buffer.from("1"), revision: 11 },
    { key: "services/specs/web/b", value: Buffer.from("2"), revision: 11 },
    { key: "services/endpoints/web/b", value: undefined, revision: 12 },
    { key: "example.com/widgets/c", value: Buffer.from("3"), revision: 13 },
    { key: "unknown/d", value: Buffer.from("4"), revision: 14 },
    { key: "barrier", value: Buffer.from(""), revision: 15 },
  ]);
  assert.deepEqual(seen, [
    "pods: web/a 1 11",
    "services/specs: web/b 2 11",
    "services/endpoints: web/b - 12",
    "example.com/widgets: c 3 13",
  ]);
  assert.equal(multiplexer.revision, 15);
});

test("a change that has to be waited for holds back those after it, and the revision that is reported", async () => {
  const source = aSource();
  const multiplexer = await aMultiplexer(source);
  const seen: string[] = [];
  const opened = Promise.withResolvers<void>();
  multiplexer.attach("secrets", {
    async apply(key) {
      if (key === "a") await opened.promise;
      seen.push(key);
      if (key === "b") throw new Error("no key");
    },
    reset: () => void seen.push("reset"),
  });
  multiplexer.attach("pods", { apply: (key) => void seen.push(key), reset() {} });
  const done = source.deliver([
    { key: "pods/before", value: Buffer.from(""), revision: 12 },
    { key: "secrets/a", value: Buffer.from(""), revision: 13 },
    { key: "pods/after", value: Buffer.from(""), revision: 14 },
    { key: "secrets/b", value: Buffer.from(""), revision: 15 },
  ]);
  assert.deepEqual([seen, multiplexer.revision], [["before"], 12]); // the caches are at 12 and report this revision in lists
  opened.resolve();
  await done;
  assert.equal(multiplexer.revision, 15);
  assert.deepEqual(seen, ["before", "a", "after", "b", "reset"]);
});

test("requests of one turn share one read, and one that comes later gets its own", async () => {
  const source = aSource();
  const multiplexer = await aMultiplexer(source);
  source.reads = 0;
  assert.deepEqual(await Promise.all([multiplexer.fresh(), multiplexer.fresh(), multiplexer.fresh()]), [11, 11, 11]);
  assert.equal(source.reads, 1);
  await multiplexer.fresh();
  assert.equal(source.reads, 2);
  assert.equal(source.barriers, 0);
});

test("a fresh read waits for the change it must see", async () => {
  const source = aSource();
  const multiplexer = await aMultiplexer(source);
  source.revision = 12;
  const fresh = multiplexer.fresh();
  setImmediate(() => setImmediate(() => void source.deliver([{ key: "pods/web/a", value: undefined, revision: 12 }])));
  assert.equal(await fresh, 12);
  assert.equal(multiplexer.revision, 12);
});

test("when the revision was written elsewhere, one barrier serves all who wait", async () => {
  const source = aSource();
  const multiplexer = await aMultiplexer(source);
  source.revision = 20;
  assert.deepEqual(await Promise.all([multiplexer.fresh(), multiplexer.fresh(), multiplexer.fresh()]), [20, 20, 20]);
  assert.deepEqual([source.barriers, multiplexer.revision], [1, 21]);
});

test("a barrier that was under way before the revision was there is followed by another at once", async () => {
  const source = aSource();
  const clock = newFakeClock();
  const multiplexer = await aMultiplexer(source, clock);
  const first = Promise.withResolvers<number>();
  const { writeBarrier } = source;
  source.writeBarrier = () => {
    source.writeBarrier = writeBarrier;
    source.revision++;
    return first.promise;
  };
  source.revision = 20;
  const early = multiplexer.fresh();
  await settle();
  await clock.advance(4);
  await settle();
  source.revision = 30; // written outside of the prefix, after the barrier at 21
  const late = multiplexer.fresh();
  await settle();
  await clock.advance(4);
  await settle();
  first.resolve(21);
  await settle();
  assert.deepEqual([await early, await late, source.barriers], [20, 30, 1]);
});

test("when no barrier can be written, reads are sent to the store", async () => {
  const source = aSource();
  const multiplexer = await aMultiplexer(source);
  source.revision = 20;
  source.canWrite = false;
  assert.equal(await multiplexer.fresh(), undefined);
});

test("when the store reports watch progress, one progress request serves all waiting reads, without a write", async () => {
  const source = aSource();
  const clock = newFakeClock();
  const multiplexer = await aMultiplexer(source, clock);
  source.notifies = true;
  source.revision = 20;
  const answers: unknown[] = [];
  for (let i = 0; i < 3; i++) void multiplexer.fresh().then((revision) => answers.push(revision));
  await settle();
  await clock.advance(4);
  await settle();
  assert.deepEqual([source.progressRequests, multiplexer.revision], [1, 11]);
  source.progress(21);
  await settle();
  assert.deepEqual(answers, [20, 20, 20]);
  assert.deepEqual([source.progressRequests, source.barriers, multiplexer.revision, multiplexer.bookmarks], [1, 0, 21, 1]);
});

test("the store is queried again when it says nothing, or too little; without an answer reads are sent to it", async () => {
  const source = aSource();
  const clock = newFakeClock();
  const multiplexer = await aMultiplexer(source, clock);
  source.notifies = true;
  source.revision = 20;
  let answered = false;
  const fresh = multiplexer.fresh().finally(() => {
    answered = true;
  });
  await settle();
  const pass = async (ms: number): Promise<void> => {
    await clock.advance(ms);
    await settle();
  };
  await pass(4);
  assert.equal(source.progressRequests, 1);
  source.progress(19);
  await settle();
  assert.deepEqual([source.progressRequests, multiplexer.revision], [1, 19]);
  await pass(4);
  assert.equal(source.progressRequests, 2);
  await pass(100);
  await pass(4);
  assert.equal(source.progressRequests, 3);
  for (let i = 0; i < 40 && !answered; i++) await pass(100);
  assert.equal(await fresh, undefined);
  assert.deepEqual([source.barriers, source.progressRequests < 40], [0, true]);
});

test("reads that wait for an untrusted progress response use a barrier", async () => {
  const source = aSource();
  const clock = newFakeClock();
  const multiplexer = await aMultiplexer(source, clock);
  source.notifies = true;
  source.revision = 20;
  const fresh = multiplexer.fresh();
  await settle();
  await clock.advance(4);
  await settle();
  source.notifies = false;
  await clock.advance(100);
  await settle();
  await clock.advance(4);
  assert.equal(await fresh, 20);
  assert.deepEqual([source.progressRequests, source.barriers], [1, 1]);
});

test("lost history fills all caches anew, from a watch of the present", async () => {
  const source = aSource();
  const multiplexer = await aMultiplexer(source);
  const resets = Promise.withResolvers<void>();
  multiplexer.attach("pods", { apply() {}, reset: () => resets.resolve() });
  source.revision = 500;
  source.lose();
  await resets.promise;
  assert.deepEqual([source.watchedFrom, multiplexer.revision, multiplexer.generation], [[11, 501], 501, 1]);
});

test("a read that waits for a revision of a lost history is answered after the caches were refilled", async () => {
  const source = aSource();
  const multiplexer = await aMultiplexer(source);
  const order: string[] = [];
  multiplexer.attach("pods", { apply() {}, reset: () => void order.push("reset") });
  const waiting = multiplexer.reached(300, 5_000).then(() => order.push("reached"));
  source.revision = 500;
  source.lose();
  await waiting;
  assert.deepEqual(order, ["reset", "reached"]);
});

test("after etcd's revision went back, all caches are refilled, and reads go to etcd until then", async () => {
  const source = aSource();
  const multiplexer = await aMultiplexer(source);
  const reset = Promise.withResolvers<void>();
  multiplexer.attach("pods", { apply() {}, reset: () => reset.resolve() });
  await source.deliver([{ key: "pods/web/a", value: undefined, revision: 20 }]);
  source.revision = 5;
  assert.deepEqual(await Promise.all([multiplexer.fresh(), multiplexer.fresh()]), [undefined, undefined]);
  await reset.promise;
  // Clients hold revisions up to 20: the first one that none of them can hold is 21.
  assert.deepEqual(
    [source.watchedFrom, multiplexer.revision, multiplexer.restoredAt, multiplexer.generation],
    [[11, 21], 21, 21, 1],
  );
  source.revision = 23;
  assert.equal(await multiplexer.fresh(), 23, "by a separate barrier");
});

test("a restored store that is too far back is not written past what was known", async () => {
  const source = aSource();
  const multiplexer = await aMultiplexer(source);
  await source.deliver([{ key: "pods/web/a", value: undefined, revision: 100_000 }]);
  source.revision = 5;
  await multiplexer.fresh();
  assert.deepEqual([source.barriers, multiplexer.revision, multiplexer.restoredAt], [1, 6, 6]);
});

test("a watch that detects another history refills all caches, even when the store's revision is not lower", async () => {
  const source = aSource();
  const multiplexer = await aMultiplexer(source);
  let resets = 0;
  multiplexer.attach("pods", { apply() {}, reset: () => void resets++ });
  source.revision = 30;
  source.finds();
  await settle();
  assert.deepEqual([resets, multiplexer.revision, multiplexer.restoredAt], [1, 31, 31]);
});

test("a cache that fails to apply a change is filled again", async () => {
  const source = aSource();
  const multiplexer = await aMultiplexer(source);
  const resets = Promise.withResolvers<void>();
  multiplexer.attach("pods", {
    apply() {
      throw new Error("bug");
    },
    reset: () => resets.resolve(),
  });
  await source.deliver([{ key: "pods/web/a", value: undefined, revision: 12 }]);
  await resets.promise;
  assert.equal(multiplexer.revision, 12);
});

test("a cache that fails on a change keeps it from no other cache of the folder", async () => {
  const source = aSource();
  const multiplexer = await aMultiplexer(source);
  const seen: string[] = [];
  multiplexer.attach("pods", {
    apply() {
      throw new Error("bug");
    },
    reset: () => void seen.push("reset"),
  });
  multiplexer.attach("pods", { apply: (key) => void seen.push(key), reset() {} });
  await source.deliver([{ key: "pods/web/a", value: undefined, revision: 12 }]);
  await settle();
  assert.deepEqual(seen, ["web/a", "reset"]);
});

test("earlier events are passed to the cache of its prefix", async () => {
  const source = aSource();
  const multiplexer = await aMultiplexer(source);
  const seen: string[] = [];
  multiplexer.attach("pods", {
    apply() {},
    reset() {},
    past: (after, changes) =>
      void seen.push(`after ${after}: ${changes.map(({ key, revision }) => `${key} ${revision}`).join()}`),
  });
  multiplexer.attach("secrets", {
    apply() {},
    reset() {},
    past: (after, changes) => void seen.push(`after ${after}: ${changes.length}`),
  });
  await multiplexer.replayPast(4);
  assert.deepEqual(seen, ["after 7: web/a 8", "after 7: 0"]);
});

test("reads that wait for a revision are answered when it is reached, the others at their timeout or at the end", async () => {
  const source = aSource();
  const clock = newFakeClock();
  const multiplexer = await aMultiplexer(source, clock);
  const now = multiplexer.revision;
  const answers = new Map<string, boolean>();
  const waiting = clock.waiting;
  const wait = (name: string, revision: number, ms: number): void => {
    void multiplexer.reached(revision, ms).then((answer) => {
      answers.set(name, answer);
    });
  };
  wait("now", now, 0);
  wait("next", now + 1, 1000);
  wait("same", now + 1, 1000);
  wait("later", now + 5, 1000);
  wait("soon", now + 5, 10);
  await source.deliver([{ key: "pods/web/a", value: Buffer.from(""), revision: now + 1 }]);
  await settle();
  assert.deepEqual(Object.fromEntries(answers), { now: true, next: true, same: true });
  await clock.advance(10);
  assert.deepEqual(Object.fromEntries(answers), { now: true, next: true, same: true, soon: false });
  multiplexer.stop();
  await settle();
  assert.deepEqual([answers.get("later"), clock.waiting], [false, waiting]);
});

test("a cache that is detached hears nothing more, the other one of its folder does", async () => {
  const source = aSource();
  const multiplexer = await aMultiplexer(source);
  const seen: string[] = [];
  const attach = (name: string) => multiplexer.attach("pods", { apply: (key) => void seen.push(`${name} ${key}`), reset() {} });
  const [first] = [attach("first"), attach("second")];
  const deliver = (name: string, revision: number) => source.deliver([{ key: `pods/${name}`, value: Buffer.from(""), revision }]);
  await deliver("a", 12);
  first?.();
  first?.();
  await deliver("b", 13);
  assert.deepEqual(seen, ["first a", "second a", "second b"]);
});

test("a watch that is lost twice is begun again once; the lost one is stopped", async () => {
  const source = aSource();
  await aMultiplexer(source);
  source.lose();
  source.lose();
  await settle();
  assert.deepEqual([source.watchedFrom, source.stopped], [[11, 12], [11]]);
});

test("a watch that cannot be begun again is tried again every second", async () => {
  const [source, clock] = [aSource(), newFakeClock()];
  await aMultiplexer(source, clock);
  let failures = 3;
  source.canWrite = false;
  source.currentRevision = () => (failures-- > 0 ? Promise.reject(new Error("etcd is away")) : Promise.resolve(20));
  source.lose();
  await settle();
  for (const left of [2, 1, 0]) {
    assert.deepEqual([failures, source.watchedFrom], [left, [11]]);
    await clock.advance(1000);
    await settle();
  }
  assert.deepEqual(source.watchedFrom, [11, 20]);
});

test("a restore that a read finds while the watch is begun again is one of that watch", async () => {
  const source = aSource();
  const multiplexer = await aMultiplexer(source);
  await source.deliver([{ key: "pods/web/a", value: undefined, revision: 100 }]);
  const { writeBarrier } = source;
  const held = Promise.withResolvers<number>();
  source.writeBarrier = () => held.promise;
  source.lose();
  source.revision = 50;
  assert.equal(await multiplexer.fresh(), undefined);
  source.writeBarrier = writeBarrier;
  held.resolve(50);
  await settle();
  assert.equal(multiplexer.restoredAt, 101, "the first revision that no client can hold");
});

test("the revision of a restore is kept when the watch is lost later", async () => {
  const source = aSource();
  const multiplexer = await aMultiplexer(source);
  source.finds();
  await settle();
  assert.equal(multiplexer.restoredAt, 12);
  source.lose();
  await settle();
  assert.deepEqual([multiplexer.generation, multiplexer.restoredAt], [2, 12]);
});

test("a change that was waited for when the watch was lost takes none of the others along", async () => {
  const source = aSource();
  const multiplexer = await aMultiplexer(source);
  const seen: string[] = [];
  const decoding = Promise.withResolvers<void>();
  multiplexer.attach("secrets", { apply: () => decoding.promise, reset: () => void seen.push("reset") });
  multiplexer.attach("pods", { apply: (key) => void seen.push(key), reset() {} });
  const done = source.deliver([
    { key: "secrets/a", value: Buffer.from(""), revision: 13 },
    { key: "pods/b", value: Buffer.from(""), revision: 40 },
  ]);
  source.lose();
  await settle();
  decoding.resolve();
  await done;
  assert.deepEqual([seen, multiplexer.revision], [["reset"], 12]);
});

test("the past of a watch that was lost meanwhile is dropped", async () => {
  const source = aSource();
  const multiplexer = await aMultiplexer(source);
  const seen: number[] = [];
  multiplexer.attach("pods", { apply() {}, reset() {}, past: (after) => void seen.push(after) });
  const { past } = source;
  source.past = async (after) => {
    source.lose();
    await settle();
    return past(after);
  };
  await multiplexer.replayPast(4);
  assert.deepEqual(seen, []);
});

test("a read of the revision that began before the watch was begun again finds no restore", async () => {
  const source = aSource();
  const multiplexer = await aMultiplexer(source);
  await source.deliver([{ key: "pods/web/a", value: undefined, revision: 100_000 }]);
  const early = Promise.withResolvers<number>();
  source.currentRevision = () => early.promise;
  const fresh = multiplexer.fresh();
  await settle();
  source.finds();
  await settle();
  early.resolve(11);
  await fresh;
  await settle();
  assert.equal(multiplexer.generation, 1);
});

test("the barrier of a lost history does not count in a shorter one", async () => {
  const source = aSource();
  const multiplexer = await aMultiplexer(source);
  source.revision = 100_000;
  assert.equal(await multiplexer.fresh(), 100_000);
  source.revision = 5;
  await multiplexer.fresh();
  await settle();
  source.revision = 50; // written outside of the prefix
  assert.deepEqual([await multiplexer.fresh(), multiplexer.revision], [50, 51]);
});

test("a store that refuses writes is watched from what it has, also after a restore, and barriers are tried again later", async () => {
  const source = aSource();
  source.canWrite = false;
  const multiplexer = await aMultiplexer(source);
  assert.deepEqual([source.watchedFrom, multiplexer.revision], [[10], 10]);
  source.revision = 20;
  assert.equal(await multiplexer.fresh(), undefined);
  source.canWrite = true;
  assert.equal(await multiplexer.fresh(), 20);
  source.canWrite = false;
  source.barriers = 0;
  source.revision = 15;
  await multiplexer.fresh();
  await settle();
  assert.deepEqual([source.watchedFrom, source.barriers], [[10, 15], 2]);
});

test("after stop no watch is opened, and reads that wait for progress are released", async () => {
  const source = aSource();
  const { writeBarrier } = source;
  const written = Promise.withResolvers<number>();
  source.writeBarrier = () => written.promise;
  const early = new WatchMultiplexer({ source, clock: realClock, log: discardLogger });
  const starting = early.start();
  early.stop();
  written.resolve(11);
  await starting;
  assert.deepEqual(source.watchedFrom, []);
  source.writeBarrier = writeBarrier;
  const clock = newFakeClock();
  const multiplexer = await aMultiplexer(source, clock);
  source.notifies = true;
  source.revision = 20;
  let answer: unknown = "none";
  void multiplexer.fresh().then((revision) => {
    answer = revision;
  });
  await settle();
  await clock.advance(4);
  await settle();
  assert.equal(source.progressRequests, 1);
  multiplexer.stop();
  await clock.advance(4);
  await settle();
  assert.deepEqual([answer, clock.waiting, multiplexer.running], [undefined, 0, false]);
});

import assert from "node:assert/strict";
import { test } from "node:test";
import { tooLargeResourceVersion } from "@coxswain/apimachinery/objects/errors/status-error";
import { newFakeClock } from "@coxswain/apimachinery/process/clock/fake-clock";
import { discardLogger } from "@coxswain/apimachinery/process/logging/logger";
import { isReleased } from "@coxswain/apimachinery/testing/held-bytes";
import { settle } from "@coxswain/apimachinery/testing/wait-for";
import { AppliedRevision, CatchUp, Freshness } from "./freshness.ts";

function aFreshness() {
  const clock = newFakeClock();
  const multiplexer = {
    revision: 10,
    generation: 0,
    stored: 12,
    fresh: async (): Promise<number | undefined> => multiplexer.stored,
    reached: async (revision: number) => revision <= multiplexer.revision,
    storedRevision: async () => multiplexer.stored,
  };
  return { clock, multiplexer, freshness: new Freshness({ multiplexer, listed: () => 5, timeoutMs: 3_000, clock }) };
}

test("requests that wait for the first list continue when it is loaded, or give up at their timeout", async () => {
  const { clock, freshness } = aFreshness();
  const late = freshness.readyInTime();
  void clock.advance(3_000);
  assert.equal(await late, false);
  const inTime = freshness.readyInTime();
  freshness.setReady();
  assert.equal(await inTime, true);
  assert.equal(clock.waiting, 0);
});

test("a read that waits when the state is lost again waits for the next list", async () => {
  const { freshness } = aFreshness();
  freshness.invalidate();
  const loaded = freshness.whenReady();
  freshness.setReady();
  await loaded;
  freshness.invalidate();
  assert.notEqual(freshness.whenReady(), loaded, "the new list is not loaded");
  const again = freshness.whenReady();
  freshness.invalidate();
  assert.equal(freshness.whenReady(), again);
});

test("a cache that was reset during the wait is not up to date, even when it is ready again", async () => {
  const { multiplexer, freshness } = aFreshness();
  freshness.setReady();
  assert.equal(await freshness.upToDate(), true);
  multiplexer.fresh = async () => {
    multiplexer.generation++;
    return 12;
  };
  assert.equal(await freshness.upToDate(), false);
});

test("a revision that does not arrive is refused, one beyond the store's at once", async () => {
  const { multiplexer, freshness } = aFreshness();
  freshness.setReady();
  assert.equal(await freshness.notOlderThan(10), true);
  multiplexer.fresh = async () => undefined;
  const refusal = (wanted: number, current: number, seconds: number) => ({
    message: `Timeout: Too large resource version: ${wanted}, current: ${current}`,
    status: tooLargeResourceVersion(wanted, current, seconds).status,
  });
  await assert.rejects(freshness.notOlderThan(11), refusal(11, 10, 1));
  await assert.rejects(freshness.reachedExisting(13), refusal(13, 12, 0));
});

test("a cache that failed during the wait is neither up to date nor recent enough, though the watch continues", async () => {
  const { multiplexer, freshness } = aFreshness();
  freshness.setReady();
  multiplexer.fresh = async () => {
    freshness.invalidate();
    return 12;
  };
  assert.equal(await freshness.upToDate(), false);
  freshness.setReady();
  multiplexer.fresh = async () => undefined;
  multiplexer.reached = async () => {
    freshness.invalidate();
    return true;
  };
  assert.equal(await freshness.notOlderThan(20), false);
});

test("a read that timed out while it waited for a revision is not retained", async () => {
  const clock = newFakeClock();
  const applied = new AppliedRevision(clock);
  const wait = (): WeakRef<object> => {
    const requested = {};
    void applied.reached(5, 1_000).then(() => requested);
    return new WeakRef(requested);
  };
  const [late, waiting] = [wait(), applied.reached(6, 2_000)];
  await clock.advance(1_000);
  assert.equal(await isReleased(late), true);
  applied.advance(7);
  assert.deepEqual([await waiting, clock.waiting], [true, 0]);
  applied.advance(6);
  assert.equal(applied.value, 7);
});

test("a read that waits for a revision is not answered by the one before it", async () => {
  const clock = newFakeClock();
  const applied = new AppliedRevision(clock);
  const answers: boolean[] = [];
  void applied.reached(6, 1_000).then((answer) => void answers.push(answer));
  applied.advance(5);
  await settle();
  assert.deepEqual(answers, []);
  applied.advance(6);
  await settle();
  assert.deepEqual([answers, clock.waiting], [[true], 0]);
});

test("later revisions do not cancel the timer of a wait that has ended", async () => {
  const clock = newFakeClock();
  let cancelled = 0;
  const applied = new AppliedRevision({
    ...clock,
    after: (ms, run) => {
      const timer = clock.after(ms, run);
      const cancel = (): void => {
        cancelled++;
        timer.cancel();
      };
      return { cancel };
    },
  });
  const [late, inTime] = [applied.reached(5, 1_000), applied.reached(6, 2_000)];
  await clock.advance(1_000);
  applied.advance(6);
  applied.advance(7);
  assert.deepEqual([await late, await inTime, cancelled], [false, true, 1]);
});

test("a watch resumes from the store's latest revision, though the cache has yet to see it, and from none beyond", async () => {
  const { multiplexer, freshness } = aFreshness();
  freshness.setReady();
  multiplexer.fresh = async () => {
    multiplexer.revision = 12;
    return 12;
  };
  assert.equal(await freshness.reachedExisting(12), true);
  await assert.rejects(freshness.reachedExisting(13), /Too large resource version: 13, current: 12/);
});

/** A store whose barriers are written at these revisions; an Error fails. */
function aCatchUp(barriers: readonly (number | Error)[], progress = false) {
  const clock = newFakeClock();
  const applied = new AppliedRevision(clock);
  const left = [...barriers];
  const counts = { barriers: 0, requests: 0 };
  const catchUp = new CatchUp({
    applied,
    requestProgress() {
      counts.requests += Number(progress);
      return progress;
    },
    async writeBarrier() {
      counts.barriers++;
      const next = left.shift();
      if (typeof next !== "number") throw next;
      return next;
    },
    clock,
    log: discardLogger,
  });
  /** Waits until the event of the revision should have come. */
  const reach = async (revision: number) => {
    const reached = catchUp.reach(revision);
    await clock.advance(4);
    return { reached };
  };
  return { clock, applied, catchUp, reach, counts };
}

test("after a barrier that could not be written the next read writes one", async () => {
  const { applied, reach, counts } = aCatchUp([new Error("no space"), 10]);
  assert.equal(await (await reach(5)).reached, false);
  const second = await reach(5);
  await settle();
  assert.equal(counts.barriers, 2);
  applied.advance(10);
  assert.equal(await second.reached, true);
});

test("the barrier of a watch that was lost serves no read of its successor", async () => {
  const { applied, catchUp, reach, counts } = aCatchUp([20, 21]);
  const reads = [await reach(15), await reach(16)];
  await settle();
  assert.equal(counts.barriers, 1, "the second read waits for the barrier of the first");
  catchUp.restart();
  reads.push(await reach(15));
  await settle();
  assert.equal(counts.barriers, 2);
  applied.advance(21);
  assert.deepEqual(await Promise.all(reads.map(({ reached }) => reached)), [true, true, true]);
});

test("a request for progress that was answered does not end the next one", async () => {
  const { clock, applied, catchUp, reach, counts } = aCatchUp([], true);
  const first = await reach(5);
  await clock.advance(40);
  catchUp.progressArrived(); // of an earlier revision
  await settle();
  await clock.advance(4);
  await settle();
  assert.equal(counts.requests, 2);
  await clock.advance(57); // the time of the first request has passed, that of the second has not
  const second = await reach(6);
  await settle();
  assert.equal(counts.requests, 2, "it waits for the answer to the second");
  applied.advance(6);
  catchUp.progressArrived();
  assert.deepEqual(await Promise.all([first.reached, second.reached]), [true, true]);
});

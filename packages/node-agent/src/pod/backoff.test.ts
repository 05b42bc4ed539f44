import assert from "node:assert/strict";
import { test } from "node:test";
import { newFakeClock } from "@coxswain/apimachinery/process/clock/fake-clock";
import { newCrashLoops } from "../pods/crash-loops.ts";
import { aContainer, aContainerRecord, aNodePod, aPodRecord } from "../testing/builders.ts";
import { newBackoff } from "./backoff.ts";

function backingOff() {
  const clock = newFakeClock();
  return { clock, backoff: newBackoff({ initialMs: 1_000, maxMs: 3_000, clock }) };
}

test("the back-off doubles with each attempt up to its maximum, and ends after it has passed", async () => {
  const { clock, backoff } = backingOff();
  assert.deepEqual([backoff.current("a"), backoff.isWaiting("a")], [0, false]);
  for (const waitMs of [1_000, 2_000, 3_000, 3_000]) {
    backoff.next("a");
    assert.equal(backoff.current("a"), waitMs);
    await clock.advance(waitMs - 1);
    assert.equal(backoff.isWaiting("a"), true);
    await clock.advance(1);
    assert.equal(backoff.isWaiting("a"), false);
  }
});

test("after twice the maximum without an attempt the back-off restarts and is forgotten", async () => {
  const { clock, backoff } = backingOff();
  for (const key of ["a", "a", "b"]) backoff.next(key);
  await clock.advance(6_001);
  backoff.next("a");
  backoff.collect();
  assert.deepEqual([backoff.current("a"), backoff.current("b")], [1_000, 0]);
});

test("a back-off may start before the last attempt or after it", async () => {
  const { clock, backoff } = backingOff();
  backoff.next("a");
  await clock.advance(5_000);
  assert.deepEqual([backoff.isWaiting("a", 999), backoff.isWaiting("a", 1_000)], [true, false]);
  await clock.advance(2_000);
  assert.equal(backoff.isWaiting("a", 0), false, "what ended so long after the last try does not end again and again");
});

test("a container that always fails at once is restarted after 10 s, then after twice as long each time, up to 5 minutes", async () => {
  const clock = newFakeClock();
  const reported: unknown[] = [];
  const loops = newCrashLoops({ clock, event: (_, ...event) => void reported.push(event) });
  const check = (finishedAt: number) =>
    loops.check(aNodePod(), aPodRecord([aContainerRecord({ state: "exited", finishedAt })]), aContainer(), "init");
  check(clock.now());
  for (const seconds of [10, 20, 40, 80, 160, 300, 300]) {
    const ended = clock.now();
    await clock.advance(seconds * 1000 - 1);
    assert.throws(() => check(ended), { reason: "CrashLoopBackOff" }, `${seconds} s`);
    await clock.advance(1);
    check(ended);
  }
  const event = [{ name: "main", kind: "init" }, "Warning", "BackOff", "Back-off restarting failed container"];
  assert.deepEqual(reported, Array(7).fill(event));
  assert.throws(() => check(clock.now()), {
    message: "back-off 5m0s restarting failed container=main pod=web_default(uid-1)",
  });
});

test("a container that was created but never started does not hide the end of the one before", () => {
  const clock = newFakeClock();
  const loops = newCrashLoops({ clock, event: () => undefined });
  const record = aPodRecord([
    aContainerRecord({ id: "2", state: "created", createdAt: 2 }),
    aContainerRecord({ id: "1", state: "exited", createdAt: 1, finishedAt: clock.now() }),
  ]);
  const check = () => loops.check(aNodePod(), record, aContainer(), "regular");
  check();
  assert.throws(check, { reason: "CrashLoopBackOff" });
});

test("a container that ran for longer than twice the longest back-off begins with the shortest again", async () => {
  const clock = newFakeClock();
  const loops = newCrashLoops({ clock, event: () => undefined });
  const end = (finishedAt: number) =>
    loops.check(aNodePod(), aPodRecord([aContainerRecord({ state: "exited", finishedAt })]), aContainer(), "regular");
  end(clock.now());
  await clock.advance(10_000);
  end(clock.now() - 10_000);
  await clock.advance(600_001);
  end(clock.now());
  assert.throws(() => end(clock.now()), { message: /^back-off 10s / });
  const failed = clock.now();
  await clock.advance(700_000); // it failed at once, and is looked at only now
  end(failed);
  assert.throws(() => end(clock.now()), { message: /^back-off 20s / });
});

for (const setOnMs of [3_600_000, -3_600_000]) {
  test(`a wall clock that is set ${setOnMs < 0 ? "back" : "forward"} does not lengthen the back-off`, async () => {
    const { clock, backoff } = backingOff();
    backoff.next("a");
    const loops = newCrashLoops({ clock, event: () => undefined });
    const check = () => {
      const record = aPodRecord([aContainerRecord({ state: "exited", finishedAt })]);
      loops.check(aNodePod(), record, aContainer(), "regular");
    };
    const finishedAt = clock.now();
    check();
    assert.throws(check, { reason: "CrashLoopBackOff" });
    clock.setOn(setOnMs);
    if (setOnMs < 0) assert.throws(check, { reason: "CrashLoopBackOff" }, "nor does it end one");
    assert.equal(backoff.isWaiting("a"), true);
    await clock.advance(10_000);
    assert.equal(backoff.isWaiting("a"), false);
    check();
  });
}

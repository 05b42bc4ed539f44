import assert from "node:assert/strict";
import { test } from "node:test";
import type { EndpointSlice } from "@coxswain/apimachinery/objects/schema/kinds/discovery/v1";
import { newFakeClock } from "@coxswain/apimachinery/process/clock/fake-clock";
import { newSliceTracker } from "./slice-tracker.ts";

const slice = (uid: string, generation: number): EndpointSlice => ({
  metadata: { name: uid, namespace: "default", uid, generation },
  addressType: "IPv4",
  endpoints: [],
  ports: [],
});
const service = "default/web";

test("a cache is stale while it lacks any slice that was written, or shows an older state of the second one", () => {
  const tracker = newSliceTracker(newFakeClock());
  tracker.recordWrite(service, slice("a", 1));
  tracker.recordWrite(service, slice("b", 2));
  assert.equal(tracker.isStale(service, []), true);
  assert.equal(tracker.isStale(service, [slice("a", 1)]), true);
  assert.equal(tracker.isStale(service, [slice("a", 1), slice("b", 1)]), true);
  assert.equal(tracker.isStale(service, [slice("a", 1), slice("b", 2)]), false);
  assert.equal(tracker.isStale(service, [slice("a", 5), slice("b", 3)]), false, "newer is as good");
  assert.equal(tracker.isStale("default/other", []), false);
});

test("a cache that shows what was deleted is stale until it is seen to go", () => {
  const tracker = newSliceTracker(newFakeClock());
  tracker.recordWrite(service, slice("a", 1));
  tracker.recordDeletion(service, slice("a", 1));
  assert.equal(tracker.isStale(service, [slice("a", 1)]), true);
  assert.equal(tracker.isStale(service, []), false);
  assert.equal(tracker.deletionObserved(slice("a", 1)), true);
  assert.equal(tracker.deletionObserved(slice("a", 1)), false, "expected once");
  assert.equal(tracker.isStale(service, [slice("a", 1)]), false);
});

test("a foreign deletion, and a generation after our own write, count as changes", () => {
  const tracker = newSliceTracker(newFakeClock());
  tracker.recordWrite(service, slice("a", 2));
  assert.deepEqual(
    [1, 2, 3].map((generation) => tracker.isForeignChange(slice("a", generation))),
    [false, false, true],
  );
  assert.equal(tracker.isForeignChange(slice("unknown", 1)), true);
  assert.equal(tracker.deletionObserved(slice("a", 2)), false);
});

test("a slice that the cache has not shown for five minutes is given up; another write restarts the time", async () => {
  const clock = newFakeClock();
  const tracker = newSliceTracker(clock);
  tracker.recordWrite(service, slice("a", 1));
  await clock.advance(200_000);
  tracker.recordWrite(service, slice("a", 2));
  await clock.advance(200_000);
  assert.equal(tracker.isStale(service, [slice("a", 1)]), true);
  await clock.advance(100_000);
  assert.equal(tracker.isStale(service, [slice("a", 1)]), true);
  await clock.advance(1);
  assert.equal(tracker.isStale(service, [slice("a", 1)]), false);
});

test("a service that went leaves nothing behind for one of its name", () => {
  const tracker = newSliceTracker(newFakeClock());
  tracker.recordWrite(service, slice("a", 1));
  tracker.recordWrite("default/other", slice("b", 1));
  tracker.forget(service);
  assert.equal(tracker.isStale(service, []), false);
  assert.equal(tracker.isForeignChange(slice("a", 1)), true);
  assert.equal(tracker.isStale("default/other", []), true);
});

test("slices that were seen to go are forgotten, and so are those of a service that went", () => {
  const tracker = newSliceTracker(newFakeClock());
  for (let i = 0; i < 10; i++) tracker.recordWrite(service, slice(`s${i}`, 1));
  for (let i = 1; i < 10; i++) tracker.deletionObserved(slice(`s${i}`, 1));
  assert.equal(tracker.isStale(service, [slice("s0", 1)]), false);
  assert.equal(tracker.size, 1);
  tracker.forget(service);
  assert.equal(tracker.size, 0);
});

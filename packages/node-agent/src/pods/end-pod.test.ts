import assert from "node:assert/strict";
import { test } from "node:test";
import { newFakeClock } from "@coxswain/apimachinery/process/clock/fake-clock";
import { aNodePod } from "../testing/builders.ts";
import { newEndPod } from "./end-pod.ts";

const verdict = { reason: "Evicted", message: "no memory" };

function ending(ends: Promise<void>) {
  const clock = newFakeClock();
  const reported: string[] = [];
  const endPod = newEndPod({
    workers: { evict: () => ends },
    notify: {
      pod: (_, __, type, reason, message, annotations) =>
        void reported.push([type, reason, message, ...Object.values(annotations ?? {})].join(" ")),
    },
    clock,
  });
  return { clock, reported, endPod };
}

test("ending a pod writes an event with the reason, and waits until the pod has ended", async () => {
  const { endPod, reported } = ending(Promise.resolve());
  await endPod(aNodePod(), verdict, 0);
  await endPod(aNodePod(), { ...verdict, annotations: { starved_resource: "memory" } }, 0);
  assert.deepEqual(reported, ["Warning Evicted no memory", "Warning Evicted no memory memory"]);
});

for (const { own, given, waitsMs } of [
  { own: 30, given: 0, waitsMs: 10_000 },
  { own: 30, given: undefined, waitsMs: 45_000 },
  { own: 30, given: 11, waitsMs: 16_000 },
]) {
  test(`ending a pod of ${own} s within ${given ?? "its own grace period"} waits for ${waitsMs} ms at most`, async () => {
    const { endPod, reported, clock } = ending(new Promise(() => undefined));
    const failures: string[] = [];
    const waiting = endPod(aNodePod({ terminationGracePeriodSeconds: own }), verdict, given).catch(
      (err: Error) => void failures.push(err.message),
    );
    await clock.advance(waitsMs - 1);
    assert.deepEqual(failures, []);
    await clock.advance(1);
    await waiting;
    assert.deepEqual(failures, ["timeout waiting to kill pod"]);
    const late = "Container runtime did not kill the pod within specified grace period.";
    assert.equal(reported.at(-1), `Warning ExceededGracePeriod ${late}`);
  });
}

import assert from "node:assert/strict";
import { test } from "node:test";
import { aPod, type PodOptions } from "@coxswain/apimachinery/testing/builders";
import { isActive, isAvailable } from "./pod-state.ts";

const now = Date.parse("2024-01-01T00:01:00Z");
const ready = (at: string): PodOptions => ({ ready: true, readySince: at });

for (const { name, options, minReadySeconds, want } of [
  { name: "that is not ready", options: { ready: false }, minReadySeconds: 0, want: false },
  { name: "that is ready, where no time is required", options: ready("2024-01-01T00:01:00Z"), minReadySeconds: 0, want: true },
  { name: "ready for exactly the required time", options: ready("2024-01-01T00:00:30Z"), minReadySeconds: 30, want: true },
  { name: "ready for a second less", options: ready("2024-01-01T00:00:31Z"), minReadySeconds: 30, want: false },
]) {
  test(`a pod ${name} is ${want ? "" : "not "}available`, () =>
    assert.equal(isAvailable(aPod(options), minReadySeconds, now), want));
}

test("a ready pod that does not say since when is available only where no time is required", () => {
  const pod = aPod();
  pod.status = {
    conditions: [
      { type: "Initialized", status: "False" },
      { type: "Ready", status: "True" },
    ],
  };
  assert.deepEqual([isAvailable(pod, 0, now), isAvailable(pod, 1, now)], [true, false]);
});

test("a pod is active until it has ended or is being deleted", () => {
  const active = (options: PodOptions): boolean => isActive(aPod(options));
  assert.deepEqual(
    ["Pending", "Running", "Unknown", "Succeeded", "Failed"].map((phase) => active({ phase })),
    [...[true, true, true], ...[false, false]],
  );
  assert.equal(active({ deletedAt: "2024-01-01T00:00:00Z" }), false);
});

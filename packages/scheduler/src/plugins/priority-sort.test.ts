import assert from "node:assert/strict";
import { test } from "node:test";
import { aTestPod } from "../testing/test-cluster.ts";
import { newPrioritySort } from "./priority-sort.ts";

test("pods are tried by priority, those of the same priority in the order of their enqueuing; a pod without one has 0", () => {
  const queued = (name: string, queuedAtMs: number, priority?: number) => ({
    pod: aTestPod(name, priority === undefined ? {} : { priority }),
    ...{ queuedAtMs, firstQueuedAtMs: 0, attempts: 1, unschedulablePlugins: new Set<string>() },
  });
  const pods = [queued("late", 2, 5), queued("none", 0), queued("low", 0, -1), queued("early", 1, 5), queued("zero", 1, 0)];
  const { compare } = newPrioritySort();
  assert.deepEqual(
    pods.toSorted((a, b) => compare?.(a, b) ?? 0).map(({ pod }) => pod.metadata.name),
    ["early", "late", "none", "zero", "low"],
  );
});

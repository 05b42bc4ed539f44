import assert from "node:assert/strict";
import { test } from "node:test";
import { aNodePod } from "../testing/builders.ts";
import { deadlineDueMs, deadlineVerdict } from "./deadline.ts";

const startTime = "2026-01-01T00:00:00Z";
const started = Date.parse(startTime);

for (const { name, seconds, start = startTime, afterMs, due, isOver } of [
  { name: "before its deadline", seconds: 60, afterMs: 59_999, due: 1, isOver: false },
  { name: "at its deadline", seconds: 60, afterMs: 60_000, due: 0, isOver: true },
  { name: "after its deadline", seconds: 60, afterMs: 60_001, due: -1, isOver: true },
  { name: "without a deadline", seconds: undefined, afterMs: 60_000, due: undefined, isOver: false },
  { name: "that has not started", seconds: 60, start: undefined, afterMs: 60_000, due: undefined, isOver: false },
] as {
  name: string;
  seconds?: number;
  start?: string | undefined;
  afterMs: number;
  due: number | undefined;
  isOver: boolean;
}[]) {
  test(`a pod ${name} ${isOver ? "ends" : "goes on"}`, () => {
    const pod = aNodePod(seconds === undefined ? {} : { activeDeadlineSeconds: seconds });
    const status = name === "that has not started" ? {} : { startTime: start };
    assert.equal(deadlineDueMs(pod, status, started + afterMs), due);
    const verdict = deadlineVerdict(pod, status, started + afterMs);
    assert.equal(verdict?.reason, isOver ? "DeadlineExceeded" : undefined);
  });
}

import assert from "node:assert/strict";
import { test } from "node:test";
import type { Pod } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { aJob } from "../../testing/jobs.ts";
import { remainingMs, tooManyRestarts } from "./conditions.ts";

const job = (backoffLimit: number, restartPolicy = "OnFailure") => {
  const { template } = aJob().spec;
  return aJob({ spec: { backoffLimit, template: { ...template, spec: { ...template.spec, containers: [], restartPolicy } } } });
};
const pod = (phase: string, containers: number[], init: number[] = []): Pod =>
  ({
    metadata: {},
    status: {
      phase,
      containerStatuses: containers.map((restartCount) => ({ restartCount })),
      initContainerStatuses: init.map((restartCount) => ({ restartCount })),
    },
  }) as unknown as Pod;

for (const { name, limit = 4, policy, pods, want } of [
  { name: "restarts of all containers and pods add up", pods: [pod("Running", [1, 1]), pod("Running", [2])], want: true },
  { name: "those of init containers too", pods: [pod("Running", [1], [1, 2])], want: true },
  { name: "those of pods that are pending too", pods: [pod("Pending", [], [4])], want: true },
  { name: "one fewer is not too many", pods: [pod("Running", [1, 2])], want: false },
  { name: "those of pods that ended do not count", pods: [pod("Failed", [9]), pod("Succeeded", [9])], want: false },
  { name: "with a limit of 0 the first is too many", limit: 0, pods: [pod("Running", [1])], want: true },
  { name: "with a limit of 0 none is none too many", limit: 0, pods: [pod("Running", [0])], want: false },
  { name: "pods that are never restarted are not counted", policy: "Never", pods: [pod("Running", [9])], want: false },
] as { name: string; limit?: number; policy?: string; pods: Pod[]; want: boolean }[]) {
  test(name, () => assert.equal(tooManyRestarts(job(limit, policy), pods), want));
}

test("a deadline counts from the start, not while it is suspended, and not without a start or a deadline", () => {
  const limited = aJob({ spec: { activeDeadlineSeconds: 60 } });
  const start = Date.parse("2022-01-01T00:00:00Z");
  assert.equal(remainingMs(limited, "2022-01-01T00:00:00Z", start + 45_000), 15_000);
  assert.equal(remainingMs(limited, "2022-01-01T00:00:00Z", start + 61_000), -1_000);
  assert.equal(remainingMs(limited, null, start), undefined);
  assert.equal(remainingMs(aJob(), "2022-01-01T00:00:00Z", start), undefined);
  assert.equal(
    remainingMs(aJob({ spec: { activeDeadlineSeconds: 60, suspend: true } }), "2022-01-01T00:00:00Z", start),
    undefined,
  );
  assert.equal(remainingMs(aJob({ spec: { activeDeadlineSeconds: 0 } }), "2022-01-01T00:00:00Z", start), 0);
});

test("without a limit six restarts are too many", () => {
  const { backoffLimit: _, ...spec } = job(9).spec;
  const unlimited = { ...job(9), spec };
  assert.deepEqual(
    [[5], [6]].map((counts) => tooManyRestarts(unlimited, [pod("Running", counts)])),
    [false, true],
  );
});

import assert from "node:assert/strict";
import { test } from "node:test";
import type { JobSpec } from "@coxswain/apimachinery/objects/schema/kinds/batch/v1";
import { isActive } from "../../pods/pod-state.ts";
import { aJob, aJobPod } from "../../testing/jobs.ts";
import { type JobState, planJob, planStatus } from "./plan.ts";

const now = Date.parse("2022-01-01T00:01:00Z");
const startTime = "2022-01-01T00:00:00Z";

/** A job with a pod for each phase. */
function state(spec: Partial<JobSpec>, phases: readonly string[], more: Partial<JobState> = {}): JobState {
  const job = aJob({ spec, status: { startTime } });
  const pods = phases.map((phase, i) => aJobPod(job, `p${i}`, { phase }));
  return { job, pods, active: pods.filter(isActive), expectedRemovals: new Set(), satisfied: true, now, ...more };
}

for (const { name, parallelism, backoffLimit, phases, want } of [
  { name: "more failures than its limit", parallelism: 1, backoffLimit: 1, phases: ["Failed", "Failed"], want: true },
  { name: "as many failures as its limit", parallelism: 1, backoffLimit: 2, phases: ["Failed", "Failed"], want: false },
  {
    name: "more failures than its limit, and all pods that may run running",
    parallelism: 1,
    backoffLimit: 0,
    phases: ["Failed", "Running"],
    want: false,
  },
  {
    name: "more failures than its limit, and fewer pods running than may",
    parallelism: 2,
    backoffLimit: 0,
    phases: ["Failed", "Running"],
    want: true,
  },
])
  test(`a job with ${name} has ${want ? "failed" : "not failed"}`, () => {
    const { failure } = planJob(state({ parallelism, completions: 3, backoffLimit }, phases));
    assert.equal(failure?.condition.reason, want ? "BackoffLimitExceeded" : undefined);
  });

for (const { name, running, more, want } of [
  { name: "whose pods have all ended", running: 0, more: {}, want: "DeadlineExceeded" },
  { name: "of which a pod still runs", running: 1, more: {}, want: undefined },
  { name: "whose pods may not all be in the cache yet", running: 0, more: { satisfied: false }, want: undefined },
  {
    name: "without tracking, of which a pod still runs",
    running: 1,
    more: { satisfied: false, expectedRemovals: undefined },
    want: "DeadlineExceeded",
  },
])
  test(`a failed job ${name} ${want === undefined ? "waits" : "ends"}`, () => {
    const failing = state({ activeDeadlineSeconds: 30 }, ["Running"], more);
    const { finalCondition } = planStatus(failing, planJob(failing), running);
    assert.equal(finalCondition?.condition.reason, want);
  });

for (const { name, completions, running, want } of [
  { name: "of one completion has too many active pods while another runs", completions: 1, running: 1, want: true },
  { name: "of two completions goes on", completions: 2, running: 1, want: false },
  { name: "without completions waits for the other pods", completions: undefined, running: 1, want: false },
  { name: "of one completion is complete when none runs", completions: 1, running: 0, want: "Complete" },
  { name: "without completions is complete when none runs", completions: undefined, running: 0, want: "Complete" },
])
  test(`a job with a success ${name}`, () => {
    const phases = ["Succeeded", ...Array.from({ length: running }, () => "Running")];
    const { completions: _, ...rest } = state({ parallelism: 2 }, phases).job.spec;
    const spec = completions === undefined ? rest : { ...rest, completions };
    const done = state({}, phases);
    const counted = { ...done, job: { ...done.job, spec } };
    const { finalCondition, tooManyActive = false } = planStatus(counted, planJob(counted), running);
    assert.equal(finalCondition?.condition.type ?? tooManyActive, want);
  });

for (const { completions, successes, want } of [
  { completions: undefined, successes: 0, want: false },
  { completions: undefined, successes: 1, want: true },
  { completions: 0, successes: 0, want: true },
  { completions: 1, successes: 0, want: false },
  { completions: 2, successes: 1, want: false },
  { completions: 2, successes: 2, want: true },
  { completions: 2, successes: 3, want: true },
])
  test(`a job of which no pod runs, with ${successes} successes of ${completions ?? "any number"}, is ${want ? "" : "not "}complete`, () => {
    const phases = Array.from({ length: successes }, () => "Succeeded");
    const { completions: _, ...rest } = aJob({ spec: { parallelism: 2 } }).spec;
    const over = state({}, phases);
    const spec = completions === undefined ? rest : { ...rest, completions };
    const counted = { ...over, job: { ...over.job, spec } };
    assert.equal(planStatus(counted, planJob(counted), 0).finalCondition?.condition.type, want ? "Complete" : undefined);
  });

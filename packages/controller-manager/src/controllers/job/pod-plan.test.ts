import assert from "node:assert/strict";
import { test } from "node:test";
import type { JobSpec } from "@coxswain/apimachinery/objects/schema/kinds/batch/v1";
import { aJob, aJobPod } from "../../testing/jobs.ts";
import { parseIndexes } from "./completion-indexes.ts";
import { planPods } from "./pod-plan.ts";

const indexed = { completionMode: "Indexed", completions: 5, parallelism: 3 };

for (const { name, spec, active = [], succeeded = 0, completed = "", deletes = [], creates = [] } of [
  { name: "creates as many as may run at once", spec: { parallelism: 3, completions: 5 }, creates: [-1, -1, -1] },
  { name: "creates no more than are missing", spec: { parallelism: 3, completions: 5 }, succeeded: 4, creates: [-1] },
  { name: "leaves alone what runs as wanted", spec: { parallelism: 2, completions: 5 }, active: ["a", "b"] },
  { name: "deletes what is too many", spec: { parallelism: 1, completions: 5 }, active: ["a", "b"], deletes: ["a"] },
  {
    name: "deletes those that are not needed for the rest",
    spec: { parallelism: 2, completions: 5 },
    active: ["a", "b"],
    succeeded: 5,
    deletes: ["a", "b"],
  },
  { name: "without completions fills up", spec: { parallelism: 2, completions: undefined }, active: ["a"], creates: [-1] },
  {
    name: "without completions begins nothing after the first success",
    spec: { parallelism: 2, completions: undefined },
    active: ["a"],
    succeeded: 1,
  },
  { name: "does nothing with a parallelism of 0", spec: { parallelism: 0, completions: 5 } },
  { name: "deletes all when suspended", spec: { parallelism: 2, suspend: true }, active: ["a", "b"], deletes: ["a", "b"] },
  { name: "creates the lowest indexes", spec: indexed, creates: [0, 1, 2] },
  { name: "skips indexes that ran or run", spec: indexed, active: ["a:1"], succeeded: 2, completed: "0,2", creates: [3, 4] },
  {
    name: "deletes one of two with the same index, and those with none or a wrong one",
    spec: indexed,
    active: ["a:0", "b:0", "c", "d:5", "e:x", "f:1"],
    deletes: ["a", "c", "d", "e"],
  },
] as {
  name: string;
  spec: Partial<JobSpec>;
  active?: string[];
  succeeded?: number;
  completed?: string;
  deletes?: string[];
  creates?: number[];
}[]) {
  test(name, () => {
    const job = aJob({ spec });
    const pods = active.map((text) => {
      const [pod = "", index] = text.split(":");
      return aJobPod(job, pod, index === undefined ? {} : { index });
    });
    const plan = planPods(job, pods, { succeeded, completed: parseIndexes(completed, 5) });
    assert.deepEqual(plan.delete.map(({ metadata }) => metadata.name).toSorted(), deletes);
    assert.deepEqual(
      plan.create.map((index) => index ?? -1),
      creates,
    );
  });
}

test("creates and deletes 500 at once at most", () => {
  const job = aJob({ spec: { parallelism: 2000, completions: 2000 } });
  assert.equal(planPods(job, [], { succeeded: 0, completed: [] }).create.length, 500);
  const pods = Array.from({ length: 600 }, (_, i) => aJobPod(job, `p${i}`));
  const none = aJob({ spec: { parallelism: 0, completions: 2000 } });
  assert.equal(planPods(none, pods, { succeeded: 0, completed: [] }).delete.length, 500);
});

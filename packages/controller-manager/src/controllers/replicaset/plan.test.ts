import assert from "node:assert/strict";
import { test } from "node:test";
import { aPod } from "@coxswain/apimachinery/testing/builders";
import { planReplicas } from "./plan.ts";

const rules = { now: Date.parse("2024-01-02T00:00:00Z"), byCost: true, byMagnitude: true };
const podsNamed = (...names: string[]) => names.map((name) => aPod({ name, nodeName: "n1" }));

for (const { name, wanted, existing, want } of [
  { name: "creates what is missing", wanted: 3, existing: ["a"], want: { create: 2, delete: 0 } },
  { name: "does nothing when all are there", wanted: 2, existing: ["a", "b"], want: { create: 0, delete: 0 } },
  { name: "deletes the surplus", wanted: 1, existing: ["a", "b", "c"], want: { create: 0, delete: 2 } },
  { name: "deletes all for none", wanted: 0, existing: ["a", "b"], want: { create: 0, delete: 2 } },
  { name: "creates no more than 500 at once", wanted: 2000, existing: [], want: { create: 500, delete: 0 } },
  {
    name: "deletes no more than 500 at once",
    wanted: 1,
    existing: Array.from({ length: 510 }, (_, i) => `p${i}`),
    want: { create: 0, delete: 500 },
  },
]) {
  test(name, () => {
    const active = podsNamed(...existing);
    const plan = planReplicas({ wanted, active, related: () => active, rules });
    assert.deepEqual({ create: plan.create, delete: plan.delete.length }, want);
  });
}

test("deletes where most pods of the same deployment run, finished ones not counted", () => {
  const own = [aPod({ name: "a", nodeName: "n1" }), aPod({ name: "b", nodeName: "n2" })];
  const related = [...own, aPod({ name: "c", nodeName: "n2" }), aPod({ name: "d", nodeName: "n1", phase: "Failed" })];
  const plan = planReplicas({ wanted: 1, active: own, related: () => related, rules });
  assert.deepEqual(
    plan.delete.map(({ metadata }) => metadata.name),
    ["b"],
  );
});

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { test } from "node:test";
import { catalogue } from "@coxswain/controller-manager/catalogue";
import { cloudControllers } from "@coxswain/controller-manager/cloud/without-cloud";
import type { View } from "./invariants/view.ts";
import { plans } from "./plans/catalogue.ts";
import { parts, seedsOf } from "./seeds/parts.ts";
import { simulate } from "./simulation.ts";

const [plan] = plans as [(typeof plans)[number], ...typeof plans];

test("1,000 different seeds are simulated, each plan among them, restores only in the long form", () => {
  const seeds: number[] = [];
  const names = new Set<string>();
  for (let part = 0; part < parts; part++) {
    const { first, count, planOf } = seedsOf(part);
    for (let seed = first; seed < first + count; seed++) {
      seeds.push(seed);
      names.add(planOf(seed).name);
    }
  }
  assert.ok(new Set(seeds).size >= 1_000);
  const missing = plans.filter(({ name }) => !names.has(name)).map(({ name }) => name);
  assert.deepEqual(missing, ["restore"]);
  const long = seedsOf(0, 20_000);
  const inLong = new Set(Array.from({ length: 1_000 }, (_, at) => long.planOf(long.first + at).name));
  assert.equal(inLong.size, plans.length);
});

test("the seeds of a long form differ between days and parts", () => {
  const begins = [
    [0, 20_000],
    [1, 20_000],
    [0, 20_001],
  ].map(([part = 0, day]) => seedsOf(part, day));
  for (const [at, { first }] of begins.entries()) {
    const before = begins[at - 1];
    if (before !== undefined) assert.equal(first, before.first + before.count);
  }
});

test("each controller that runs by default has a plan", () => {
  const planned = new Set(plans.flatMap(({ controllers }) => controllers));
  // Without a cloud provider those of clouds do not run; others need a feature gate that is off by default.
  const byDefault = catalogue.filter(
    ({ name, onByDefault, onlyWith = [] }) => onByDefault && onlyWith.length === 0 && !cloudControllers.includes(name),
  );
  assert.deepEqual(
    byDefault.map(({ name }) => name).filter((name) => !planned.has(name)),
    [],
  );
});

test("a failing seed fails again at the same step with the same history, from its first event to the failure", async () => {
  const failing = { ...plan, always: (view: View) => (view.all("pods").length > 0 ? "there is a pod" : undefined) };
  const history: string[] = [];
  const failed = await simulate({ seed: 1, plan: failing, onTrace: (line) => void history.push(line) });
  assert.equal(failed.failure, "there is a pod");
  assert.match(history[0] ?? "", new RegExp(`^0\\.000 ${plan.name}: \\d API servers?, `));
  assert.match(history.at(-1) ?? "", / failed: there is a pod$/);
  assert.match(history.at(-2) ?? "", / apiserver-\d: etcd txn \/registry\/pods\//);
  assert.deepEqual(await simulate({ seed: 1, plan: failing }), failed);
});

test("another process takes the same steps with the same seed", async () => {
  const { hash, steps } = await simulate({ seed: 3, plan });
  const program = join(import.meta.dirname, "main.ts");
  const args = ["-C", "cox-source", program, "--seeds", "3", "--plan", plan.name, "--hashes"];
  const printed = execFileSync(process.execPath, args, { encoding: "utf8" });
  assert.ok(printed.startsWith(`3 ${plan.name} ${hash} ${steps} steps,`), printed);
});

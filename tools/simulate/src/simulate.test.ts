import assert from "node:assert/strict";
import { test } from "node:test";
import type { View } from "./invariants/view.ts";
import { plans as all, planOf } from "./plans/catalogue.ts";
import { type Outcome, simulate } from "./simulation.ts";

const isLong = process.env["COX_TEST_LONG"] !== undefined;
/** The long form stops after the seed during which its time ends (a tenth of it is for repetitions); the first seed depends on the date. */
const durationMs = isLong ? Number(process.env["COX_TEST_MINUTES"] ?? 90) * 60_000 : Number.POSITIVE_INFINITY;
const beginMs = performance.now();
const before = isLong ? (Math.floor(Date.now() / 86_400_000) % 10_000) * 100_000 : 0;
/** Number of seeds that take about 20 s of CPU time, including the repeated ones. */
const seeds = isLong ? 100_000 : 75;
/** Plans with restores run in the long form only, because a change of the product may uncover a case that is not understood yet. */
const plans = all.filter(({ losesHistory }) => isLong || losesHistory !== true);
const run = (seed: number): Promise<Outcome> => simulate({ seed, plan: planOf(seed, plans) });
const first: Outcome[] = [];

test("the cluster converges after injected faults", async (t) => {
  let steps = 0;
  let count = 0;
  while (count < seeds && performance.now() - beginMs < 0.9 * durationMs) {
    const seed = before + ++count;
    const outcome = await run(seed);
    steps += outcome.steps;
    const repeat = `node -C cox-source tools/simulate/src/main.ts --seeds ${seed} --plan ${outcome.plan} --trace`;
    assert.equal(outcome.failure, undefined, `repeat it with: ${repeat}`);
    if (first.length < plans.length) first.push(outcome);
  }
  t.diagnostic(`seeds ${before + 1} to ${before + count}, ${steps} steps`);
});

test("the same seed gives the same steps, whatever ran before", async () => {
  assert.ok(first.length > 0);
  for (const { seed, plan, hash, steps } of first) {
    if (seed !== first[0]?.seed && performance.now() - beginMs > durationMs) return;
    const again = await run(seed);
    assert.deepEqual([again.plan, again.hash, again.steps], [plan, hash, steps]);
  }
});

test("a seed that fails does so again at the same step, with the same history, which says how it began and ends with why", async () => {
  const [plan] = plans as [(typeof plans)[number], ...typeof plans];
  const failing = { ...plan, always: (view: View) => (view.all("pods").length > 0 ? "there is a pod" : undefined) };
  const history: string[] = [];
  const failed = await simulate({ seed: 1, plan: failing, onTrace: (line) => void history.push(line) });
  assert.equal(failed.failure, "there is a pod");
  assert.match(history[0] ?? "", new RegExp(`^0\\.000 ${plan.name}: \\d API servers?, `));
  assert.match(history.at(-1) ?? "", / failed: there is a pod$/);
  assert.match(history.at(-2) ?? "", / apiserver-\d: etcd txn \/registry\/pods\//);
  assert.deepEqual(await simulate({ seed: 1, plan: failing }), failed);
});

import assert from "node:assert/strict";
import { test } from "node:test";
import { plans as all } from "./plans/catalogue.ts";
import { type Outcome, simulate } from "./simulation.ts";

const isLong = process.env["COX_TEST_LONG"] === "1";
/** As many as take about 40 s of CPU time, with those that are repeated. */
const seeds = isLong ? 100_000 : 60;
/** Of restores only the long form knows: a change of the product may bring up a case that is not understood yet. */
const plans = all.filter(({ losesHistory }) => isLong || losesHistory !== true);
const run = (seed: number): Promise<Outcome> => simulate({ seed, plan: plans[seed % plans.length] as (typeof plans)[number] });
const first: Outcome[] = [];

test("whatever goes wrong, the cluster comes right in the end", async () => {
  for (let seed = 1; seed <= seeds; seed++) {
    const outcome = await run(seed);
    const repeat = `node -C cox-source tools/simulate/src/main.ts --seeds ${seed} --plan ${outcome.plan} --trace`;
    assert.equal(outcome.failure, undefined, `repeat it with: ${repeat}`);
    if (seed <= plans.length) first.push(outcome);
  }
});

test("the same seed gives the same steps, whatever ran before", async () => {
  for (const { seed, plan, hash, steps } of first) {
    const again = await run(seed);
    assert.deepEqual([again.plan, again.hash, again.steps], [plan, hash, steps]);
  }
});

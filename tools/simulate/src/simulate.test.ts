import assert from "node:assert/strict";
import { test } from "node:test";
import { plans as all } from "./plans/catalogue.ts";
import { simulate } from "./simulation.ts";

const seeds = process.env["COX_TEST_LONG"] === "1" ? 100_000 : 40;
/** Restores are looked for by hand: what comes of each is not known yet. */
const plans = all.filter(({ losesHistory }) => losesHistory !== true);

for (const plan of plans) {
  test(`the same seed gives the same steps: ${plan.name}`, async () => {
    const first = await simulate({ seed: 7, plan });
    await simulate({ seed: 8, plan });
    const again = await simulate({ seed: 7, plan });
    assert.deepEqual([again.hash, again.steps], [first.hash, first.steps]);
  });
}

test("whatever goes wrong, the cluster comes right in the end", async () => {
  for (let seed = 1; seed <= seeds; seed++) {
    const plan = plans[seed % plans.length] as (typeof plans)[number];
    const { failure } = await simulate({ seed, plan });
    assert.equal(
      failure,
      undefined,
      `repeat it with: node -C cox-source tools/simulate/src/main.ts --seeds ${seed} --plan ${plan.name} --trace`,
    );
  }
});

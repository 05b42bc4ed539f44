import assert from "node:assert/strict";
import { test } from "node:test";
import { type Outcome, simulate } from "../simulation.ts";
import { seedsOf } from "./parts.ts";

/** Share of a long form's time for new seeds; the rest is for the repetitions. */
const shareOfNew = 0.97;

/** Defines the tests of one part of the seeds. With `--long` they stop after the seed during which the time ends. */
export function testSeeds(part: number): void {
  const isLong = process.env["COX_TEST_LONG"] !== undefined;
  const durationMs = isLong ? Number(process.env["COX_TEST_MINUTES"] ?? 90) * 60_000 : Number.POSITIVE_INFINITY;
  const beginMs = performance.now();
  const { first, count, planOf } = seedsOf(part, isLong ? Math.floor(Date.now() / 86_400_000) : undefined);
  const run = (seed: number): Promise<Outcome> => simulate({ seed, plan: planOf(seed) });
  const firstOf = new Map<string, Outcome>();

  test("the cluster converges after injected faults", async (t) => {
    let steps = 0;
    let seed = first;
    for (; seed < first + count && performance.now() - beginMs < shareOfNew * durationMs; seed++) {
      const outcome = await run(seed);
      steps += outcome.steps;
      const repeat = `node -C cox-source tools/simulate/src/main.ts --seeds ${seed} --plan ${outcome.plan} --trace`;
      assert.equal(outcome.failure, undefined, `repeat it with: ${repeat}`);
      firstOf.getOrInsert(outcome.plan, outcome);
    }
    const { user, system } = process.cpuUsage();
    t.diagnostic(`seeds ${first} to ${seed - 1}, ${steps} steps, ${((user + system) / 1e6).toFixed(0)} s of CPU time`);
  });

  // The other parts run the same code.
  if (part > 0) return;
  test("the first seed of each plan takes the same steps when it is repeated in the same process", async () => {
    assert.ok(firstOf.size > 0);
    for (const { seed, plan, hash, steps } of firstOf.values()) {
      if (seed !== first && performance.now() - beginMs > durationMs) return;
      const again = await run(seed);
      assert.deepEqual([again.plan, again.hash, again.steps], [plan, hash, steps]);
    }
  });
}

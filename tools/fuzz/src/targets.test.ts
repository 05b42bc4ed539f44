/** Runs every target with its corpus and some new inputs; with COX_TEST_LONG for up to a minute each, guided by coverage. */
import assert from "node:assert/strict";
import { after, test } from "node:test";
import { nameOf } from "./corpus.ts";
import { targetNames } from "./targets.ts";
import { WatchedThread } from "./watched.ts";

const isLong = process.env["COX_TEST_LONG"] !== undefined;
const seed = isLong ? Math.floor(Math.random() * 2 ** 31) : 20211207;
const names = await targetNames();
/** The budget of the run in minutes. */
const minutes = Number(process.env["COX_TEST_MINUTES"] ?? names.length);
const shortest = { seed, most: 300, cpuSeconds: 0.3 };
const begun = performance.now();

/** What is left of the budget, divided equally among the targets that are left: their starts, and waits for a processor, take a part of it. */
function limitsOf(index: number): typeof shortest {
  if (!isLong) return shortest;
  const seconds = (60 * minutes - (performance.now() - begun) / 1000) / (names.length - index);
  return { seed, most: Number.POSITIVE_INFINITY, cpuSeconds: Math.max(shortest.cpuSeconds, Math.min(60, seconds)) };
}
let thread = new WatchedThread({ withCoverage: isLong });
after(() => thread.close());

for (const [index, name] of names.entries()) {
  test(`${name}: refuses input only with its own errors, in time, and keeps its invariants`, async () => {
    if (isLong) {
      await thread.close();
      thread = new WatchedThread({ withCoverage: true });
    }
    const { inputs, finds } = await thread.run({ name, limits: limitsOf(index) });
    const shown = finds.map(
      ({ input, fault }) => `${fault.signature}: ${fault.text}\n${nameOf(input)} in base64: ${input.toString("base64")}`,
    );
    assert.deepEqual(shown, [], `seed ${seed}`);
    assert.ok(inputs > 0);
  });
}

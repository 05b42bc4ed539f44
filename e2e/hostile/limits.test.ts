import assert from "node:assert/strict";
import { test } from "node:test";
import { breaches, type Figures, quantile, trend } from "./limits.ts";

const MB = 2 ** 20;
const held = { heldBytes: 100 * MB, cachedBytes: 20 * MB, residentBytes: 200 * MB, descriptors: 30 };
const good: Figures = {
  latenciesMs: [1, 2, 3],
  longestTurnMs: 20,
  failures: [],
  longestRenewalMs: 2000,
  watched: [1, 2],
  written: [1, 2],
  before: held,
  after: held,
};

const rows: readonly { name: string; change: Partial<Figures>; want: RegExp | undefined }[] = [
  { name: "nothing is beyond a limit", change: {}, want: undefined },
  { name: "no answer", change: { latenciesMs: [] }, want: /no answer/ },
  { name: "one slow answer of many", change: { latenciesMs: [...Array(199).fill(1), 900] }, want: undefined },
  { name: "many slow answers", change: { latenciesMs: Array(10).fill(300) }, want: /^p99 300 ms/ },
  { name: "one that takes too long", change: { latenciesMs: [...Array(199).fill(1), 1200] }, want: /^longest 1200 ms/ },
  { name: "an event loop that was blocked", change: { longestTurnMs: 350 }, want: /^turn 350 ms/ },
  { name: "a failure", change: { failures: ["503"] }, want: /1 failures: 503/ },
  { name: "a late lease", change: { longestRenewalMs: 12_000 }, want: /lease 12000 ms/ },
  { name: "an event that did not come", change: { watched: [1] }, want: /showed nothing where 2/ },
  { name: "events out of order", change: { watched: [2, 1] }, want: /showed 2 where 1/ },
  { name: "an event twice", change: { watched: [1, 2, 2] }, want: /showed 2 where nothing/ },
  { name: "memory that stays", change: { after: { ...held, heldBytes: 160 * MB } }, want: /held more 60 MB/ },
  { name: "descriptors that stay", change: { after: { ...held, descriptors: 50 } }, want: /descriptors more 20/ },
];
for (const { name, change, want } of rows) {
  test(name, () => {
    const found = breaches({ ...good, ...change });
    assert.equal(found.length, want === undefined ? 0 : 1, found.join("; "));
    if (want) assert.match(found[0] as string, want);
  });
}

test("a quantile is a value of the series; of none it is 0", () => {
  assert.equal(quantile([3, 1, 2], 0.5), 2);
  assert.equal(quantile([], 0.99), 0);
});

test("a trend is computed over the entire series, not from a single reversed step", () => {
  assert.equal(trend([1, 1, 1, 9, 1, 1, 1, 1, 1]), 0);
  assert.equal(trend([1, 1, 1, 2, 2, 2, 3, 3, 3]), 2);
});

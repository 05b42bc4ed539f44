import assert from "node:assert/strict";
import { test } from "node:test";
import { draw } from "./draw.ts";
import type { Mutant } from "./mutants.ts";

const mutants = (kind: string, count: number): Mutant[] =>
  Array.from({ length: count }, (_, i) => ({
    id: `${kind}${i}`,
    kind,
    file: "a.ts",
    line: i,
    edit: { start: 0, end: 0, text: "" },
  }));
const all = [...mutants("frequent", 50), ...mutants("rare", 2)];
const drawn = (seed: number): string[] => [...draw(all, seed)].map(({ id }) => id);

test("each fault is drawn once, in an order determined by the seed", () => {
  assert.deepEqual(drawn(7).toSorted(), all.map(({ id }) => id).toSorted());
  assert.deepEqual(drawn(7), drawn(7));
  assert.notDeepEqual(drawn(7), drawn(8));
});

test("rare kinds are drawn as early as frequent ones", () => {
  for (const seed of [1, 2, 3])
    assert.equal(
      drawn(seed)
        .slice(0, 4)
        .filter((id) => id.startsWith("rare")).length,
      2,
    );
});

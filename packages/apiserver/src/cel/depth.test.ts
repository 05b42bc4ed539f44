import assert from "node:assert/strict";
import { test } from "node:test";
import type { Expression } from "./ast.ts";
import { isDeeperThan } from "./depth.ts";

const constant: Expression = { kind: "constant", at: 0, value: true };
const nested = (levels: number, beside: readonly Expression[] = []): Expression =>
  levels === 0 ? constant : { kind: "list", at: 0, items: [...beside, nested(levels - 1, beside)] };

test("an expression is as deep as its deepest part", () => {
  assert.deepEqual(
    [0, 1, 2, 3].map((levels) => isDeeperThan(2, nested(levels))),
    [false, false, false, true],
  );
  assert.deepEqual([isDeeperThan(3, nested(3, [constant, constant])), isDeeperThan(2, nested(3, [constant]))], [false, true]);
  assert.equal(isDeeperThan(0, constant), false);
});

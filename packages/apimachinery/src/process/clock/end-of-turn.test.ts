import assert from "node:assert/strict";
import { test } from "node:test";
import { atEndOfTurn } from "./end-of-turn.ts";

test("tasks run in order after the code that added them, including those added meanwhile", async () => {
  const order: string[] = [];
  atEndOfTurn(() => {
    order.push("first");
    atEndOfTurn(() => order.push("given by the first"));
  });
  atEndOfTurn(() => order.push("second"));
  order.push("code");
  await Promise.resolve();
  assert.deepEqual(order, ["code", "first", "second", "given by the first"]);
  atEndOfTurn(() => order.push("another turn"));
  await Promise.resolve();
  assert.equal(order.at(-1), "another turn");
});

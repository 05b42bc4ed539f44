import assert from "node:assert/strict";
import { test } from "node:test";
import { newTurns } from "./turns.ts";

test("work begins at once while the turn is young, then waits for the next one, first come first served", async () => {
  let ms = 0;
  const coming: (() => void)[] = [];
  const turns = newTurns(
    () => ms,
    (turn) => coming.push(turn),
  );
  const nextTurn = async (): Promise<void> => {
    coming.shift()?.();
    await Promise.resolve();
  };
  assert.equal(turns.take(), undefined);
  ms = 4;
  assert.equal(turns.take(), undefined);
  ms = 6;
  const order: string[] = [];
  for (const name of ["a", "b"]) void turns.take()?.then(() => order.push(name));
  assert.deepEqual(order, []);
  await nextTurn();
  assert.deepEqual(order, ["a"]);
  await nextTurn();
  assert.deepEqual(order, ["a", "b"]);
  await nextTurn();
  assert.equal(coming.length, 0, "nobody waits, nothing is scheduled");
  assert.equal(turns.take(), undefined);
});

import assert from "node:assert/strict";
import { test } from "node:test";
import { type LoopSlice, newLoopSlice, pauseAfter, sliceMs } from "./loop-slice.ts";

function setUp() {
  const coming: (() => void)[] = [];
  const clock = { ms: 0 };
  const slice = newLoopSlice(
    () => clock.ms,
    (turn) => coming.push(turn),
  );
  const order: string[] = [];
  return {
    slice,
    clock,
    order,
    coming,
    /** Waits for the slice, then simulates work of this duration and output. */
    async work(name: string, { ms = 0, bytes = 0 }: { ms?: number; bytes?: number }): Promise<void> {
      const turn = slice.next();
      if (turn !== undefined) await turn;
      order.push(name);
      clock.ms += ms;
      slice.wrote(bytes);
    },
    async nextTurn(): Promise<void> {
      coming.shift()?.();
      for (let settled = 0; settled < 10; settled++) await Promise.resolve();
    },
  };
}

test("work begins at once while the turn is young, then waits for the next one, first come first served", async () => {
  const { slice, clock, order, coming, work, nextTurn } = setUp();
  assert.equal(slice.next(), undefined);
  clock.ms = 4;
  assert.equal(slice.next(), undefined);
  clock.ms = 6;
  for (const name of ["a", "b", "c"]) void work(name, { ms: 3 });
  assert.deepEqual(order, []);
  await nextTurn();
  assert.deepEqual(order, ["a", "b"], "as many as fit into the slice");
  await nextTurn();
  assert.deepEqual(order, ["a", "b", "c"]);
  await nextTurn();
  assert.equal(coming.length, 0, "nobody waits, nothing is scheduled");
  assert.equal(slice.next(), undefined);
});

test("bytes for sockets are bounded like time, over all who write", async () => {
  const { order, work, nextTurn } = setUp();
  for (const name of ["a", "b", "c", "d"]) void work(name, { bytes: 512 * 1024 });
  assert.deepEqual(order, ["a", "b"]);
  await nextTurn();
  assert.deepEqual(order, ["a", "b", "c", "d"]);
});

test("who comes while others wait does not overtake them", async () => {
  const { slice, order, clock, work, nextTurn } = setUp();
  const first: ReturnType<LoopSlice["next"]> = slice.next();
  assert.equal(first, undefined);
  clock.ms = 6;
  for (const name of ["a", "b", "c"]) void work(name, { ms: 6 });
  await nextTurn();
  void work("late", {});
  for (let turn = 0; turn < 3; turn++) await nextTurn();
  assert.deepEqual(order, ["a", "b", "c", "late"]);
});

for (const { name, bytes, others } of [
  { name: "a large body lets others have their turn", bytes: 300_000, others: true },
  { name: "a small one goes on at once", bytes: 3_000, others: false },
]) {
  test(name, async () => {
    let turned = false;
    setImmediate(() => {
      turned = true;
    });
    await pauseAfter(Buffer.alloc(bytes));
    assert.equal(turned, others);
  });
}

test("long stages of requests that end together are not added up in one turn", async () => {
  const body = Buffer.alloc(300_000);
  const turns: number[] = [];
  let turn = 0;
  let isOver = false;
  const count = (): void => {
    turn++;
    if (!isOver) setImmediate(count);
  };
  setImmediate(count);
  await Promise.all(
    Array.from({ length: 5 }, async () => {
      await pauseAfter(body);
      turns.push(turn);
      for (const end = performance.now() + 2 * sliceMs; performance.now() < end; ); // a stage, longer than a slice
    }),
  );
  isOver = true;
  assert.equal(new Set(turns).size, 5, turns.join());
});

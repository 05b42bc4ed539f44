import assert from "node:assert/strict";
import { test } from "node:test";
import { atOnce, type Steps } from "./steps.ts";
import { sliceMs, Turns } from "./turns.ts";

function setUp() {
  const coming: (() => void)[] = [];
  const clock = { ms: 0 };
  const turns = new Turns(
    () => clock.ms,
    (turn) => coming.push(turn),
  );
  const order: string[] = [];
  return {
    turns,
    clock,
    order,
    coming,
    /** Waits for a turn, then simulates work of this duration and output. */
    async work(name: string, { ms = 0, bytes = 0 }: { ms?: number; bytes?: number }): Promise<void> {
      const turn = turns.next();
      if (turn !== undefined) await turn;
      order.push(name);
      clock.ms += ms;
      turns.wrote(bytes);
    },
    async nextTurn(): Promise<void> {
      coming.shift()?.();
      await new Promise((resolve) => setImmediate(resolve));
    },
  };
}

test("work begins at once while the turn is young, then waits for the next one, first come first served", async () => {
  const { turns, clock, order, coming, work, nextTurn } = setUp();
  assert.equal(turns.next(), undefined);
  clock.ms = 4;
  assert.equal(turns.next(), undefined);
  clock.ms = 6;
  for (const name of ["a", "b", "c"]) void work(name, { ms: 3 });
  assert.deepEqual(order, []);
  await nextTurn();
  assert.deepEqual(order, ["a", "b"], "as many as fit into the slice");
  await nextTurn();
  assert.deepEqual(order, ["a", "b", "c"]);
  await nextTurn();
  assert.equal(coming.length, 0, "without a waiting task nothing is scheduled");
  assert.equal(turns.next(), undefined);
});

test("bytes for sockets are bounded like time, over all who write", async () => {
  const { order, work, nextTurn } = setUp();
  for (const name of ["a", "b", "c", "d"]) void work(name, { bytes: 512 * 1024 });
  assert.deepEqual(order, ["a", "b"]);
  await nextTurn();
  assert.deepEqual(order, ["a", "b", "c", "d"]);
});

test("who comes while others wait does not overtake them", async () => {
  const { turns, order, clock, work, nextTurn } = setUp();
  assert.equal(turns.next(), undefined);
  clock.ms = 6;
  for (const name of ["a", "b", "c"]) void work(name, { ms: 6 });
  await nextTurn();
  void work("late", {});
  for (let turn = 0; turn < 3; turn++) await nextTurn();
  assert.deepEqual(order, ["a", "b", "c", "late"]);
});

test("long stages of requests that end together are not added up in one turn", async () => {
  const turns = new Turns();
  const began: number[] = [];
  let turn = 0;
  let isOver = false;
  const count = (): void => {
    turn++;
    if (!isOver) setImmediate(count);
  };
  setImmediate(count);
  await Promise.all(
    Array.from({ length: 5 }, async () => {
      await turns.next(300_000);
      began.push(turn);
      for (const end = performance.now() + 2 * sliceMs; performance.now() < end; ); // a stage, longer than a slice
    }),
  );
  isOver = true;
  assert.equal(new Set(began).size, 5, began.join());
});

/** @param took simulated duration of each step */
function work(took: readonly number[]): { steps: Steps<string>; now: () => number; done: string[] } {
  let time = 0;
  const done: string[] = [];
  function* steps(): Steps<string> {
    for (const ms of took) {
      time += ms;
      done.push(`${ms}`);
      yield;
    }
    return "result";
  }
  return { steps: steps(), now: () => time, done };
}

test("short work is done at once", () => {
  const { steps, now } = work([2, 2]);
  assert.equal(new Turns(now).run(steps), "result");
  assert.equal(atOnce(work([100, 100]).steps), "result");
});

test("other work runs whenever the slice of a piece is used up, and for a full iteration after a long piece", async () => {
  const { steps, now, done } = work([30, 1, 1, 4, 30]);
  const result = new Turns(now).run(steps);
  const turn = (): void => {
    done.push("turn");
    if (done.length < 8) setImmediate(turn);
  };
  setImmediate(turn);
  assert.equal(await result, "result");
  assert.deepEqual(done.slice(0, 6), ["30", "turn", "1", "1", "4", "turn"]);
});

test("what a step throws arrives, whenever it is thrown", async () => {
  function* failing(steps: number): Steps<never> {
    for (let i = 0; i < steps; i++) yield;
    throw new Error("no");
  }
  let time = 0;
  const now = (): number => (time += 6);
  assert.throws(() => new Turns(now).run(failing(0)), /no/);
  await assert.rejects(async () => new Turns(now).run(failing(5)), /no/);
});

test("what is charged to an iteration does not outlive it", async () => {
  const { turns, coming, nextTurn } = setUp();
  turns.charge(1);
  assert.ok(turns.isCharged);
  assert.notEqual(turns.next(), undefined);
  while (coming.length > 0) await nextTurn();
  assert.equal(turns.isCharged, false);
  assert.equal(turns.next(), undefined);
});

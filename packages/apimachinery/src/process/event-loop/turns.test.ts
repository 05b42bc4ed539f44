import assert from "node:assert/strict";
import { test } from "node:test";
import { atOnce, type Steps } from "./steps.ts";
import { runSteps, sliceMs, Turns } from "./turns.ts";

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
    async work(name: string, { ms = 0, bytes = 0, size }: { ms?: number; bytes?: number; size?: number }): Promise<void> {
      const turn = turns.next(size);
      if (turn !== undefined) await turn;
      order.push(name);
      clock.ms += ms;
      turns.transferred(bytes);
    },
    async nextTurn(): Promise<void> {
      coming.shift()?.();
      await new Promise((resolve) => setImmediate(resolve));
    },
  };
}

test("work starts at once while the turn's slice lasts, then waits for the next turn in FIFO order", async () => {
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

test("bytes written to sockets are limited per turn, over all writers", async () => {
  const { order, work, nextTurn } = setUp();
  for (const name of ["a", "b", "c", "d"]) void work(name, { bytes: 512 * 1024 });
  assert.deepEqual(order, ["a", "b"]);
  await nextTurn();
  assert.deepEqual(order, ["a", "b", "c", "d"]);
});

test("a new turn does not overtake waiting ones", async () => {
  const { turns, order, clock, work, nextTurn } = setUp();
  assert.equal(turns.next(), undefined);
  clock.ms = 6;
  for (const name of ["a", "b", "c"]) void work(name, { ms: 6 });
  await nextTurn();
  void work("late", {});
  for (let turn = 0; turn < 3; turn++) await nextTurn();
  assert.deepEqual(order, ["a", "b", "c", "late"]);
});

test("short work precedes other work, except after every eighth piece", async () => {
  const { order, work, nextTurn } = setUp();
  void work("first", { ms: 6 });
  for (const name of ["A", "B", "C"]) void work(name, { ms: 2 });
  for (let i = 1; i <= 10; i++) void work(`s${i}`, { size: 4096 });
  void work("D", { size: 4097 });
  await nextTurn();
  assert.deepEqual(order.splice(0), ["first", "s1", "s2", "s3", "s4", "s5", "s6", "s7", "s8", "A", "s9", "s10", "B", "C"]);
  await nextTurn();
  assert.deepEqual(order.splice(0), ["D"]);
});

test("when each short piece uses up a slice, every ninth slice is for other work", async () => {
  const { order, work, nextTurn } = setUp();
  void work("first", { ms: 6 });
  for (const name of ["A", "B"]) void work(name, { ms: 6 });
  for (let i = 1; i <= 20; i++) void work("s", { size: 1, ms: 6 });
  for (let turn = 0; turn < 23; turn++) await nextTurn();
  assert.equal(order.join(""), `first${"s".repeat(8)}A${"s".repeat(8)}B${"s".repeat(4)}`);
});

for (const { name, run, expected } of [
  {
    name: "at most eight steps of short work precede other work",
    run: (turns: Turns, steps: Steps<void>) => turns.run(steps, 1),
    expected: "first 1 2 3 4 5 6 7 8 A B 9 10",
  },
  {
    name: "steps ahead of other work precede it, except after every eighth piece",
    run: ({ ahead }: Turns, steps: Steps<void>) => ahead.run(steps),
    expected: "first 1 2 3 4 5 6 7 8 A 9 10 B",
  },
])
  test(name, async () => {
    const { turns, order, clock, work, nextTurn } = setUp();
    function* steps(): Steps<void> {
      for (let step = 1; step <= 10; step++) {
        order.push(`${step}`);
        clock.ms += 6;
        yield;
      }
    }
    void work("first", { ms: 6 });
    for (const name of ["A", "B"]) void work(name, { ms: 6 });
    void run(turns, steps());
    for (let turn = 0; turn < 13; turn++) await nextTurn();
    assert.equal(order.join(" "), expected);
  });

test("long stages of requests that become ready together run in separate turns", async () => {
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

test("other work runs when a slice is used up, and for a full iteration after a long step", async () => {
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

test("an error in any step is thrown or rejects", async () => {
  function* failing(steps: number): Steps<never> {
    for (let i = 0; i < steps; i++) yield;
    throw new Error("no");
  }
  let time = 0;
  const now = (): number => (time += 6);
  assert.throws(() => new Turns(now).run(failing(0)), /no/);
  await assert.rejects(async () => new Turns(now).run(failing(5)), /no/);
});

test("a charge to an iteration ends with the iteration", async () => {
  const { turns, coming, nextTurn } = setUp();
  turns.charge(1);
  assert.ok(turns.isCharged);
  assert.notEqual(turns.next(), undefined);
  while (coming.length > 0) await nextTurn();
  assert.equal(turns.isCharged, false);
  assert.equal(turns.next(), undefined);
});

test("steps that wait end with the reason of their request, and what comes behind them does not wait for the rest", async () => {
  const { turns, clock, order, nextTurn } = setUp();
  function* long(name: string): Steps<string> {
    for (let i = 1; ; i++) {
      order.push(`${name} ${i}`);
      clock.ms += 2 * sliceMs;
      if (i === 3) return name;
      yield;
    }
  }
  const gone = new AbortController();
  const given = turns.run(long("gone"), 0, gone.signal);
  const other = turns.run(long("other"), 0, new AbortController().signal);
  gone.abort(new Error("the client has gone"));
  const refused = assert.rejects(async () => given, /the client has gone/);
  for (let i = 0; i < 8; i++) await nextTurn();
  await refused;
  assert.equal(await other, "other");
  assert.deepEqual(
    order.filter((step) => step.startsWith("gone")),
    ["gone 1"],
  );
});

test("steps run at once for a caller without turns, and in its turns for another", async () => {
  const steps = function* () {
    yield;
    return 1;
  };
  assert.equal(runSteps(undefined, steps()), 1);
  const taken: unknown[] = [];
  const turns = { run: <T>(given: Generator<void, T>) => (taken.push(given), Promise.resolve(2 as T)) }; // cast: the result alone matters
  assert.equal(await runSteps(turns, steps()), 2);
  assert.equal(taken.length, 1);
});

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

for (const { name, tasks, want } of [
  { name: "the first of three", tasks: ["throws", "b", "c"], want: [["b", "c"]] },
  { name: "the second of three", tasks: ["a", "throws", "c"], want: [["a"], ["c"]] },
  { name: "the last", tasks: ["a", "throws"], want: [["a"]] },
]) {
  test(`a task that throws, ${name}, defers the rest to a microtask of their own`, (t) => {
    const microtasks: (() => void)[] = [];
    t.mock.method(globalThis, "queueMicrotask", (run: () => void) => void microtasks.push(run));
    let done: string[] = [];
    for (const task of tasks)
      atEndOfTurn(() => {
        if (task === "throws") throw new Error("broken");
        done.push(task);
      });
    const turns: string[][] = [];
    const turn = (): void => {
      done = [];
      try {
        microtasks.shift()?.();
      } finally {
        if (done.length > 0) turns.push(done);
      }
    };
    assert.throws(turn, /broken/);
    while (microtasks.length > 0) turn();
    assert.deepEqual(turns, want);
    atEndOfTurn(() => done.push("next"));
    assert.equal(microtasks.length, 1, "tasks run again");
    microtasks.shift()?.();
    assert.equal(done.at(-1), "next");
  });
}

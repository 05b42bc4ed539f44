import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import type { FromWorker } from "../model/protocol.ts";
import type { Row } from "../model/row.ts";
import { Outbox } from "./outbox.ts";

const row = (uid: string, status = ""): Row => ({ uid, status }) as Row;

function setUp(t: TestContext) {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  let now = 1_000;
  t.mock.method(performance, "now", () => now);
  const posted: FromWorker[] = [];
  const outbox = new Outbox((message) => void posted.push(message));
  const tick = (ms: number): void => {
    now += ms;
    t.mock.timers.tick(ms);
  };
  const take = (): string[] =>
    posted
      .splice(0)
      .map((message) =>
        message.type === "rows"
          ? [...message.set.map(({ uid, status }) => `+${uid}${status}`), ...message.gone.map((uid) => `-${uid}`)].join(" ")
          : message.type,
      );
  return { outbox, tick, take };
}

test("after a pause a change is sent at once, and those of the next 50 ms together, each row in its last state", (t) => {
  const { outbox, tick, take } = setUp(t);
  outbox.set(row("a"));
  tick(0);
  assert.deepEqual(take(), ["+a"]);
  outbox.set(row("b", "1"));
  outbox.set(row("b", "2"));
  outbox.set(row("c"));
  outbox.gone("c");
  outbox.gone("d");
  outbox.set(row("d"));
  tick(49);
  assert.deepEqual(take(), []);
  tick(1);
  assert.deepEqual(take(), ["+b2 +d -c"]);
  tick(1_000);
  assert.deepEqual(take(), []);
});

test("many rows are sent a thousand at a time", (t) => {
  const { outbox, tick, take } = setUp(t);
  for (let i = 0; i < 2_001; i++) outbox.set(row(`${i}`));
  outbox.gone("x");
  const counts: number[] = [];
  for (let i = 0; i < 4; i++) {
    tick(1);
    counts.push(...take().map((message) => message.split(" ").length));
  }
  assert.deepEqual(counts, [1_001, 1_000, 1]);
});

test("another message comes behind the rows before it", (t) => {
  const { outbox, tick, take } = setUp(t);
  for (let i = 0; i < 1_001; i++) outbox.set(row(`${i}`));
  outbox.send({ type: "usage", nodes: [], pods: [] });
  const sent = take();
  assert.deepEqual([sent.length, sent[1], sent[2]], [3, "+1000", "usage"]);
  tick(1_000);
  assert.deepEqual(take(), []);
});

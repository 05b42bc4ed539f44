import assert from "node:assert/strict";
import { test } from "node:test";
import { RequestGate, Turns } from "./turns.ts";

function setUp() {
  const scheduled: (() => void)[] = [];
  const turns = new Turns(
    () => 0,
    (run) => scheduled.push(run),
  );
  const gate = new RequestGate(turns);
  const order: string[] = [];
  return {
    turns,
    order,
    async request(client: string): Promise<void> {
      const turn = gate.enter(client);
      if (turn !== undefined) await turn;
      order.push(client);
    },
    async iterate(): Promise<void> {
      scheduled.shift()?.();
      await new Promise((resolve) => setImmediate(resolve));
    },
  };
}

test("a client with 200 connections and 16 pipelined requests each delays another's request by one time slice", async () => {
  const { request, iterate, order } = setUp();
  for (let at = 0; at < 200 * 16; at++) void request("many");
  void request("other");
  for (let at = 0; at < 300; at++) await iterate();
  assert.equal(order.length, 3201);
  const before = order.indexOf("other");
  assert.ok(before <= 17, `${before} requests of the other client`);
});

test("clients are served round-robin, each in the order of its requests", async () => {
  const { request, iterate, order } = setUp();
  for (let at = 0; at < 16; at++) void request("first"); // uses up the iteration
  for (const client of ["a", "a", "a", "b", "b", "c"]) void request(client);
  await iterate();
  assert.deepEqual(order.slice(16), ["a", "b", "c", "a", "b", "a"]);
  void request("c");
  await iterate();
  assert.deepEqual(order.slice(22), ["c"]);
});

test("requests begin before other work that waits, except after every eighth", async () => {
  const { request, iterate, turns, order } = setUp();
  void request("first");
  turns.transferred(1024 * 1024); // the iteration is full
  for (let at = 0; at < 3; at++) void turns.next()?.then(() => order.push("work"));
  for (let at = 0; at < 10; at++) void request("a");
  await iterate();
  assert.equal(order.slice(1).join(" "), "a a a a a a a a work a a work work");
});

test("a short piece waits for at most eight of the requests that came before it", async () => {
  const { request, iterate, turns, order } = setUp();
  void request("first");
  turns.transferred(1024 * 1024);
  for (let at = 0; at < 100; at++) void request("a");
  void turns.next(1)?.then(() => order.push("short"));
  await iterate();
  assert.equal(order.indexOf("short"), 9);
});

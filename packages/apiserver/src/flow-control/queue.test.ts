import assert from "node:assert/strict";
import { test } from "node:test";
import { Queue } from "./queue.ts";

const aTicket = (work: number, arrivalR = 0) => ({ work, arrivalR });

test("an empty queue has no work left over, whatever the order in which its requests of odd sizes went", () => {
  const queue = new Queue<ReturnType<typeof aTicket>>();
  const tickets = [0.1, 0.2, 0.3, 0.003].map((work) => aTicket(work));
  for (const ticket of tickets) queue.push(ticket);
  for (const ticket of tickets.toReversed()) queue.remove(ticket);
  assert.equal(queue.workWaiting, 0);
});

test("a request that has left the queue takes no work of the others along", () => {
  const queue = new Queue<ReturnType<typeof aTicket>>();
  const [first, second] = [aTicket(1), aTicket(2)];
  for (const ticket of [first, second]) queue.push(ticket);
  for (let i = 0; i < 2; i++) queue.remove(first);
  assert.deepEqual([queue.workWaiting, queue.tickets], [2, [second]]);
});

test("a queue starts its first request not before that arrived, and keeps what it has used beyond", () => {
  const queue = new Queue<ReturnType<typeof aTicket>>();
  queue.nextR = 3;
  queue.bound();
  assert.equal(queue.nextR, 3);
  queue.push(aTicket(1, 5));
  queue.bound();
  assert.equal(queue.nextR, 5);
  queue.nextR = 6;
  queue.bound();
  assert.equal(queue.nextR, 6);
});

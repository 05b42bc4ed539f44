import assert from "node:assert/strict";
import { test } from "node:test";
import { newFakeClock } from "@coxswain/apimachinery/clock/fake-clock";
import { newMetricsRegistry } from "@coxswain/apimachinery/metrics/registry";
import { parseRequestInfo } from "../request/request-info.ts";
import { newFlowControlMetrics } from "./metrics.ts";
import { QueueSet, type QueueSetConfig } from "./queue-set.ts";
import type { Ticket } from "./ticket.ts";
import type { WorkEstimate } from "./work-estimate.ts";

const oneSeat: WorkEstimate = { initialSeats: 1, finalSeats: 0, additionalMs: 0 };
const asked = { info: parseRequestInfo("GET", "/api/v1/pods"), user: { name: "u", groups: [] }, receivedMs: 0 };

function aSet(config: Partial<QueueSetConfig> = {}) {
  const clock = newFakeClock();
  const metrics = newFlowControlMetrics(newMetricsRegistry(), clock);
  const set = new QueueSet(
    { concurrencyLimit: 2, queuing: { queues: 64, handSize: 6, queueLengthLimit: 3 }, requestWaitLimitMs: 15_000, ...config },
    clock,
    metrics.level("test"),
  );
  const counted = metrics.flow("test", "schema");
  const ask = (flow: string, work = oneSeat) => set.start({ schema: "schema", flow, work, counted, asked });
  return { clock, set, counted, ask };
}

const states = (tickets: (Ticket | undefined)[]) => tickets.map((ticket) => ticket?.state ?? "refused");

test("what finds a seat runs, the rest waits its turn in the order it came", () => {
  const { ask, set } = aSet({ queuing: { queues: 64, handSize: 1, queueLengthLimit: 3 } });
  const tickets = [ask("a"), ask("a"), ask("a"), ask("a")] as Ticket[];
  assert.deepEqual(states(tickets), ["executing", "executing", "waiting", "waiting"]);
  const told: boolean[] = [];
  (tickets[2] as Ticket).decided = (runs) => told.push(runs);
  tickets[0]?.finish();
  assert.deepEqual(told, [true]);
  assert.deepEqual(states(tickets), ["done", "executing", "executing", "waiting"]);
  for (const ticket of tickets) ticket.finish();
  tickets[3]?.finish();
  assert.equal(set.idle, true);
});

test("without queues, what finds no seat is refused", () => {
  const { ask } = aSet({ queuing: undefined });
  assert.deepEqual(states([ask("a"), ask("b"), ask("c")]), ["executing", "executing", "refused"]);
});

test("a flow fills its hand of queues and no others; another flow still finds room", () => {
  const { ask } = aSet();
  const flood = Array.from({ length: 2 + 6 * 3 + 5 }, () => ask("flood"));
  assert.equal(states(flood).filter((state) => state === "waiting").length, 6 * 3);
  assert.equal(states(flood).filter((state) => state === "refused").length, 5);
  assert.equal(ask("quiet")?.state, "waiting");
});

test("busy flows get the same share of the seats, however much one of them asks for", async () => {
  const { ask, clock } = aSet({ queuing: { queues: 64, handSize: 1, queueLengthLimit: 1000 } });
  const served = { flood: 0, quiet: 0 };
  const running: { ticket: Ticket; flow: keyof typeof served }[] = [];
  const come = (flow: keyof typeof served): void => {
    const ticket = ask(flow) as Ticket;
    if (ticket.state === "executing") running.push({ ticket, flow });
    else ticket.decided = () => running.push({ ticket, flow });
  };
  for (let i = 0; i < 900; i++) come("flood");
  for (let i = 0; i < 100; i++) come("quiet");
  for (let turn = 0; turn < 90; turn++) {
    await clock.advance(10);
    for (const { ticket, flow } of running.splice(0)) {
      served[flow]++;
      ticket.finish();
    }
  }
  assert.equal(served.flood + served.quiet, 180);
  assert.ok(Math.abs(served.flood - served.quiet) <= 4, JSON.stringify(served));
});

test("a flow whose requests take longer gets fewer of them through", async () => {
  const { ask, clock } = aSet({ concurrencyLimit: 4, queuing: { queues: 64, handSize: 1, queueLengthLimit: 1000 } });
  const work = { wide: { ...oneSeat, initialSeats: 4 }, narrow: oneSeat };
  const served = { wide: 0, narrow: 0 };
  let running: { ticket: Ticket; flow: keyof typeof served }[] = [];
  for (const flow of ["wide", "narrow"] as const)
    for (let i = 0; i < 300; i++) {
      const ticket = ask(flow, work[flow]) as Ticket;
      if (ticket.state === "executing") running.push({ ticket, flow });
      else ticket.decided = () => running.push({ ticket, flow });
    }
  for (let turn = 0; turn < 60; turn++) {
    await clock.advance(10);
    const done = running;
    running = [];
    for (const { ticket, flow } of done) {
      served[flow]++;
      ticket.finish();
    }
  }
  const ratio = served.narrow / served.wide;
  assert.ok(ratio > 3 && ratio < 5, JSON.stringify(served));
});

test("what waited beyond the limit is refused when the next one comes into its queue", async () => {
  const { ask, clock } = aSet({ concurrencyLimit: 1, queuing: { queues: 1, handSize: 1, queueLengthLimit: 10 } });
  const [, second] = [ask("a"), ask("a")] as Ticket[];
  const told: boolean[] = [];
  (second as Ticket).decided = (runs) => told.push(runs);
  await clock.advance(15_001);
  assert.equal(ask("a")?.state, "waiting");
  assert.deepEqual(told, [false]);
  assert.equal(second?.state, "refused");
});

test("who leaves frees its place in the queue", () => {
  const { ask, set } = aSet({ concurrencyLimit: 1, queuing: { queues: 1, handSize: 1, queueLengthLimit: 1 } });
  const [first, second] = [ask("a"), ask("a")] as Ticket[];
  assert.equal(ask("a"), undefined);
  second?.cancel();
  second?.cancel();
  assert.equal(ask("a")?.state, "waiting");
  assert.deepEqual([set.waiting, set.executing], [1, 1]);
  first?.cancel(); // already executing
  assert.equal(first?.state, "executing");
});

test("a wide request waits until there is room and holds the others back; one wider than all runs alone", () => {
  const { ask, counted } = aSet({ queuing: { queues: 1, handSize: 1, queueLengthLimit: 10 } });
  const wide = { ...oneSeat, initialSeats: 5 };
  const [first, second, third] = [ask("a"), ask("b", wide), ask("c")] as Ticket[];
  assert.deepEqual(states([first, second, third]), ["executing", "waiting", "waiting"]);
  assert.ok(counted.noAccommodation.value > 0);
  first?.finish();
  assert.deepEqual(states([second, third]), ["executing", "waiting"]);
  second?.finish();
  assert.equal(third?.state, "executing");
});

test("a write keeps its seats for a moment after its answer", async () => {
  const { ask, clock } = aSet({ queuing: undefined });
  const write = ask("a", { initialSeats: 1, finalSeats: 2, additionalMs: 5 });
  write?.finish();
  assert.equal(ask("b"), undefined);
  await clock.advance(5);
  assert.equal(ask("b")?.state, "executing");
});

test("a lower limit lets no more in, a higher one lets waiters in at once", () => {
  const { ask, set } = aSet();
  const tickets = [ask("a"), ask("b"), ask("c"), ask("d")] as Ticket[];
  const queuing = { queues: 64, handSize: 6, queueLengthLimit: 3 };
  set.reconfigure({ concurrencyLimit: 1, queuing, requestWaitLimitMs: 1 });
  tickets[0]?.finish();
  assert.deepEqual(states(tickets), ["done", "executing", "waiting", "waiting"]);
  set.reconfigure({ concurrencyLimit: 3, queuing, requestWaitLimitMs: 1 });
  assert.deepEqual(states(tickets), ["done", "executing", "executing", "executing"]);
});

test("queues that are too many go when they are empty", () => {
  const { ask, set } = aSet({ concurrencyLimit: 1 });
  const tickets = Array.from({ length: 12 }, (_, i) => ask(`flow-${i}`)) as Ticket[];
  set.reconfigure({ concurrencyLimit: 100, queuing: { queues: 2, handSize: 1, queueLengthLimit: 3 }, requestWaitLimitMs: 1 });
  for (const ticket of tickets) ticket.finish();
  assert.equal(set.idle, true);
  assert.ok(set.queues.length < 64);
  const more = Array.from({ length: 5 }, (_, i) => ask(`flow-${i}`)) as Ticket[];
  assert.deepEqual(new Set(states(more)), new Set(["executing"]));
});

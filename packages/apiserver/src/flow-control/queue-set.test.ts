import assert from "node:assert/strict";
import { test } from "node:test";
import { newFakeClock } from "@coxswain/apimachinery/process/clock/fake-clock";
import { newMetricsRegistry } from "@coxswain/apimachinery/process/metrics/registry";
import { randomOf } from "@coxswain/apimachinery/testing/random";
import { parseRequestInfo } from "../request/request-info.ts";
import { FlowControlMetrics } from "./metrics.ts";
import { QueueSet, type QueueSetConfig } from "./queue-set.ts";
import { dealHand, hashFlow } from "./shuffle-sharding.ts";
import type { Ticket } from "./ticket.ts";
import type { WorkEstimate } from "./work-estimate.ts";

const oneSeat: WorkEstimate = { initialSeats: 1, finalSeats: 0, additionalMs: 0 };
const requested = { info: parseRequestInfo("GET", "/api/v1/pods"), user: { name: "u", groups: [] }, receivedMs: 0 };

function aSet(config: Partial<QueueSetConfig> = {}) {
  const clock = newFakeClock();
  const registry = newMetricsRegistry();
  const metrics = new FlowControlMetrics(registry, clock);
  const level = metrics.level("test");
  const set = new QueueSet(
    { concurrencyLimit: 2, queuing: { queues: 64, handSize: 6, queueLengthLimit: 3 }, requestWaitLimitMs: 15_000, ...config },
    clock,
    level,
  );
  const counted = metrics.flow("test", "schema");
  const startRequest = (flow: string, work = oneSeat, schema = "schema") => set.start({ schema, flow, work, counted, requested });
  return { clock, set, counted, startRequest, level, page: () => registry.render() };
}

const states = (tickets: (Ticket | undefined)[]) => tickets.map((ticket) => ticket?.state ?? "refused");

test("requests run while seats are free, and the others run later in the order of their arrival", () => {
  const { startRequest, set } = aSet({ queuing: { queues: 64, handSize: 1, queueLengthLimit: 3 } });
  const tickets = [startRequest("a"), startRequest("a"), startRequest("a"), startRequest("a")] as Ticket[];
  assert.deepEqual(states(tickets), ["executing", "executing", "waiting", "waiting"]);
  const reported: boolean[] = [];
  (tickets[2] as Ticket).decided = (runs) => reported.push(runs);
  tickets[0]?.finish();
  assert.deepEqual(reported, [true]);
  assert.deepEqual(states(tickets), ["done", "executing", "executing", "waiting"]);
  for (const ticket of tickets) ticket.finish();
  tickets[3]?.finish();
  assert.equal(set.idle, true);
});

test("without queues, a request that finds no free seat is rejected", async () => {
  const { startRequest, page } = aSet({ queuing: undefined });
  assert.deepEqual(states([startRequest("a"), startRequest("b"), startRequest("c")]), ["executing", "executing", "refused"]);
  assert.match(
    await page(),
    /rejected_requests_total\{priority_level="test",flow_schema="schema",reason="concurrency-limit"\} 1$/m,
  );
});

test("a flow fills only the queues of its hand; another flow can still enqueue", () => {
  const { startRequest } = aSet();
  const flood = Array.from({ length: 2 + 6 * 3 + 5 }, () => startRequest("flood"));
  assert.equal(states(flood).filter((state) => state === "waiting").length, 6 * 3);
  assert.equal(states(flood).filter((state) => state === "refused").length, 5);
  assert.equal(startRequest("quiet")?.state, "waiting");
  assert.equal(
    startRequest("flood", oneSeat, "another schema")?.state,
    "waiting",
    "the same name in another schema is another flow",
  );
});

test("busy flows get equal shares of the seats, however many requests one of them has", async () => {
  const { startRequest, clock } = aSet({ queuing: { queues: 64, handSize: 1, queueLengthLimit: 1000 } });
  const served = { flood: 0, quiet: 0 };
  const running: { ticket: Ticket; flow: keyof typeof served }[] = [];
  const come = (flow: keyof typeof served): void => {
    const ticket = startRequest(flow) as Ticket;
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
  const { startRequest, clock } = aSet({ concurrencyLimit: 4, queuing: { queues: 64, handSize: 1, queueLengthLimit: 1000 } });
  const work = { wide: { ...oneSeat, initialSeats: 4 }, narrow: oneSeat };
  const served = { wide: 0, narrow: 0 };
  let running: { ticket: Ticket; flow: keyof typeof served }[] = [];
  for (const flow of ["wide", "narrow"] as const)
    for (let i = 0; i < 300; i++) {
      const ticket = startRequest(flow, work[flow]) as Ticket;
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

test("a request that has waited longer than the limit is rejected when the next one enters its queue", async () => {
  const { startRequest, clock } = aSet({ concurrencyLimit: 1, queuing: { queues: 1, handSize: 1, queueLengthLimit: 10 } });
  const overdue = [startRequest("a"), startRequest("a"), startRequest("a")].slice(1) as Ticket[];
  const reported: boolean[] = [];
  for (const ticket of overdue) ticket.decided = (runs) => reported.push(runs);
  await clock.advance(15_000);
  assert.equal(startRequest("a")?.state, "waiting");
  assert.deepEqual(reported, [], "its time is over behind the limit, not at it");
  await clock.advance(1);
  assert.equal(startRequest("a")?.state, "waiting");
  assert.deepEqual(
    [reported, states(overdue)],
    [
      [false, false],
      ["refused", "refused"],
    ],
  );
});

test("a request that is aborted frees its place in the queue", () => {
  const { startRequest, set } = aSet({ concurrencyLimit: 1, queuing: { queues: 1, handSize: 1, queueLengthLimit: 1 } });
  const [first, second] = [startRequest("a"), startRequest("a")] as Ticket[];
  assert.equal(startRequest("a"), undefined);
  const reported: boolean[] = [];
  (second as Ticket).decided = (runs) => reported.push(runs);
  second?.cancel();
  second?.cancel();
  assert.deepEqual(reported, [false]);
  assert.equal(startRequest("a")?.state, "waiting");
  assert.deepEqual([set.waiting, set.executing], [1, 1]);
  first?.cancel(); // already executing
  assert.equal(first?.state, "executing");
});

test("a wide request waits until there is room and holds the others back; one wider than all runs alone", () => {
  const { startRequest, counted } = aSet({ queuing: { queues: 1, handSize: 1, queueLengthLimit: 10 } });
  const wide = { ...oneSeat, initialSeats: 5 };
  const [first, second, third] = [startRequest("a"), startRequest("b", wide), startRequest("c")] as Ticket[];
  assert.deepEqual(states([first, second, third]), ["executing", "waiting", "waiting"]);
  assert.ok(counted.noAccommodation.value > 0);
  first?.finish();
  assert.deepEqual(states([second, third]), ["executing", "waiting"]);
  second?.finish();
  assert.equal(third?.state, "executing");
});

test("a full queue refuses no request while a seat is free, which its first request is too wide for", () => {
  const { startRequest } = aSet({ queuing: { queues: 1, handSize: 1, queueLengthLimit: 1 } });
  const tickets = [startRequest("a"), startRequest("b", { ...oneSeat, initialSeats: 2 }), startRequest("c")];
  assert.deepEqual(states(tickets), ["executing", "waiting", "waiting"]);
  tickets[0]?.finish();
  assert.deepEqual(states([...tickets, startRequest("d")]), ["done", "executing", "waiting", "refused"]);
});

test("a write keeps its seats for a moment after its answer", async () => {
  const { startRequest, clock } = aSet({ queuing: undefined });
  const write = startRequest("a", { initialSeats: 1, finalSeats: 2, additionalMs: 5 });
  write?.finish();
  assert.equal(startRequest("b"), undefined);
  await clock.advance(5);
  assert.equal(startRequest("b")?.state, "executing");
});

test("a lower limit lets no more in, a higher one lets waiters in at once", () => {
  const { startRequest, set, level } = aSet();
  const tickets = [startRequest("a"), startRequest("b"), startRequest("c"), startRequest("d")] as Ticket[];
  assert.equal(level.limit.value, 2);
  const queuing = { queues: 64, handSize: 6, queueLengthLimit: 3 };
  set.reconfigure({ concurrencyLimit: 1, queuing, requestWaitLimitMs: 1 });
  tickets[0]?.finish();
  assert.deepEqual(states(tickets), ["done", "executing", "waiting", "waiting"]);
  set.reconfigure({ concurrencyLimit: 3, queuing, requestWaitLimitMs: 1 });
  assert.deepEqual(states(tickets), ["done", "executing", "executing", "executing"]);
  assert.equal(level.limit.value, 3, "as its metric says");
});

test("queues that are too many go when they are empty", () => {
  const { startRequest, set } = aSet({ concurrencyLimit: 1 });
  const tickets = Array.from({ length: 12 }, (_, i) => startRequest(`flow-${i}`)) as Ticket[];
  set.reconfigure({ concurrencyLimit: 100, queuing: { queues: 2, handSize: 1, queueLengthLimit: 3 }, requestWaitLimitMs: 1 });
  for (const ticket of tickets) ticket.finish();
  assert.equal(set.idle, true);
  // A queue is removed after one of its requests.
  assert.equal(set.queues.length, 64 - new Set(tickets.map(({ queue }) => queue)).size);
  const more = Array.from({ length: 5 }, (_, i) => startRequest(`flow-${i}`)) as Ticket[];
  assert.deepEqual(new Set(states(more)), new Set(["executing"]));
});

test("a queue that is no longer configured is removed after the last of its requests", () => {
  const { startRequest, set } = aSet({ concurrencyLimit: 1, queuing: { queues: 2, handSize: 1, queueLengthLimit: 9 } });
  const tickets = [startRequest("a"), startRequest("a"), startRequest("a")] as Ticket[];
  set.reconfigure({ concurrencyLimit: 1, queuing: undefined, requestWaitLimitMs: 1 });
  for (const [i, ticket] of tickets.entries()) {
    assert.deepEqual([ticket.state, set.queues.length], ["executing", 2], `request ${i}`);
    ticket.finish();
  }
  assert.deepEqual([set.idle, set.queues.length], [true, 1]);
});

for (const seed of [1, 2, 3, 4]) {
  test(`queues, seats and gauges agree with the requests through a thousand random steps (seed ${seed})`, async () => {
    const random = randomOf(seed);
    const below = (n: number): number => Math.floor(random() * n);
    const { clock, set, level, counted: flow } = aSet({ concurrencyLimit: 4, requestWaitLimitMs: 40 });
    const reasons: string[] = [];
    const counted = { ...flow, rejected: (reason: string) => void reasons.push(reason) };
    let idled = 0;
    set.onIdle = () => {
      assert.equal(set.idle, true);
      idled++;
    };
    let limit = 4;
    let virtual = 0;
    const live = new Set<Ticket>();
    /** Seats of answered writes, until their events are sent. */
    const lingering = new Map<Ticket, number>();
    let [refused, cancelled] = [0, 0];
    for (let step = 0; step < 1000; step++) {
      const some = [...live][below(live.size)];
      const what = below(10);
      if (what < 4) {
        const work = { initialSeats: 1 + below(3), finalSeats: below(3), additionalMs: below(3) * 5 };
        const ticket = set.start({ schema: "schema", flow: `flow-${below(5)}`, work, counted, requested });
        assert.ok(Math.abs(level.currentR.value - virtual) < 1e-9, `${level.currentR.value} instead of ${virtual}`);
        if (ticket === undefined) refused++;
        else live.add(ticket);
      } else if (what < 7) {
        if (some?.state === "executing" && some.request.work.additionalMs > 0)
          lingering.set(some, clock.monotonic() + some.request.work.additionalMs);
        some?.finish();
      } else if (what === 7) {
        if (some?.state === "waiting") cancelled++;
        some?.cancel();
      } else if (what === 8) {
        for (let ms = below(20); ms > 0; ms--) {
          const busy = [...live].filter(({ state }) => state === "waiting" || state === "executing");
          const wanted = sum(busy.map(({ seats }) => seats)) + sum([...lingering.keys()].map(({ seats }) => seats));
          const active = new Set(busy.map(({ queue }) => queue)).size;
          if (active > 0) virtual += (Math.min(wanted, limit) / active) * 0.001;
          await clock.advance(1);
          for (const [ticket, until] of lingering) if (until <= clock.monotonic()) lingering.delete(ticket);
        }
      } else if (below(20) === 0) {
        limit = 2 + below(4);
        set.reconfigure({
          concurrencyLimit: limit,
          queuing: { queues: 8 + below(64), handSize: 3, queueLengthLimit: 3 },
          requestWaitLimitMs: 40,
        });
      }
      for (const [ticket, until] of lingering) if (until <= clock.monotonic()) lingering.delete(ticket);
      for (const ticket of live) if (ticket.state === "refused" || ticket.state === "done") live.delete(ticket);
      const waiting = [...live].filter(({ state }) => state === "waiting");
      const executing = [...live].filter(({ state }) => state === "executing");
      const seats = sum([...executing, ...lingering.keys()].map((ticket) => ticket.seats));
      assert.deepEqual([set.waiting, set.executing, set.idle], [waiting.length, executing.length, live.size === 0]);
      assert.deepEqual(
        [flow.inQueue.value, flow.executing.value, flow.seatsInUse.value],
        [waiting.length, executing.length, seats],
      );
      for (const queue of new Set([...live, ...lingering.keys()].map((ticket) => ticket.queue))) {
        assert.deepEqual(
          queue?.tickets,
          waiting.filter((ticket) => ticket.queue === queue),
        );
        assert.equal(queue?.executing, executing.filter((ticket) => ticket.queue === queue).length);
        const own = [...executing, ...lingering.keys()].filter((ticket) => ticket.queue === queue);
        assert.equal(queue?.seatsInUse, sum(own.map((ticket) => ticket.seats)));
        assert.ok(Math.abs((queue?.workWaiting ?? 0) - sum((queue?.tickets ?? []).map(({ work }) => work))) < 1e-9);
        const first = queue?.tickets[0];
        assert.ok(first === undefined || (queue?.nextR ?? 0) >= first.arrivalR, "credit for the time before its arrival");
      }
      // The widest request takes three seats.
      assert.ok(waiting.length === 0 || seats + 3 > limit, `${waiting.length} wait, and ${seats} of ${limit} seats are taken`);
    }
    assert.deepEqual(
      [reasons.filter((reason) => reason === "queue-full").length, reasons.filter((reason) => reason === "cancelled").length],
      [refused, cancelled],
    );
    for (const ticket of live) ticket.cancel();
    idled = 0;
    for (const ticket of live) ticket.finish();
    await clock.advance(20);
    assert.equal(set.idle, true);
    assert.ok(idled > 0);
  });
}

const sum = (values: readonly number[]): number => values.reduce((total, value) => total + value, 0);

test("virtual time advances by the seats in use for each busy queue, and a dispatch is charged what the request took", async () => {
  const { startRequest, clock, level, page } = aSet({
    concurrencyLimit: 2,
    queuing: { queues: 64, handSize: 1, queueLengthLimit: 9 },
  });
  const [a, b] = [startRequest("a"), startRequest("b")] as Ticket[];
  const waits = startRequest("a") as Ticket;
  assert.notEqual(a?.queue, b?.queue);
  await clock.advance(10_000); // two seats, two busy queues
  assert.equal(level.currentR.value, 0);
  b?.finish();
  assert.equal(level.currentR.value, 10);
  assert.equal(waits.state, "executing");
  // The estimate of 3 ms was replaced by the ten seconds that b took. a is not finished, so that only its estimate counts.
  assert.ok(near(b?.queue?.nextR, 10), String(b?.queue?.nextR));
  assert.ok(near(a?.queue?.nextR, 0.006), String(a?.queue?.nextR));
  await clock.advance(1000); // two seats, one busy queue
  a?.finish();
  assert.equal(level.currentR.value, 12);
  assert.ok(near(a?.queue?.nextR, 11.003), String(a?.queue?.nextR));
  const shown = await page();
  const value = (name: string): number => Number(new RegExp(`^apiserver_flowcontrol_${name} (.*)$`, "m").exec(shown)?.[1]);
  const own = 'priority_level="test"';
  assert.deepEqual(
    [value(`dispatch_r{${own}}`), value(`latest_s{${own}}`), value(`next_s_bounds{${own},bound="max"}`)],
    [10, 0.003, 0.003],
  );
  assert.ok(near(value(`next_discounted_s_bounds{${own},bound="min"}`), 0), shown);
});

const near = (value: number | undefined, wanted: number): boolean => Math.abs((value ?? Number.NaN) - wanted) < 1e-9;

test("the shares of the limits are sampled with the limits of their time, and no more once the level has retired", async () => {
  const queuing = { queues: 1, handSize: 1, queueLengthLimit: 4 };
  const { startRequest, clock, set, page } = aSet({ concurrencyLimit: 4, queuing });
  assert.equal(set.queues.length, 1);
  for (const seats of [3, 1, 1]) startRequest("a", { ...oneSeat, initialSeats: seats });
  const sums = async (): Promise<number[]> => {
    const shown = await page();
    const sum = (name: string): number =>
      Number(new RegExp(`^apiserver_flowcontrol_priority_level_${name}\\} (.*)$`, "m").exec(shown)?.[1]);
    const requests = (phase: string) => sum(`request_count_samples_sum{phase="${phase}",priority_level="test"`);
    return [requests("waiting"), requests("executing"), sum('seat_count_samples_sum{priority_level="test"')];
  };
  await clock.advance(100);
  assert.deepEqual(await sums(), [25, 50, 100]);
  set.reconfigure({ concurrencyLimit: 5, queuing: { ...queuing, queueLengthLimit: 8 }, requestWaitLimitMs: 1 });
  assert.equal(startRequest("a")?.state, "waiting");
  await clock.advance(100);
  assert.deepEqual(await sums(), [37.5, 110, 200]);
  set.retire();
  await clock.advance(100);
  assert.deepEqual(await sums(), [37.5, 110, 200]);
});

test("flows whose requests are due at the same time take turns", () => {
  const { startRequest } = aSet({ concurrencyLimit: 1, queuing: { queues: 64, handSize: 1, queueLengthLimit: 9 } });
  const running = startRequest("first") as Ticket;
  const order: string[] = [];
  const tickets: Ticket[] = [];
  for (let round = 0; round < 3; round++)
    for (const flow of ["a", "b", "c"]) {
      const ticket = startRequest(flow) as Ticket;
      ticket.decided = () => {
        order.push(flow);
        tickets.push(ticket);
      };
    }
  running.finish();
  while (order.length < 9) tickets[order.length - 1]?.finish();
  assert.deepEqual(
    [0, 3, 6].map((from) =>
      order
        .slice(from, from + 3)
        .sort()
        .join(""),
    ),
    ["abc", "abc", "abc"],
  );
});

test("a level that is full looks for no request to dispatch", () => {
  const { startRequest, counted } = aSet();
  for (const flow of ["a", "b", "c", "d"]) startRequest(flow);
  assert.equal(counted.noAccommodation.value, 0);
});

test("a flow waits in a queue of its hand, however many flows there were before", () => {
  const { set, startRequest } = aSet({ queuing: { queues: 64, handSize: 2, queueLengthLimit: 1_000 } });
  for (let i = 0; i < 2; i++) startRequest("runs");
  for (let i = 0; i < 4_200; i++) {
    const ticket = startRequest(`f${i}`);
    if (i % 100 === 0 || i > 4_090) {
      const hand = dealHand(hashFlow("schema", `f${i}`), 64, 2).map((card) => set.queues[card]);
      assert.ok(hand.includes(ticket?.queue), `flow ${i}`);
    }
    ticket?.cancel();
  }
});

test("a queue is charged for each seat that its requests took while they ran, not for those that they keep afterwards", async () => {
  const { startRequest, clock } = aSet({ concurrencyLimit: 5, queuing: { queues: 64, handSize: 1, queueLengthLimit: 9 } });
  const wide = startRequest("a", { initialSeats: 3, finalSeats: 5, additionalMs: 1_000 }) as Ticket;
  assert.ok(near(wide.queue?.nextR, 3 * 0.003 + 5 * 1), String(wide.queue?.nextR));
  await clock.advance(10_000);
  wide.finish();
  assert.ok(near(wide.queue?.nextR, 3 * 10 + 5 * 1), String(wide.queue?.nextR));
});

test("a queue that was idle begins at the present, whatever its requests took before", async () => {
  const { startRequest, clock, level } = aSet({ concurrencyLimit: 2, queuing: { queues: 64, handSize: 1, queueLengthLimit: 9 } });
  const [wide, other] = [startRequest("a", { ...oneSeat, initialSeats: 2 }), startRequest("b")] as Ticket[];
  await clock.advance(10_000); // two seats, two busy queues
  wide?.finish();
  assert.equal(wide?.queue?.nextR, 20);
  const next = startRequest("a") as Ticket;
  assert.equal(next.queue, wide?.queue);
  assert.equal(level.currentR.value, 10);
  assert.ok(near(next.queue?.nextR, 10.003), String(next.queue?.nextR));
  for (const ticket of [other, next]) ticket?.finish();
});

test("a flow keeps to the queues that there are after their number was lowered", () => {
  const { startRequest, set } = aSet({ concurrencyLimit: 100, queuing: { queues: 64, handSize: 1, queueLengthLimit: 9 } });
  const flows = Array.from({ length: 40 }, (_, i) => `flow-${i}`);
  const first = flows.map((flow) => startRequest(flow)) as Ticket[];
  set.reconfigure({ concurrencyLimit: 100, queuing: { queues: 2, handSize: 1, queueLengthLimit: 9 }, requestWaitLimitMs: 1 });
  const few = set.queues.slice(0, 2);
  for (const flow of flows) assert.ok(few.includes((startRequest(flow) as Ticket).queue as (typeof few)[0]), flow);
  for (const ticket of first) ticket.finish();
});

test("flows take turns where they were when an earlier queue is removed", () => {
  const queuing = { queues: 3, handSize: 1, queueLengthLimit: 9 };
  const { startRequest, set } = aSet({ concurrencyLimit: 3, queuing });
  const flowOf = (card: number): string => {
    for (let i = 0; ; i++) if (dealHand(hashFlow("schema", `f${i}`), 3, 1)[0] === card) return `f${i}`;
  };
  const flows = [0, 1, 2].map(flowOf);
  const running = flows.map((flow) => startRequest(flow)) as Ticket[];
  const [second, third] = flows.slice(1).map((flow) => startRequest(flow)) as Ticket[];
  set.reconfigure({ concurrencyLimit: 3, queuing: { ...queuing, queues: 2 }, requestWaitLimitMs: 15_000 });
  running[0]?.finish();
  assert.equal(set.queues.length, 2);
  // The third queue had the last turn.
  assert.deepEqual(states([second, third]), ["executing", "waiting"]);
});

test("a request wider than all runs beside an answered write, which only keeps its seats", () => {
  const { startRequest } = aSet();
  const write = startRequest("a", { initialSeats: 1, finalSeats: 1, additionalMs: 1_000 }) as Ticket;
  write.finish();
  assert.deepEqual(states([startRequest("b", { ...oneSeat, initialSeats: 3 })]), ["executing"]);
});

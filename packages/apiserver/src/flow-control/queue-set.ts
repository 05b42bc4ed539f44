/**
 * Fair queuing of the requests of one priority level. Executing requests occupy seats. When all are occupied, requests wait in
 * the queues of their flow, and the queue that has received the least service is dispatched next. R is the virtual time: the
 * seat-seconds that each busy queue was entitled to since the start. A queue's `nextR` is the virtual time that its dispatched
 * requests used. `start` does not block: the ticket is executing or waiting, and a waiting ticket's `decided` is called later.
 * Source: k8s.io/apiserver pkg/util/flowcontrol/fairqueuing/queueset
 */
import type { Clock } from "@coxswain/apimachinery/process/clock/clock";
import type { LevelMetrics } from "./metrics.ts";
import { Queue } from "./queue.ts";
import { dealHand, hashFlow } from "./shuffle-sharding.ts";
import { Ticket, type TicketRequest } from "./ticket.ts";

export interface QueueSetConfig {
  readonly concurrencyLimit: number;
  /** undefined: requests are rejected when no seat is free. */
  readonly queuing: Queuing | undefined;
  readonly requestWaitLimitMs: number;
}

interface Queuing {
  readonly queues: number;
  readonly handSize: number;
  readonly queueLengthLimit: number;
}

/** Assumed duration of a request until it has finished. */
const estimatedServiceSeconds = 0.003;
/** Number of flows whose hands are cached. */
const mostHands = 4096;

export class QueueSet {
  /** Called when the last request has finished. */
  onIdle: (() => void) | undefined;
  /** May exceed the configured number while surplus queues drain. */
  readonly queues: Queue<Ticket>[] = [];
  #config: QueueSetConfig;
  readonly #clock: Clock;
  readonly #metrics: LevelMetrics;
  readonly #hands = new Map<string, readonly number[]>();
  #currentR = 0;
  #lastMs: number;
  #robin = 0;
  #enqueued = 0;
  #executing = 0;
  #waiting = 0;
  #seatsInUse = 0;
  #seatsWaiting = 0;
  #active = 0;

  constructor(config: QueueSetConfig, clock: Clock, metrics: LevelMetrics) {
    this.#config = config;
    this.#clock = clock;
    this.#metrics = metrics;
    this.#lastMs = clock.monotonic();
    this.reconfigure(config);
  }

  get waiting(): number {
    return this.#waiting;
  }

  get executing(): number {
    return this.#executing;
  }

  get idle(): boolean {
    return this.#waiting === 0 && this.#executing === 0;
  }

  /** Applies new limits; queued requests are kept, and surplus queues are removed once they are idle. */
  reconfigure(config: QueueSetConfig): void {
    this.#syncTime();
    this.#config = config;
    this.#hands.clear();
    for (let i = this.queues.length; i < (config.queuing?.queues ?? 0); i++) this.queues.push(new Queue<Ticket>());
    this.#metrics.limit.set(config.concurrencyLimit);
    this.#metrics.waiting.setLimit(Math.max(1, config.queuing?.queueLengthLimit ?? 1));
    this.#metrics.executing.setLimit(config.concurrencyLimit);
    this.#metrics.seats.setLimit(config.concurrencyLimit);
    this.#dispatch();
  }

  /** Stops sampling the level's load, once it gets no more requests. */
  retire(): void {
    for (const share of [this.#metrics.waiting, this.#metrics.executing, this.#metrics.seats]) share.retire();
  }

  /** @returns a ticket that is executing or waiting; undefined when the request is rejected */
  start(request: TicketRequest): Ticket | undefined {
    this.#syncTime();
    const ticket = new Ticket(this, request, this.#clock.monotonic(), this.#currentR, estimatedServiceSeconds);
    const { queuing } = this.#config;
    if (queuing === undefined) {
      if (!this.#hasRoomFor(ticket.seats)) {
        request.counted.rejected("concurrency-limit");
        return undefined;
      }
      this.#run(ticket);
      return ticket;
    }
    const queue = this.#queueFor(request, queuing);
    this.#refuseOverdue(queue);
    if (this.#seatsInUse >= this.#config.concurrencyLimit && queue.tickets.length >= queuing.queueLengthLimit) {
      queue.bound();
      request.counted.rejected("queue-full");
      return undefined;
    }
    this.#enqueue(ticket, queue);
    request.counted.queueLength.observe(queue.tickets.length);
    this.#dispatch();
    return ticket;
  }

  /** Called when the response is complete. */
  finish(ticket: Ticket): void {
    if (ticket.state !== "executing") return;
    this.#syncTime();
    ticket.state = "done";
    const { queue, request } = ticket;
    this.#executing--;
    this.#metrics.executing.add(-1);
    request.counted.executing.dec();
    if (queue !== undefined) {
      queue.executing--;
      if (queue.idle) this.#active--;
      const tookSeconds = (this.#clock.monotonic() - ticket.startMs) / 1000;
      queue.nextR -= request.work.initialSeats * (estimatedServiceSeconds - tookSeconds);
      queue.bound();
    }
    if (request.work.additionalMs > 0) this.#clock.after(request.work.additionalMs, () => this.#release(ticket));
    else this.#release(ticket);
  }

  /** Called when the client disconnects while the request waits. */
  cancel(ticket: Ticket): void {
    if (ticket.state !== "waiting") return;
    this.#syncTime();
    this.#leaveQueue(ticket, "cancelled");
    ticket.queue?.bound();
    ticket.decide(false);
  }

  #release(ticket: Ticket): void {
    this.#syncTime();
    this.#seatsInUse -= ticket.seats;
    this.#metrics.seats.add(-ticket.seats);
    ticket.request.counted.seatsInUse.dec(ticket.seats);
    const { queue } = ticket;
    if (queue !== undefined) {
      queue.seatsInUse -= ticket.seats;
      this.#removeUnwanted(queue);
    }
    this.#dispatch();
    if (this.idle) this.onIdle?.();
  }

  /** Advances R to now. Seats and queues have not changed since the last call; busy queues share the seats equally. */
  #syncTime(): void {
    const now = this.#clock.monotonic();
    if (this.#active > 0) {
      const seats = Math.min(this.#seatsInUse + this.#seatsWaiting, this.#config.concurrencyLimit);
      this.#currentR += (((now - this.#lastMs) / 1000) * seats) / this.#active;
    }
    this.#lastMs = now;
    this.#metrics.currentR.set(this.#currentR);
  }

  /** The queue of the flow's hand with the least waiting work. The scan begins at a rotating offset, for overlapping hands. */
  #queueFor({ schema, flow }: TicketRequest, { queues, handSize }: Queuing): Queue<Ticket> {
    const key = `${schema}\0${flow}`;
    let hand = this.#hands.get(key);
    if (hand === undefined) {
      if (this.#hands.size >= mostHands) this.#hands.clear();
      hand = dealHand(hashFlow(schema, flow), queues, handSize);
      this.#hands.set(key, hand);
    }
    const offset = this.#enqueued++ % hand.length;
    let best: Queue<Ticket> | undefined;
    for (let i = 0; i < hand.length; i++) {
      const queue = this.queues[hand[(offset + i) % hand.length]!]!;
      if (best === undefined || queue.workWaiting < best.workWaiting) best = queue;
    }
    return best!;
  }

  #refuseOverdue(queue: Queue<Ticket>): void {
    const earliest = this.#clock.monotonic() - this.#config.requestWaitLimitMs;
    for (let first = queue.tickets[0]; first !== undefined && first.arrivalMs < earliest; first = queue.tickets[0]) {
      this.#leaveQueue(first, "time-out");
      first.decide(false);
    }
    queue.bound();
  }

  #enqueue(ticket: Ticket, queue: Queue<Ticket>): void {
    if (queue.idle) {
      queue.nextR = this.#currentR;
      this.#active++;
    }
    ticket.queue = queue;
    queue.push(ticket);
    this.#waiting++;
    this.#metrics.waiting.add(1);
    this.#seatsWaiting += ticket.seats;
    ticket.request.counted.inQueue.inc();
    queue.bound();
  }

  /** @param reason why it is not dispatched; undefined: it is */
  #leaveQueue(ticket: Ticket, reason: "time-out" | "cancelled" | undefined): void {
    const { queue, request } = ticket;
    queue?.remove(ticket);
    this.#waiting--;
    this.#metrics.waiting.add(-1);
    this.#seatsWaiting -= ticket.seats;
    request.counted.inQueue.dec();
    if (reason === undefined) return;
    if (queue?.idle) this.#active--;
    request.counted.rejected(reason);
  }

  #dispatch(): void {
    while (this.#waiting > 0 && this.#seatsInUse < this.#config.concurrencyLimit) {
      const queue = this.#next();
      const ticket = queue?.tickets[0];
      if (queue === undefined || ticket === undefined) return;
      this.#leaveQueue(ticket, undefined);
      queue.executing++;
      queue.seatsInUse += ticket.seats;
      this.#run(ticket);
      queue.nextR += ticket.work;
      queue.bound();
      ticket.decide(true);
    }
  }

  #run(ticket: Ticket): void {
    ticket.startMs = this.#clock.monotonic();
    ticket.state = "executing";
    this.#executing++;
    this.#metrics.executing.add(1);
    this.#seatsInUse += ticket.seats;
    this.#metrics.seats.add(ticket.seats);
    ticket.request.counted.executing.inc();
    ticket.request.counted.seatsInUse.inc(ticket.seats);
  }

  /** The queue whose first request would finish first in virtual time; ties are broken round-robin. */
  #next(): Queue<Ticket> | undefined {
    let best: Queue<Ticket> | undefined;
    let bestAt = 0;
    let leastR = Number.POSITIVE_INFINITY;
    const bounds: { s: Bounds; discounted: Bounds } = { s: [leastR, -leastR], discounted: [leastR, -leastR] };
    const count = this.queues.length;
    for (let i = 1; i <= count; i++) {
      const at = (this.#robin + i) % count;
      const queue = this.queues[at]!;
      const first = queue.tickets[0];
      if (first === undefined) continue;
      widen(bounds.s, queue.nextR);
      widen(bounds.discounted, queue.nextR - queue.seatsInUse * estimatedServiceSeconds);
      if (queue.nextR + first.work < leastR) {
        leastR = queue.nextR + first.work;
        best = queue;
        bestAt = at;
      }
    }
    const first = best?.tickets[0];
    if (best === undefined || first === undefined) return undefined;
    if (!this.#hasRoomFor(first.seats)) {
      first.request.counted.noAccommodation.inc();
      return undefined;
    }
    this.#robin = bestAt;
    this.#metrics.dispatched(this.#currentR, best.nextR, bounds.s, bounds.discounted);
    return best;
  }

  /** A request wider than the concurrency limit is dispatched when no other request is executing. */
  #hasRoomFor(seats: number): boolean {
    const { concurrencyLimit } = this.#config;
    return seats > concurrencyLimit ? this.#executing === 0 : this.#seatsInUse + seats <= concurrencyLimit;
  }

  #removeUnwanted(queue: Queue<Ticket>): void {
    if (this.queues.length <= (this.#config.queuing?.queues ?? 0) || !queue.idle) return;
    const at = this.queues.indexOf(queue);
    if (at < 0) return;
    this.queues.splice(at, 1);
    if (this.#robin >= at) this.#robin = Math.max(0, this.#robin - 1);
  }
}

/** Least and greatest. */
type Bounds = [least: number, greatest: number];

function widen(bounds: Bounds, value: number): void {
  if (value < bounds[0]) bounds[0] = value;
  if (value > bounds[1]) bounds[1] = value;
}

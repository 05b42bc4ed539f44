import type { Ticket } from "./ticket.ts";

/** One queue of a priority level; flows that were dealt it share it. */
export class Queue {
  readonly tickets: Ticket[] = [];
  /** Virtual time at which the next request starts. */
  nextR = 0;
  executing = 0;
  /** Also those that stay taken after the answer. */
  seatsInUse = 0;
  /** Seat-seconds of all that waits. */
  workWaiting = 0;

  get idle(): boolean {
    return this.tickets.length === 0 && this.executing === 0;
  }

  push(ticket: Ticket): void {
    this.tickets.push(ticket);
    this.workWaiting += ticket.work;
  }

  remove(ticket: Ticket): void {
    const at = this.tickets.indexOf(ticket);
    if (at < 0) return;
    this.tickets.splice(at, 1);
    // Sums of fractions drift; an empty queue has no work.
    this.workWaiting = this.tickets.length === 0 ? 0 : this.workWaiting - ticket.work;
  }

  /** A queue that uses less than its due saves nothing up: no request starts, in virtual time, before it came. */
  bound(): void {
    const first = this.tickets[0];
    if (first !== undefined && this.nextR < first.arrivalR) this.nextR = first.arrivalR;
  }
}

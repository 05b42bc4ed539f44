/** A waiting request, as its queue sees it. */
interface Queued {
  /** Estimated seat-seconds. */
  readonly work: number;
  /** Virtual time of arrival. */
  readonly arrivalR: number;
}

/** One queue of a priority level, shared by the flows whose shuffle-sharding hand contains it. */
export class Queue<T extends Queued> {
  readonly tickets: T[] = [];
  /** Virtual time at which the next request starts. */
  nextR = 0;
  executing = 0;
  /** Includes seats occupied after the response. */
  seatsInUse = 0;
  /** Estimated seat-seconds of all waiting requests. */
  workWaiting = 0;

  get idle(): boolean {
    return this.tickets.length === 0 && this.executing === 0;
  }

  push(ticket: T): void {
    this.tickets.push(ticket);
    this.workWaiting += ticket.work;
  }

  remove(ticket: T): void {
    const at = this.tickets.indexOf(ticket);
    if (at < 0) return;
    this.tickets.splice(at, 1);
    // Avoids the drift of floating-point sums.
    this.workWaiting = this.tickets.length === 0 ? 0 : this.workWaiting - ticket.work;
  }

  /** A queue does not accumulate credit while idle: in virtual time no request starts before it arrived. */
  bound(): void {
    const first = this.tickets[0];
    if (first !== undefined && this.nextR < first.arrivalR) this.nextR = first.arrivalR;
  }
}

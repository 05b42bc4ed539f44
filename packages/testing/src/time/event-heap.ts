/** A scheduled event; `rank` orders events of the same millisecond. */
export interface WorldEvent {
  at: number;
  readonly rank: number;
  readonly label: string;
  fire: (() => void) | undefined;
}

const isBefore = (a: WorldEvent, b: WorldEvent): boolean => a.at < b.at || (a.at === b.at && a.rank < b.rank);

/** A binary heap of events; cancelled ones (without `fire`) stay until their time comes. */
export class EventHeap {
  readonly #events: WorldEvent[] = [];

  get size(): number {
    return this.#events.length;
  }

  get first(): WorldEvent | undefined {
    return this.#events[0];
  }

  push(event: WorldEvent): void {
    const events = this.#events;
    let place = events.push(event) - 1;
    while (place > 0) {
      const parent = (place - 1) >> 1;
      const above = events[parent] as WorldEvent;
      if (!isBefore(event, above)) break;
      events[place] = above;
      place = parent;
    }
    events[place] = event;
  }

  pop(): WorldEvent | undefined {
    const events = this.#events;
    const first = events[0];
    const last = events.pop();
    if (first === undefined || last === undefined || events.length === 0) return first;
    let place = 0;
    for (;;) {
      let child = 2 * place + 1;
      if (child >= events.length) break;
      if (child + 1 < events.length && isBefore(events[child + 1] as WorldEvent, events[child] as WorldEvent)) child++;
      if (!isBefore(events[child] as WorldEvent, last)) break;
      events[place] = events[child] as WorldEvent;
      place = child;
    }
    events[place] = last;
    return first;
  }
}

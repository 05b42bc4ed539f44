import type { Turns } from "./turns.ts";

/**
 * Requests that may start in one iteration. Most of their work follows in microtasks of the same iteration, which the turns'
 * clock does not measure.
 */
const requestsPerSlice = 16;

/**
 * Admits requests. Waiting requests are served round-robin by client, so that a client with many connections does not delay
 * others.
 */
export interface RequestGate {
  /**
   * @param client requests of one client are served in order
   * @returns a promise to await before the request is served; undefined when it may start now
   */
  enter(client: string): Promise<void> | undefined;
}

export function newRequestGate(turns: Turns): RequestGate {
  /** Waiting requests by client; the first client is served next. */
  const waiting = new Map<string, (() => void)[]>();

  function begin(): void {
    turns.charge(1 / requestsPerSlice);
    const [first] = waiting;
    if (first === undefined) return;
    const [client, requests] = first;
    const request = requests.shift();
    waiting.delete(client);
    if (requests.length > 0) waiting.set(client, requests);
    request?.();
  }

  return {
    enter(client) {
      const place = turns.next();
      if (place === undefined && waiting.size === 0) {
        begin();
        return undefined;
      }
      const requests = waiting.get(client) ?? [];
      waiting.set(client, requests);
      const allowed = new Promise<void>((resolve) => requests.push(resolve));
      // Each request reserves a place in the slice; which one starts is decided when that place comes up.
      if (place === undefined) begin();
      else void place.then(begin);
      return allowed;
    },
  };
}

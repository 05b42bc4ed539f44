import { type LoopSlice, loopSlice, sliceBytes } from "./loop-slice.ts";

/**
 * How many requests may begin in one iteration. Most of a request's work comes after it has begun, in microtasks of the same iteration,
 * where the slice's clock does not see it.
 */
const requestsPerSlice = 16;

/** Lets requests begin: those that have to wait take turns between clients, so that one with many connections delays no other. */
export interface RequestGate {
  /**
   * @param client whose requests wait one after the other
   * @returns what to wait for before the request is served; undefined when that may begin now
   */
  enter(client: string): Promise<void> | undefined;
}

export function newRequestGate(slice: LoopSlice = loopSlice): RequestGate {
  /** Requests that wait, by client; the first client is the next one to be served. */
  const waiting = new Map<string, (() => void)[]>();

  function begin(): void {
    slice.wrote(sliceBytes / requestsPerSlice);
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
      const place = slice.next();
      if (place === undefined && waiting.size === 0) {
        begin();
        return undefined;
      }
      const requests = waiting.get(client) ?? [];
      waiting.set(client, requests);
      const allowed = new Promise<void>((resolve) => requests.push(resolve));
      // Each request has a place among all other work; who begins when it comes up is decided then.
      if (place === undefined) begin();
      else void place.then(begin);
      return allowed;
    },
  };
}

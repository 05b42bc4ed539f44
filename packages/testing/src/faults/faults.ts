import type { Clock } from "@coxswain/apimachinery/process/clock/clock";
import { type Duration, durationMs } from "../time/duration.ts";

/** The client of a request. */
export interface Requester {
  /** `kube-controller-manager/replicaset-controller`, or the complete user agent of a program outside the cluster. */
  readonly by: string;
  readonly method: string;
  /** Including the query. */
  readonly path: string;
}

/** Selects requests; all given conditions must hold. */
export interface FaultMatch {
  /** `GET`, `POST`, `PUT`, `PATCH`, `DELETE`. */
  readonly method?: string;
  /** Substring of path and query, or a pattern: `/deployments/web/status`. */
  readonly path?: string | RegExp;
  /** Substring of the client's name: `kube-scheduler`, `replicaset-controller`, or of another program's user agent. */
  readonly by?: string;
}

export interface Fault extends FaultMatch {
  /** Number of requests it applies to. Default 1; `Infinity`: until it is removed. */
  readonly times?: number;
  /** Delay before the request is processed. */
  readonly delay?: Duration;
  /** The response is an error with this code instead of the server's response: 409, 429, 500, … */
  readonly status?: number;
  readonly message?: string;
  /** The connection breaks before the server has received the request, or after it has executed it. */
  readonly breaks?: "before" | "after";
}

/** Effect of a fault on one request. */
interface Hit {
  readonly delayMs: number;
  readonly status: number | undefined;
  readonly message: string | undefined;
  readonly breaks: "before" | "after" | undefined;
}

/** Faults of one server's watches. */
export interface WatchFaults {
  breakClients(path: string): number;
  breakStore(): void;
  lagStore(ms: number): void;
}

interface Pending {
  readonly fault: Fault;
  left: number;
  hits: number;
}

/** An active fault. */
export interface InjectedFault extends Disposable {
  /** Number of requests it has applied to so far. */
  readonly hits: number;
  /** Ends the fault. */
  remove(): void;
}

/** Which requests fail, and how; consulted by the server for each request. */
export class Faults {
  readonly clock: Clock;
  readonly #pending = new Set<Pending>();
  /** Clock skew in ms, by program. */
  readonly #skews = new Map<string, number>();
  readonly #watches: () => WatchFaults | undefined;

  /** @param watches of the server, once it runs; undefined when watch faults are not available */
  constructor(clock: Clock, watches: () => WatchFaults | undefined = () => undefined) {
    this.clock = clock;
    this.#watches = watches;
  }

  /**
   * Changes a program's time of day from now on; its timers are not affected.
   * @param program `kube-apiserver`, `kube-controller-manager`, `kube-scheduler`
   * @param ms how far its clock is ahead; negative: behind
   */
  skew(program: string, ms: number): void {
    this.#skews.set(program, ms);
  }

  /** A program's clock, including its skew. */
  clockOf(program: string): Clock {
    const { clock } = this;
    return {
      now: () => clock.now() + (this.#skews.get(program) ?? 0),
      monotonic: () => clock.monotonic(),
      after: (delayMs, fire) => clock.after(delayMs, fire),
      every: (periodMs, fire) => clock.every(periodMs, fire),
      sleep: (delayMs, signal) => clock.sleep(delayMs, signal),
    };
  }

  /** Breaks clients' watches whose path contains `path`. @returns their number */
  breakWatches(path = ""): number {
    return this.#found().breakClients(path);
  }

  /** Breaks the API server's watch on the store, which clients must not notice. */
  breakStoreWatch(): void {
    this.#found().breakStore();
  }

  /** Delays reads and watches after writes by this time, until it is set to 0. */
  lagWatches(by: Duration): void {
    this.#found().lagStore(durationMs(by));
  }

  #found(): WatchFaults {
    const watches = this.#watches();
    if (watches === undefined) throw new Error("watches of this cluster cannot be disturbed: it is over a real etcd, or stopped");
    return watches;
  }

  /** @throws Error for a fault without an effect */
  inject(fault: Fault): InjectedFault {
    if (fault.status === undefined && fault.breaks === undefined && fault.delay === undefined) {
      throw new Error("a fault needs a status, a delay, or breaks");
    }
    if (fault.delay !== undefined) durationMs(fault.delay);
    const pending: Pending = { fault, left: fault.times ?? 1, hits: 0 };
    this.#pending.add(pending);
    const remove = (): void => void this.#pending.delete(pending);
    return {
      get hits() {
        return pending.hits;
      },
      remove,
      [Symbol.dispose]: remove,
    };
  }

  /** The fault that applies to this request; decrements its remaining count. */
  next(request: Requester): Hit | undefined {
    for (const pending of this.#pending) {
      if (!isHit(pending.fault, request)) continue;
      pending.hits++;
      if (--pending.left <= 0) this.#pending.delete(pending);
      const { delay, status, message, breaks } = pending.fault;
      return { delayMs: delay === undefined ? 0 : durationMs(delay), status, message, breaks };
    }
    return undefined;
  }
}

function isHit({ method, path, by }: FaultMatch, request: Requester): boolean {
  if (method !== undefined && method !== request.method) return false;
  if (by !== undefined && !request.by.includes(by)) return false;
  if (path === undefined) return true;
  // `search` begins at the first character also for a pattern with the flag g, which `test` would go on with.
  return typeof path === "string" ? request.path.includes(path) : request.path.search(path) !== -1;
}

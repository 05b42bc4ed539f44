import type { Clock } from "@coxswain/apimachinery/process/clock/clock";
import { type Duration, durationMs } from "../time/duration.ts";

/** The client of a request. */
export interface Requester {
  /** `kube-controller-manager/replicaset-controller`, or the whole user agent of a program that is not one of the cluster's. */
  readonly by: string;
  readonly method: string;
  /** With the query. */
  readonly path: string;
}

/** Which requests a fault hits; everything given has to be true. */
export interface FaultMatch {
  /** `GET`, `POST`, `PUT`, `PATCH`, `DELETE`. */
  readonly method?: string;
  /** Part of the path and query, or a pattern: `/deployments/web/status`. */
  readonly path?: string | RegExp;
  /** Part of the client's name: `kube-scheduler`, `replicaset-controller`, or of another program's user agent. */
  readonly by?: string;
}

export interface Fault extends FaultMatch {
  /** How many requests it hits. Default 1; `Infinity`: until it is removed. */
  readonly times?: number;
  /** The request waits so long first. */
  readonly delay?: Duration;
  /** Answered with this error in place of the server's answer: 409, 429, 500, … */
  readonly status?: number;
  readonly message?: string;
  /** The connection breaks: before the server has seen the request, or after it has carried it out. */
  readonly breaks?: "before" | "after";
}

/** What happens to one request. */
interface Hit {
  readonly delayMs: number;
  readonly status: number | undefined;
  readonly message: string | undefined;
  readonly breaks: "before" | "after" | undefined;
}

/** Disturbs the watches of one server. */
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

/** A fault that was ordered. */
export interface InjectedFault extends Disposable {
  /** Requests that it has hit so far. */
  readonly hits: number;
  /** No further request is hit. */
  remove(): void;
}

/** Which requests fail, and how; consulted by the server for each request. */
export class Faults {
  readonly clock: Clock;
  readonly #pending = new Set<Pending>();
  /** By program. */
  readonly #skews = new Map<string, number>();
  readonly #watches: () => WatchFaults | undefined;

  /** @param watches of the server, once it runs; undefined where they cannot be had */
  constructor(clock: Clock, watches: () => WatchFaults | undefined = () => undefined) {
    this.clock = clock;
    this.#watches = watches;
  }

  /**
   * From now on a program's time of day is wrong; its timers are not.
   * @param program `kube-apiserver`, `kube-controller-manager`, `kube-scheduler`
   * @param ms how far it is ahead; negative: behind
   */
  skew(program: string, ms: number): void {
    this.#skews.set(program, ms);
  }

  /** The clock of a program, which may be wrong. */
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

  /** Clients' watches break, of those whose path contains `path`. @returns how many */
  breakWatches(path = ""): number {
    return this.#found().breakClients(path);
  }

  /** Breaks the API server's watch on the store, which clients must not notice. */
  breakStoreWatch(): void {
    this.#found().breakStore();
  }

  /** Reads and watches lag behind writes by so much, until it is 0 again. */
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

  /** The fault that hits this request; it counts. */
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
  return typeof path === "string" ? request.path.includes(path) : path.test(request.path);
}

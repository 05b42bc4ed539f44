import type { Clock, Timer } from "../process/clock/clock.ts";
import { NotProcessed, StreamTimeout } from "./transport-errors.ts";

/** One connection of a pool. */
interface PooledConnection {
  /** Current limit of concurrent streams; 0 when it accepts no more. */
  maxStreams(): number;
  /** Closes the connection after its open streams. */
  close(): void;
  destroy(): void;
}

/** Events of a connection. */
export interface PoolEvents {
  /** `maxStreams` has changed. */
  readonly changed: () => void;
  /** The connection accepts no new streams; open ones continue. */
  readonly draining: () => void;
  readonly ended: () => void;
}

/** Receives events of waiting requests and of connections, for metrics. */
export interface PoolObserver {
  /** @param change 1 when a request starts waiting, -1 when it stops */
  waiting(change: 1 | -1): void;
  waited(ms: number): void;
  /** @param change 1 for an opened connection, -1 for a closed one */
  connections(change: 1 | -1): void;
}

export interface StreamLease<C> {
  readonly connection: C;
  /** Returns the stream; to be called once, when it is closed. */
  release(): void;
}

interface StreamPool<C> {
  /**
   * Reserves a stream on the oldest connection with a free one; dials another connection if there is none. Waiters are served in
   * order.
   * @throws the signal's reason; the error of the dial; StreamTimeout after `waitMs`
   */
  acquire(signal?: AbortSignal): Promise<StreamLease<C>>;
  /** Retires all connections: new requests use new ones, open streams finish on the old ones. */
  renew(): void;
  close(): void;
}

export interface StreamPoolOptions<C> {
  /** Opens a connection; resolves when `maxStreams` is known. */
  readonly dial: (events: PoolEvents) => Promise<C>;
  readonly clock: Clock;
  readonly observer?: PoolObserver | undefined;
  /** Upper bound of connections that accept new streams; beyond it requests wait. Default 64. */
  readonly maxConnections?: number;
  /** Connections other than the last one are closed after this time without streams. Default 90 s. */
  readonly idleMs?: number;
  /** Time limit of the wait for a stream. Default 60 s. */
  readonly waitMs?: number;
}

interface Entry<C> {
  readonly connection: C;
  open: number;
  idle: Timer | undefined;
}

interface Waiter<C> {
  serve(entry: Entry<C>): void;
  fail(err: unknown): void;
}

/**
 * A pool of HTTP/2 connections to one server that grows with the number of concurrent streams: servers limit the streams of a
 * connection (usually to 250), and a client's watches alone may exceed that.
 * Source: golang.org/x/net/http2 transport.go, clientConnPool with StrictMaxConcurrentStreams false; IdleConnTimeout of 90 s
 */
export const newStreamPool = <C extends PooledConnection>(options: StreamPoolOptions<C>): StreamPool<C> =>
  new GrowingPool(options);

class GrowingPool<C extends PooledConnection> implements StreamPool<C> {
  readonly #dialConnection: StreamPoolOptions<C>["dial"];
  readonly #clock: Clock;
  readonly #observer: PoolObserver | undefined;
  readonly #maxConnections: number;
  readonly #idleMs: number;
  readonly #waitMs: number;
  /** Connections that accept new streams, oldest first. */
  #entries: Entry<C>[] = [];
  /** All connections, including those that only finish open streams. */
  readonly #connections = new Set<C>();
  readonly #waiters = new Set<Waiter<C>>();
  #dialling = false;
  #generation = 0;
  #closed = false;

  constructor({ dial, clock, observer, maxConnections = 64, idleMs = 90_000, waitMs = 60_000 }: StreamPoolOptions<C>) {
    this.#dialConnection = dial;
    this.#clock = clock;
    this.#observer = observer;
    this.#maxConnections = maxConnections;
    this.#idleMs = idleMs;
    this.#waitMs = waitMs;
  }

  #take(entry: Entry<C>): StreamLease<C> {
    entry.idle?.cancel();
    entry.idle = undefined;
    entry.open++;
    return { connection: entry.connection, release: () => this.#released(entry) };
  }

  #released(entry: Entry<C>): void {
    entry.open--;
    if (entry.open === 0 && this.#entries.length > 1 && this.#entries.includes(entry))
      entry.idle = this.#clock.after(this.#idleMs, () => this.#retire(entry));
    this.#pump();
  }
  /** Excludes a connection from new streams. */

  #drain(entry: Entry<C>): void {
    entry.idle?.cancel();
    this.#entries = this.#entries.filter((one) => one !== entry);
  }

  #retire(entry: Entry<C>): void {
    if (entry.open > 0 || this.#entries.length <= 1) return;
    this.#drain(entry);
    entry.connection.close();
  }

  #failAll(err: unknown): void {
    for (const waiter of [...this.#waiters]) waiter.fail(err);
  }

  #freeEntry(): Entry<C> | undefined {
    return this.#entries.find(({ connection, open }) => open < connection.maxStreams());
  }
  /** Serves waiters from free streams and dials a connection for the rest. */

  #pump(): void {
    for (const waiter of this.#waiters) {
      const entry = this.#freeEntry();
      if (entry === undefined) break;
      waiter.serve(entry);
    }
    // A server that accepts no streams on an unused connection would accept none on another one either.
    const takesNone = this.#entries.some(({ open }) => open === 0);
    if (this.#waiters.size > 0 && !this.#dialling && !this.#closed && !takesNone && this.#entries.length < this.#maxConnections)
      void this.#dial();
  }

  async #dial(): Promise<void> {
    this.#dialling = true;
    const mine = this.#generation;
    let entry: Entry<C> | undefined;
    let usable = true;
    const leave = (): void => {
      usable = false;
      if (entry !== undefined) this.#drain(entry);
    };
    try {
      const connection = await this.#dialConnection({
        changed: () => this.#pump(),
        draining: () => {
          leave();
          this.#pump();
        },
        ended: () => {
          leave();
          if (entry !== undefined && this.#connections.delete(entry.connection)) this.#observer?.connections(-1);
          this.#pump();
        },
      });
      this.#dialling = false;
      if (this.#closed) return connection.destroy();
      if (!usable) {
        connection.close();
        return this.#failAll(new NotProcessed("the connection was closed before the request was sent"));
      }
      entry = { connection, open: 0, idle: undefined };
      this.#connections.add(connection);
      this.#observer?.connections(1);
      if (mine === this.#generation) this.#entries.push(entry);
      else connection.close(); // dialled with outdated credentials
      this.#pump();
    } catch (err) {
      this.#dialling = false;
      if (mine === this.#generation) this.#failAll(err);
      else this.#pump();
    }
  }

  #wait(signal: AbortSignal | undefined): Promise<StreamLease<C>> {
    return new Promise((resolve, reject) => {
      const since = this.#clock.monotonic();
      const done = (): void => {
        this.#waiters.delete(waiter);
        timer.cancel();
        signal?.removeEventListener("abort", onAbort);
        this.#observer?.waiting(-1);
        this.#observer?.waited(this.#clock.monotonic() - since);
      };
      const waiter: Waiter<C> = {
        serve: (entry) => {
          done();
          resolve(this.#take(entry));
        },
        fail(err) {
          done();
          reject(err);
        },
      };
      const onAbort = (): void => waiter.fail(signal?.reason);
      const timer = this.#clock.after(this.#waitMs, () =>
        waiter.fail(new StreamTimeout(`no connection to the server had a free stream for ${this.#waitMs / 1000} s`)),
      );
      signal?.addEventListener("abort", onAbort, { once: true });
      this.#waiters.add(waiter);
      this.#observer?.waiting(1);
      this.#pump();
    });
  }

  async acquire(signal?: AbortSignal): Promise<StreamLease<C>> {
    if (this.#closed) throw new Error("the client is closed");
    signal?.throwIfAborted();
    const entry = this.#waiters.size === 0 ? this.#freeEntry() : undefined;
    return entry === undefined ? this.#wait(signal) : this.#take(entry);
  }

  renew(): void {
    this.#generation++;
    for (const entry of this.#entries) {
      entry.idle?.cancel();
      entry.connection.close();
    }
    this.#entries = [];
    this.#pump(); // the limit of connections held waiters back; now others may be dialled
  }

  close(): void {
    this.#closed = true;
    for (const entry of this.#entries) entry.idle?.cancel();
    this.#entries = [];
    this.#failAll(new Error("the client is closed"));
    for (const connection of this.#connections) {
      connection.destroy();
      this.#observer?.connections(-1);
    }
    this.#connections.clear();
  }
}

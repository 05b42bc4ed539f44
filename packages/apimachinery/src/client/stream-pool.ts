import type { Clock, Timer } from "../clock/clock.ts";
import { NotProcessed, StreamTimeout } from "./transport-errors.ts";

/** One connection of a pool. */
export interface PooledConnection {
  /** How many streams it takes at the same time now; 0 when it takes no more. */
  maxStreams(): number;
  /** Lets open streams finish. */
  close(): void;
  destroy(): void;
}

/** What a connection tells its pool. */
export interface PoolEvents {
  /** `maxStreams` is another one. */
  readonly changed: () => void;
  /** No new streams; open ones go on. */
  readonly draining: () => void;
  readonly ended: () => void;
}

/** Told of requests that had to wait for a stream or a connection, and of connections, for metrics. */
export interface PoolObserver {
  /** @param change 1 when a request begins to wait, -1 when it no longer does */
  waiting(change: 1 | -1): void;
  waited(ms: number): void;
  /** @param change 1 when one was opened, -1 when it has ended */
  connections(change: 1 | -1): void;
}

export interface StreamLease<C> {
  readonly connection: C;
  /** To be called once, when the stream is closed. */
  release(): void;
}

export interface StreamPool<C> {
  /**
   * A free stream of the oldest connection that has one; another connection is opened where none has. Who waits is served
   * in order.
   * @throws the signal's reason; the error of the dial; StreamTimeout after `waitMs`
   */
  acquire(signal?: AbortSignal): Promise<StreamLease<C>>;
  /** New requests get new connections; open ones finish on the old. */
  renew(): void;
  close(): void;
}

export interface StreamPoolOptions<C> {
  /** Resolves when `maxStreams` is known. */
  readonly dial: (events: PoolEvents) => Promise<C>;
  readonly clock: Clock;
  readonly observer?: PoolObserver | undefined;
  /** Most connections that take new streams; who finds all of them full waits. */
  readonly maxConnections?: number;
  /** A connection besides the first is closed when it had no stream for so long. */
  readonly idleMs?: number;
  /** Longest wait for a stream of a request that has no deadline of its own. */
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
 * Connections of one server, as many as the streams that are open at the same time need: a server bounds the streams of a
 * connection (250 as a rule), and a client's watches alone may be more.
 * Source: golang.org/x/net/http2 transport.go, clientConnPool with StrictMaxConcurrentStreams false; IdleConnTimeout of 90 s
 */
export function newStreamPool<C extends PooledConnection>(options: StreamPoolOptions<C>): StreamPool<C> {
  const { clock, observer, maxConnections = 64, idleMs = 90_000, waitMs = 60_000 } = options;
  /** Those that take new streams, oldest first. */
  let entries: Entry<C>[] = [];
  /** Those that finish what is open, too. */
  const connections = new Set<C>();
  const waiters = new Set<Waiter<C>>();
  let dialling = false;
  let generation = 0;
  let closed = false;

  const take = (entry: Entry<C>): StreamLease<C> => {
    entry.idle?.cancel();
    entry.idle = undefined;
    entry.open++;
    return { connection: entry.connection, release: () => released(entry) };
  };
  const released = (entry: Entry<C>): void => {
    entry.open--;
    if (entry.open === 0 && entries.length > 1 && entries.includes(entry)) entry.idle = clock.after(idleMs, () => retire(entry));
    pump();
  };
  /** Takes no new streams. */
  const drain = (entry: Entry<C>): void => {
    entry.idle?.cancel();
    entries = entries.filter((one) => one !== entry);
  };
  const retire = (entry: Entry<C>): void => {
    if (entry.open > 0 || entries.length <= 1) return;
    drain(entry);
    entry.connection.close();
  };
  const failAll = (err: unknown): void => {
    for (const waiter of [...waiters]) waiter.fail(err);
  };
  const freeEntry = (): Entry<C> | undefined => entries.find(({ connection, open }) => open < connection.maxStreams());
  /** Serves who waits; opens a connection for the rest. */
  const pump = (): void => {
    for (const waiter of waiters) {
      const entry = freeEntry();
      if (entry === undefined) break;
      waiter.serve(entry);
    }
    // A server that takes no streams on a connection without any takes none on the next one either.
    const takesNone = entries.some(({ open }) => open === 0);
    if (waiters.size > 0 && !dialling && !closed && !takesNone && entries.length < maxConnections) void dial();
  };
  const dial = async (): Promise<void> => {
    dialling = true;
    const mine = generation;
    let entry: Entry<C> | undefined;
    let usable = true;
    const leave = (): void => {
      usable = false;
      if (entry !== undefined) drain(entry);
    };
    try {
      const connection = await options.dial({
        changed: () => pump(),
        draining() {
          leave();
          pump();
        },
        ended() {
          leave();
          if (entry !== undefined && connections.delete(entry.connection)) observer?.connections(-1);
          pump();
        },
      });
      dialling = false;
      if (closed) return connection.destroy();
      if (!usable) {
        connection.close();
        return failAll(new NotProcessed("the connection was closed before the request was sent"));
      }
      entry = { connection, open: 0, idle: undefined };
      connections.add(connection);
      observer?.connections(1);
      if (mine === generation) entries.push(entry);
      else connection.close(); // with credentials that are old by now
      pump();
    } catch (err) {
      dialling = false;
      if (mine === generation) failAll(err);
      else pump();
    }
  };
  const wait = (signal: AbortSignal | undefined): Promise<StreamLease<C>> =>
    new Promise((resolve, reject) => {
      const since = clock.monotonic();
      const done = (): void => {
        waiters.delete(waiter);
        timer.cancel();
        signal?.removeEventListener("abort", onAbort);
        observer?.waiting(-1);
        observer?.waited(clock.monotonic() - since);
      };
      const waiter: Waiter<C> = {
        serve(entry) {
          done();
          resolve(take(entry));
        },
        fail(err) {
          done();
          reject(err);
        },
      };
      const onAbort = (): void => waiter.fail(signal?.reason);
      const timer = clock.after(waitMs, () =>
        waiter.fail(new StreamTimeout(`no connection to the server had a free stream for ${waitMs / 1000} s`)),
      );
      signal?.addEventListener("abort", onAbort, { once: true });
      waiters.add(waiter);
      observer?.waiting(1);
      pump();
    });

  return {
    async acquire(signal) {
      if (closed) throw new Error("the client is closed");
      signal?.throwIfAborted();
      const entry = waiters.size === 0 ? freeEntry() : undefined;
      return entry === undefined ? wait(signal) : take(entry);
    },
    renew() {
      generation++;
      for (const entry of entries) {
        entry.idle?.cancel();
        entry.connection.close();
      }
      entries = [];
    },
    close() {
      closed = true;
      entries = [];
      failAll(new Error("the client is closed"));
      for (const connection of connections) {
        connection.destroy();
        observer?.connections(-1);
      }
      connections.clear();
    },
  };
}

import type { Clock, Timer } from "../clock/clock.ts";
import { NotProcessed, StreamTimeout } from "./transport-errors.ts";

/** One connection of a pool. */
export interface PooledConnection {
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

export interface StreamPool<C> {
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
export function newStreamPool<C extends PooledConnection>(options: StreamPoolOptions<C>): StreamPool<C> {
  const { clock, observer, maxConnections = 64, idleMs = 90_000, waitMs = 60_000 } = options;
  /** Connections that accept new streams, oldest first. */
  let entries: Entry<C>[] = [];
  /** All connections, including those that only finish open streams. */
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
  /** Excludes a connection from new streams. */
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
  /** Serves waiters from free streams and dials a connection for the rest. */
  const pump = (): void => {
    for (const waiter of waiters) {
      const entry = freeEntry();
      if (entry === undefined) break;
      waiter.serve(entry);
    }
    // A server that accepts no streams on an unused connection would accept none on another one either.
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
      else connection.close(); // dialled with outdated credentials
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
      pump(); // the limit of connections held waiters back; now others may be dialled
    },
    close() {
      closed = true;
      for (const entry of entries) entry.idle?.cancel();
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

import assert from "node:assert/strict";
import { getEventListeners } from "node:events";
import { test } from "node:test";
import { type FakeClock, newFakeClock } from "../process/clock/fake-clock.ts";
import { settle } from "../testing/wait-for.ts";
import { newStreamPool, type PoolEvents, type StreamLease, type StreamPoolOptions } from "./stream-pool.ts";
import { NotProcessed, StreamTimeout } from "./transport-errors.ts";

interface Fake {
  max: number;
  readonly events: PoolEvents;
  closed: boolean;
  destroyed: boolean;
  maxStreams(): number;
  close(): void;
  destroy(): void;
}

interface World {
  readonly clock: FakeClock;
  readonly pool: ReturnType<typeof newStreamPool<Fake>>;
  /** Dialled connections, in order. */
  readonly dialled: Fake[];
  /** When set, dials wait here; each entry completes one, optionally with an error. */
  held: ((answer?: Error) => void)[] | undefined;
  readonly counts: { waiting: number; connections: number; waits: number[] };
}

function newWorld(max: number, options: Partial<StreamPoolOptions<Fake>> = {}): World {
  const clock = newFakeClock();
  const dialled: Fake[] = [];
  const counts: World["counts"] = { waiting: 0, connections: 0, waits: [] };
  const world = { clock, dialled, held: undefined, counts } as unknown as { -readonly [K in keyof World]: World[K] };
  world.pool = newStreamPool<Fake>({
    async dial(events) {
      if (world.held !== undefined) {
        const answer = await new Promise<Error | undefined>((resolve) => world.held?.push(resolve));
        if (answer !== undefined) throw answer;
      }
      const fake: Fake = {
        max,
        events,
        closed: false,
        destroyed: false,
        maxStreams: () => fake.max,
        close() {
          fake.closed = true;
        },
        destroy() {
          fake.destroyed = true;
        },
      };
      dialled.push(fake);
      return fake;
    },
    clock,
    observer: {
      waiting(change) {
        counts.waiting += change;
      },
      waited: (ms) => void counts.waits.push(ms),
      connections(change) {
        counts.connections += change;
      },
    },
    ...options,
  });
  return world;
}

const take = (world: World, count: number): Promise<StreamLease<Fake>[]> =>
  Promise.all(Array.from({ length: count }, () => world.pool.acquire()));

test("opens as many connections as the open streams need, one dial at a time, the oldest filled first", async () => {
  const world = newWorld(4);
  const leases = await take(world, 10);
  assert.deepEqual(
    world.dialled.map((one) => leases.filter(({ connection }) => connection === one).length),
    [4, 4, 2],
  );
  leases[1]?.release();
  assert.equal((await world.pool.acquire()).connection, world.dialled[0]);
  assert.deepEqual([world.counts.waiting, world.counts.connections], [0, 3]);
});

test("a pool has at most 64 connections", async () => {
  const world = newWorld(1);
  await take(world, 64);
  const last = world.pool.acquire();
  await settle();
  assert.deepEqual([world.dialled.length, world.counts.waiting], [64, 1]);
  world.pool.close();
  await assert.rejects(last);
});

test("a connection that is idle is closed after its time, if it is not the last", async () => {
  const world = newWorld(1, { idleMs: 1000 });
  const leases = await take(world, 3);
  for (const lease of leases) lease.release();
  await world.clock.advance(999);
  assert.deepEqual(
    world.dialled.map(({ closed }) => closed),
    [false, false, false],
  );
  await world.clock.advance(1);
  assert.equal(world.dialled.filter(({ closed }) => closed).length, 2);
  await world.pool.acquire();
  assert.equal(world.dialled.length, 3);
});

test("a connection that is used again in time stays", async () => {
  const world = newWorld(1, { idleMs: 1000 });
  const [, second] = await take(world, 2);
  second?.release();
  await world.clock.advance(900);
  const again = await world.pool.acquire();
  assert.equal(again.connection, world.dialled[1]);
  await world.clock.advance(5000);
  assert.equal(world.dialled[1]?.closed, false);
});

test("the idle timeout of a connection restarts after each use", async () => {
  const world = newWorld(1, { idleMs: 1000 });
  const [, second] = await take(world, 2);
  second?.release();
  await world.clock.advance(900);
  (await world.pool.acquire()).release();
  await world.clock.advance(999);
  assert.equal(world.dialled[1]?.closed, false);
  await world.clock.advance(1);
  assert.equal(world.dialled[1]?.closed, true);
});

test("requests that wait for a stream are served in FIFO order", async () => {
  const world = newWorld(1, { maxConnections: 1 });
  const first = await world.pool.acquire();
  const served: number[] = [];
  const second = world.pool.acquire().then((lease) => {
    served.push(2);
    return lease;
  });
  void world.pool.acquire().then(() => served.push(3));
  await settle();
  assert.deepEqual([served, world.counts.waiting, world.dialled.length], [[], 2, 1]);
  await world.clock.advance(250);
  first.release();
  await settle();
  assert.deepEqual(served, [2]);
  (await second).release();
  await settle();
  assert.deepEqual([served, world.counts.waiting], [[2, 3], 0]);
  assert.deepEqual(world.counts.waits.slice(1), [250, 250]);
});

test("a request waits for a stream until its signal aborts, or a minute; the next one takes its place", async () => {
  const world = newWorld(1, { maxConnections: 1 });
  const first = await world.pool.acquire();
  const abort = new AbortController();
  const aborted = assert.rejects(world.pool.acquire(abort.signal), /^Error: too late$/);
  const timedOut = assert.rejects(world.pool.acquire(), StreamTimeout);
  abort.abort(new Error("too late"));
  await aborted;
  await world.clock.advance(59_999);
  assert.equal(world.counts.waiting, 1);
  await world.clock.advance(1);
  await timedOut;
  const next = world.pool.acquire();
  first.release();
  await next;
  assert.equal(world.counts.waiting, 0);
  await assert.rejects(world.pool.acquire(abort.signal), /too late/);
});

test("a server that allows no streams is not dialled repeatedly", async () => {
  const world = newWorld(0);
  const lease = world.pool.acquire();
  await settle();
  assert.equal(world.dialled.length, 1);
  const [only] = world.dialled as [Fake];
  only.max = 1;
  only.events.changed();
  assert.equal((await lease).connection, only);
});

test("one of several servers closes: its streams end normally, new ones use another connection", async () => {
  const world = newWorld(2);
  const leases = await take(world, 4);
  const [first, second] = world.dialled as [Fake, Fake];
  first.events.draining();
  leases[0]?.release();
  const waiting = await world.pool.acquire();
  assert.notEqual(waiting.connection, first);
  assert.notEqual(waiting.connection, second);
  assert.equal(world.counts.connections, 3);
  first.events.ended();
  first.events.ended();
  assert.equal(world.counts.connections, 2);
});

test("a dial that fails fails those who wait for it, and the next request dials again", async () => {
  const world = newWorld(1);
  world.held = [];
  const failing = Promise.allSettled([world.pool.acquire(), world.pool.acquire()]);
  await settle();
  assert.equal(world.held.length, 1);
  world.held[0]?.(new Error("refused"));
  for (const result of await failing) assert.match(String((result as PromiseRejectedResult).reason), /refused/);
  world.held = undefined;
  await world.pool.acquire();
  assert.equal(world.dialled.length, 1);
});

test("a connection lost while dialling is closed, and counts as unprocessed: the request may be repeated", async () => {
  const world = newWorld(1);
  let closes = 0;
  const close = () => void closes++;
  const pool = newStreamPool<Fake>({
    clock: world.clock,
    async dial(events) {
      events.ended();
      return { max: 1, maxStreams: () => 1, close, destroy() {}, events, closed: false, destroyed: false };
    },
  });
  await assert.rejects(pool.acquire(), NotProcessed);
  assert.equal(closes, 1);
});

test("renewed while it dials: that connection is closed unused, and waiting requests get the next", async () => {
  const world = newWorld(1);
  world.held = [];
  const lease = world.pool.acquire();
  await settle();
  world.pool.renew();
  const [first] = world.held as [(answer?: Error) => void];
  world.held = undefined;
  first();
  assert.equal((await lease).connection, world.dialled[1]);
  assert.deepEqual([world.dialled[0]?.closed, world.dialled[1]?.closed], [true, false]);
});

test("renewed: open streams stay on the old connection, new ones go to a new one", async () => {
  const world = newWorld(5);
  const old = await world.pool.acquire();
  world.pool.renew();
  const next = await world.pool.acquire();
  assert.notEqual(next.connection, old.connection);
  assert.deepEqual([old.connection.closed, old.connection.destroyed], [true, false]);
  old.release();
  assert.equal((await world.pool.acquire()).connection, next.connection);
});

test("renewed: a request that waits for a stream of a full pool gets one of the new connection", async () => {
  const world = newWorld(1, { maxConnections: 1 });
  const old = await world.pool.acquire();
  const waiting = world.pool.acquire();
  await settle();
  assert.deepEqual([world.counts.waiting, world.dialled.length], [1, 1]);
  world.pool.renew();
  assert.notEqual((await waiting).connection, old.connection);
  assert.deepEqual([world.counts.waiting, world.clock.waiting], [0, 0]);
});

test("only a connection without streams counts as idle, and never the last one", async () => {
  const world = newWorld(2);
  const [first, second, third] = await take(world, 3);
  first?.release();
  assert.equal(world.clock.waiting, 0, "the second stream of the connection is open");
  second?.release();
  assert.equal(world.clock.waiting, 1);
  await world.clock.advance(90_000);
  assert.deepEqual(
    world.dialled.map(({ closed }) => closed),
    [true, false],
  );
  third?.release();
  assert.equal(world.clock.waiting, 0);
});

for (const end of ["close", "renew"] as const) {
  test(`${end}: no timer of an idle connection is left`, async () => {
    const world = newWorld(1);
    const [, second] = await take(world, 2);
    second?.release();
    assert.equal(world.clock.waiting, 1);
    world.pool[end]();
    assert.equal(world.clock.waiting, 0);
  });
}

test("closed: all streams end, waiting and new requests are refused", async () => {
  const world = newWorld(1, { maxConnections: 1 });
  await world.pool.acquire();
  const waiting = assert.rejects(world.pool.acquire(), /the client is closed/);
  world.pool.close();
  await waiting;
  await assert.rejects(world.pool.acquire(), /the client is closed/);
  assert.equal(world.dialled[0]?.destroyed, true);
  assert.equal(world.counts.connections, 0);
});

test("closed while it dials: that connection is destroyed", async () => {
  const world = newWorld(1);
  world.held = [];
  const refused = assert.rejects(world.pool.acquire(), /the client is closed/);
  await settle();
  world.pool.close();
  await refused;
  world.held[0]?.();
  await settle();
  assert.equal(world.dialled[0]?.destroyed, true);
  assert.equal(world.counts.connections, 0);
});

test("renewed while it dials: a failure of that dial fails no caller, waiting calls get the next connection", async () => {
  const world = newWorld(1);
  world.held = [];
  const lease = world.pool.acquire();
  await settle();
  world.pool.renew();
  const [first] = world.held as [(answer?: Error) => void];
  world.held = undefined;
  first(new Error("refused: the certificate is out of date"));
  assert.equal((await lease).connection, world.dialled[0]);
  assert.equal(world.counts.waiting, 0);
});

test("a draining connection is replaced by another one for waiting requests", async () => {
  const world = newWorld(1, { maxConnections: 1 });
  await world.pool.acquire();
  const waiting = world.pool.acquire();
  await settle();
  assert.equal(world.dialled.length, 1);
  world.dialled[0]?.events.draining();
  assert.equal((await waiting).connection, world.dialled[1]);
});

test("a new request does not overtake waiting ones after the stream limit was raised", async () => {
  const world = newWorld(1, { maxConnections: 1 });
  await world.pool.acquire();
  const served: number[] = [];
  const [only] = world.dialled as [Fake];
  void world.pool.acquire().then(() => served.push(2));
  await settle();
  only.max = 2;
  void world.pool.acquire().then(() => served.push(3));
  await settle();
  assert.deepEqual(served, [2]);
});

test("a connection that drains while idle leaves no timer, a served request no listener on its signal", async () => {
  const world = newWorld(1, { maxConnections: 2 });
  const leases = await take(world, 2);
  const { signal } = new AbortController();
  const waiting = world.pool.acquire(signal);
  leases[1]?.release();
  const served = await waiting;
  assert.equal(getEventListeners(signal, "abort").length, 0);
  served.release();
  assert.equal(world.clock.waiting, 1);
  world.dialled[1]?.events.draining();
  assert.equal(world.clock.waiting, 0);
});

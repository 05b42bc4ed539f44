/** The connections to one etcd cluster over a client whose watch streams the test feeds. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { newFakeClock } from "@coxswain/apimachinery/process/clock/fake-clock";
import { discardLogger } from "@coxswain/apimachinery/process/logging/logger";
import { settle } from "@coxswain/apimachinery/testing/wait-for";
import protobuf from "protobufjs/minimal.js";
import { openCluster } from "./cluster.ts";
import type { EtcdClient, WatchHandlers } from "./etcd/client.ts";
import { EtcdError } from "./etcd/errors.ts";

interface Change {
  readonly key: string;
  readonly revision: number;
  /** Revision of the creation; default: this one. */
  readonly created?: number;
  /** Revision of the state before, when etcd still has it. */
  readonly before?: number;
}

const bytes = (field: number): number => (field << 3) | 2;
const varint = (field: number): number => field << 3;

function keyValue(writer: protobuf.Writer, field: number, key: string, revision: number, created: number): void {
  writer.uint32(bytes(field)).fork();
  writer.uint32(bytes(1)).string(key).uint32(varint(2)).int64(created).uint32(varint(3)).int64(revision);
  writer
    .uint32(bytes(5))
    .bytes(Buffer.from(`at ${revision}`))
    .ldelim();
}

/** Encodes a WatchResponse (rpc.proto) with puts. */
function events(...changes: Change[]): Buffer {
  const writer = protobuf.Writer.create();
  for (const { key, revision, created = revision, before } of changes) {
    writer.uint32(bytes(11)).fork();
    keyValue(writer, 2, `/registry/${key}`, revision, created);
    if (before !== undefined) keyValue(writer, 3, `/registry/${key}`, before, created);
    writer.ldelim();
  }
  return Buffer.from(writer.finish());
}

const created = Buffer.from(protobuf.Writer.create().uint32(varint(3)).bool(true).finish());
const compacted = (at: number): Buffer =>
  Buffer.from(protobuf.Writer.create().uint32(varint(4)).bool(true).uint32(varint(5)).int64(at).finish());

/** A cluster that begins with a barrier at revision 10. */
async function aCluster(compactionIntervalMs: number | undefined = 0) {
  const streams: { readonly handlers: WatchHandlers; isCanceled: boolean }[] = [];
  const state = { revision: 10, canWrite: true, lookedUp: [] as string[], compactions: 0, isClosed: false };
  const client: Partial<EtcdClient> = {
    servers: ["http://192.0.2.1:2379"],
    async put() {
      if (!state.canWrite) throw new EtcdError("no-space", "no space");
      return state.revision;
    },
    async range({ key, revision }) {
      if (revision !== undefined) state.lookedUp.push(`${key} at ${revision}`);
      if ((revision ?? 0) > state.revision) throw new EtcdError("future-revision", "future");
      return { revision: state.revision, kvs: [], more: false, count: 0 };
    },
    async txn() {
      state.compactions++;
      return { succeeded: false, revision: 10, ranges: [] };
    },
    members: async () => [],
    openWatch(_failed, handlers) {
      const stream = { handlers, isCanceled: false };
      streams.push(stream);
      return {
        server: 0,
        write() {},
        cancel() {
          stream.isCanceled = true;
        },
      };
    },
    close() {
      state.isClosed = true;
    },
  };
  const clock = newFakeClock();
  const cluster = openCluster(["http://192.0.2.1:2379"], "/registry", {
    etcd: { servers: [], client: () => client as EtcdClient, compactionIntervalMs },
    clock,
    log: discardLogger,
  });
  await cluster.multiplexer.start();
  const past: string[] = [];
  cluster.multiplexer.attach("pods", {
    apply() {},
    reset: () => void past.push("reset"),
    past: (after, changes) =>
      void past.push(
        `after ${after}`,
        ...changes.map(({ key, value, revision, previous }) => `${key} ${revision}: ${value}, before: ${previous?.value ?? "-"}`),
      ),
  });
  const breaks = async (stream: number): Promise<void> => {
    streams[stream]?.handlers.ended(new EtcdError("unavailable", "lost"));
    await clock.advance(50);
  };
  return { cluster, clock, streams, state, past, breaks };
}

test("history is compacted at the interval that is set, and not after the cluster is stopped", async () => {
  const { cluster, clock, state } = await aCluster(60_000);
  await clock.advance(59_999);
  assert.equal(state.compactions, 0);
  await clock.advance(1);
  assert.equal(state.compactions, 1);
  cluster.stop();
  await clock.advance(600_000);
  assert.equal(state.compactions, 1);
});

const barrier = { key: "coxswain-barrier", revision: 10 };

test("the past ends with the barrier, though etcd sends later changes with it", async () => {
  const { cluster, clock, streams, past } = await aCluster();
  const waiting = clock.waiting;
  const replayed = cluster.multiplexer.replayPast(5);
  await settle();
  streams[1]?.handlers.message(
    events({ key: "pods/a/x", revision: 6 }, { key: "pods/a/x", revision: 8, created: 6, before: 6 }, barrier, {
      key: "pods/a/late",
      revision: 11,
    }),
  );
  await replayed;
  assert.deepEqual(past, ["after 5", "a/x 6: at 6, before: -", "a/x 8: at 8, before: at 6"]);
  assert.deepEqual([streams[1]?.isCanceled, streams[0]?.isCanceled, clock.waiting], [true, false, waiting]);
  cluster.stop();
});

test("of the past only what follows a change whose state before was compacted is used", async () => {
  const { cluster, streams, past } = await aCluster();
  const replayed = cluster.multiplexer.replayPast(5);
  await settle();
  streams[1]?.handlers.message(
    events(
      { key: "pods/a/x", revision: 6 },
      { key: "pods/a/y", revision: 7, created: 2 },
      { key: "pods/a/z", revision: 8 },
      barrier,
    ),
  );
  await replayed;
  assert.deepEqual(past, ["after 7", "a/z 8: at 8, before: -"]);
  cluster.stop();
});

test("the past begins where etcd was compacted, and is empty when that is the barrier", async () => {
  for (const { at, want } of [
    { at: 7, want: ["after 7", "a/z 8: at 8, before: -"] },
    { at: 10, want: ["after 10"] },
  ]) {
    const { cluster, streams, past } = await aCluster();
    const replayed = cluster.multiplexer.replayPast(5);
    await settle();
    streams[1]?.handlers.message(compacted(at));
    streams[2]?.handlers.message(events({ key: "pods/a/z", revision: 8 }, barrier));
    await replayed;
    assert.deepEqual(past, want);
    cluster.stop();
  }
});

test("a past that etcd does not send is given up after three seconds, and its stream with it", async () => {
  const { cluster, clock, streams, past } = await aCluster();
  const replayed = assert.rejects(
    cluster.multiplexer.replayPast(5),
    /did not send the changes of \/registry\/ up to revision 10/,
  );
  await settle();
  streams[1]?.handlers.message(events({ key: "pods/a/x", revision: 6 }));
  await clock.advance(2_999);
  assert.equal(streams[1]?.isCanceled, false);
  await clock.advance(1);
  await replayed;
  assert.deepEqual([streams[1]?.isCanceled, past], [true, []]);
  cluster.stop();
});

test("an etcd that has lost the barrier is of another history, also before the first event", async () => {
  const { cluster, streams, state, past, breaks } = await aCluster();
  state.revision = 9;
  await breaks(0);
  streams[1]?.handlers.message(created);
  await settle();
  assert.deepEqual([state.lookedUp, past], [["/registry/coxswain-barrier at 10"], ["reset"]]);
  cluster.stop();
});

test("a watch that begins elsewhere than at the last barrier is not held to that barrier", async () => {
  const { cluster, streams, state, breaks } = await aCluster();
  Object.assign(state, { revision: 15, canWrite: false });
  streams[0]?.handlers.message(compacted(12)); // the watch begins again, after the present revision
  await settle();
  await breaks(1);
  streams[2]?.handlers.message(created);
  await settle();
  assert.deepEqual([streams.length, state.lookedUp], [3, []]);
  cluster.stop();
});

test("a stopped cluster has no stream, no timer and no connection", async () => {
  const { cluster, clock, streams, state } = await aCluster();
  streams[0]?.handlers.message(created); // the versions of the members are queried, and again later
  await settle();
  assert.ok(clock.waiting > 0);
  cluster.stop();
  assert.deepEqual([streams[0]?.isCanceled, clock.waiting, state.isClosed], [true, 0, true]);
});

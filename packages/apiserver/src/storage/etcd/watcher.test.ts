import assert from "node:assert/strict";
import { test } from "node:test";
import { newFakeClock } from "@coxswain/apimachinery/process/clock/fake-clock";
import { discardLogger } from "@coxswain/apimachinery/process/logging/logger";
import { settle } from "@coxswain/apimachinery/testing/wait-for";
import protobuf from "protobufjs/minimal.js";
import type { EtcdClient, WatchHandlers } from "./client.ts";
import { EtcdError } from "./errors.ts";
import type { ProgressTrust } from "./progress-trust.ts";
import { type EtcdWatchOptions, startEtcdWatch } from "./watcher.ts";

interface Answer {
  progress?: number;
  events?: number[];
  /** The last event is a deletion. */
  deletes?: boolean;
  fragment?: boolean;
  canceled?: boolean;
  compacted?: number;
  created?: boolean;
}

/** Encodes a WatchResponse (rpc.proto): a progress reply (watch id -1), or events at these revisions. */
function answer({ progress, events = [], deletes, fragment = false, canceled = false, compacted, created }: Answer): Buffer {
  const message = protobuf.Writer.create();
  message
    .uint32((1 << 3) | 2)
    .fork()
    .uint32(3 << 3)
    .int64(progress ?? 0)
    .ldelim();
  message.uint32(2 << 3).int64(progress === undefined ? 0 : -1);
  if (created) message.uint32(3 << 3).bool(true);
  if (canceled) message.uint32(4 << 3).bool(true);
  if (compacted !== undefined) message.uint32(5 << 3).int64(compacted);
  if (fragment) message.uint32(7 << 3).bool(true);
  for (const revision of events) {
    message.uint32((11 << 3) | 2).fork();
    if (deletes && revision === events.at(-1)) message.uint32(1 << 3).int32(1);
    message.uint32((2 << 3) | 2).fork();
    message.uint32((1 << 3) | 2).string(`/registry/pods/web/p${revision}`);
    message.uint32(3 << 3).int64(revision);
    message.ldelim().ldelim();
  }
  return Buffer.from(message.finish());
}

/** Decodes a WatchRequest (rpc.proto): a watch from a revision, or a progress request. */
function requestText(bytes: Buffer): string {
  const reader = protobuf.Reader.create(bytes);
  const kind = reader.uint32() >>> 3;
  const end = reader.uint32() + reader.pos;
  if (kind !== 1) return "progress?";
  while (reader.pos < end) {
    const tag = reader.uint32();
    if (tag >>> 3 === 3) return `watch from ${reader.int64()}`;
    reader.skipType(tag & 7);
  }
  return "watch from the present";
}

/** A watch after revision 10 whose responses the test sends. */
function aWatch(
  busy?: Promise<void>,
  range?: EtcdClient["range"],
  { trusted = true, ...options }: Partial<EtcdWatchOptions> & { trusted?: boolean } = {},
) {
  /** Of all streams, the current one last. */
  const streams: WatchHandlers[] = [];
  const written: Buffer[] = [];
  const clock = newFakeClock();
  const reported: string[] = [];
  let doubts = 0;
  const client: Partial<EtcdClient> = {
    ...(range !== undefined && { range }),
    openWatch(_failed, given) {
      streams.push(given);
      return { server: 0, write: (bytes) => void written.push(Buffer.from(bytes)), cancel: () => void reported.push("canceled") };
    },
  };
  const trust: ProgressTrust = {
    trusted,
    doubt: () => void doubts++,
    check: () => undefined,
    refute: () => void reported.push("refuted"),
    stop: () => undefined,
  };
  const watch = startEtcdWatch({
    client: client as EtcdClient,
    prefix: "/registry/",
    after: 10,
    prevKv: false,
    onEvents(events, revision) {
      reported.push(`${events.map(({ kv }) => kv.modRevision).join()} to ${revision}`);
      return busy;
    },
    onCompacted: () => void reported.push("compacted"),
    onOtherHistory: () => void reported.push("other history"),
    progress: {
      trust,
      onProgress: (revision) => void reported.push(`progress ${revision}`),
      onUntrue: () => void reported.push("untrue"),
    },
    clock,
    log: discardLogger,
    ...options,
  });
  const says = (what: Answer): void => streams.at(-1)?.message(answer(what));
  const breaks = (): void => streams.at(-1)?.ended(new EtcdError("unavailable", "lost"));
  const asks = (): string[] => written.splice(0).map(requestText);
  return { watch, reported, says, breaks, clock, asks, streams, opened: () => streams.length, doubts: () => doubts };
}

test("progress moves the watch on, and events after it go on as before", () => {
  const { watch, reported, says } = aWatch();
  says({ events: [11] });
  says({ progress: 15 });
  says({ events: [16, 17] });
  says({ events: [17, 18] }); // etcd may repeat events
  assert.deepEqual(reported, ["11 to 11", "progress 15", "16,17 to 17", "18 to 18"]);
  assert.equal(watch.revision, 18);
  watch.stop();
});

test("an event that progress had passed over refutes what etcd said, and ends the watch as a hole does", () => {
  const { reported, says } = aWatch();
  says({ events: [11] });
  says({ progress: 15 });
  says({ events: [14, 16] });
  says({ events: [17] });
  assert.deepEqual(reported, ["11 to 11", "progress 15", "canceled", "refuted", "untrue"]);
});

test("progress within the parts of an answer says nothing of them", () => {
  const { reported, says, watch } = aWatch();
  says({ events: [11, 12], fragment: true });
  says({ progress: 13 });
  says({ events: [13] });
  assert.deepEqual(reported, ["11,12,13 to 13"]);
  watch.stop();
});

test("events still queued from a broken stream are delivered and do not break the next stream", async () => {
  const busy = Promise.withResolvers<void>();
  const { watch, reported, says, breaks, clock, opened } = aWatch(busy.promise);
  says({ events: [11] });
  says({ events: [12] });
  says({ canceled: true });
  breaks();
  busy.resolve();
  await clock.advance(5_000);
  assert.deepEqual([reported, opened()], [["11 to 11", "canceled", "12 to 12"], 2]);
  watch.stop();
});

test("a lost stream resumes after its last event, and repeated events are reported once", async () => {
  const { watch, reported, says, breaks, clock, asks } = aWatch();
  says({ events: [11, 12] });
  breaks();
  await clock.advance(5_000);
  assert.deepEqual(asks(), ["watch from 10", "watch from 12"]);
  says({ events: [11, 12, 13] });
  says({ events: [13] });
  assert.deepEqual(
    reported.filter((one) => one !== "canceled"),
    ["11,12 to 12", "13 to 13"],
  );
  watch.stop();
});

test("parts of an answer that a lost stream began are forgotten with it", async () => {
  const { watch, reported, says, breaks, clock } = aWatch();
  says({ events: [11], fragment: true });
  breaks();
  await clock.advance(5_000);
  says({ events: [11, 12] });
  assert.deepEqual(
    reported.filter((one) => one !== "canceled"),
    ["11,12 to 12"],
  );
  watch.stop();
});

test("events that waited behind a busy reader when the stream was lost are reported once, though etcd repeats them", async () => {
  const busy = Promise.withResolvers<void>();
  const { watch, reported, says, breaks, clock } = aWatch(busy.promise);
  says({ events: [11] });
  says({ events: [12] });
  breaks();
  await clock.advance(5_000);
  says({ events: [12, 13] });
  busy.resolve();
  await clock.advance(0);
  const events = reported.filter((one) => one !== "canceled").flatMap((one) => one.split(" ")[0]?.split(",") ?? []);
  assert.deepEqual(events, ["11", "12", "13"]);
  watch.stop();
});

test("parts of an answer that waited behind a busy reader when the stream was lost are forgotten with it", async () => {
  let release = (): void => undefined;
  const busy = new Promise<void>((resolve) => {
    release = resolve;
  });
  const { reported, says, breaks, clock } = aWatch(busy);
  says({ events: [11] });
  says({ events: [12], fragment: true });
  breaks();
  await clock.advance(50);
  says({ events: [12, 12] });
  says({ events: [13] });
  release();
  await settle();
  assert.deepEqual(reported.splice(0), ["11 to 11", "canceled", "12,12 to 12", "13 to 13"]);
});

test("trust in progress replies is withdrawn when the next stream is opened", async () => {
  const { watch, breaks, clock, doubts } = aWatch();
  const before = doubts();
  breaks();
  await clock.advance(50);
  assert.equal(doubts(), before + 1);
  watch.stop();
});

test("a compacted revision ends the watch: it is reported once and nothing is opened again", async () => {
  const { reported, says, breaks, clock, opened } = aWatch();
  says({ canceled: true, compacted: 20 });
  breaks();
  says({ events: [21] });
  await clock.advance(60_000);
  assert.deepEqual([reported, opened()], [["canceled", "compacted"], 1]);
});

test("a watch that etcd cancels for another reason is opened again", async () => {
  const { watch, reported, says, clock, opened } = aWatch();
  says({ canceled: true });
  await clock.advance(5_000);
  says({ events: [11] });
  assert.equal(opened(), 2);
  assert.ok(reported.includes("11 to 11") && !reported.includes("compacted"), reported.join());
  watch.stop();
});

test("a watch that was stopped hears nothing more, opens nothing more, and takes back its stream once", async () => {
  const { watch, reported, says, breaks, clock, opened } = aWatch();
  watch.stop();
  watch.stop();
  says({ events: [11] });
  breaks();
  assert.equal(clock.waiting, 0);
  await clock.advance(60_000);
  assert.deepEqual([reported, opened()], [["canceled"], 1]);
  const lost = aWatch();
  lost.breaks();
  lost.watch.stop(); // during the backoff before the reconnect
  assert.equal(lost.clock.waiting, 0, "no timer is left");
  await lost.clock.advance(60_000);
  assert.equal(lost.opened(), 1);
});

test("events that waited behind a busy reader when the watch was stopped are not delivered", async () => {
  const busy = Promise.withResolvers<void>();
  const { watch, reported, says } = aWatch(busy.promise);
  says({ events: [11] });
  says({ events: [12] });
  watch.stop();
  busy.resolve();
  await settle();
  assert.deepEqual(reported, ["11 to 11", "canceled"]);
});

test("streams that are lost one after the other are opened ever more slowly, until an event comes", async () => {
  const { watch, says, breaks, clock, opened } = aWatch();
  const openedWithin = async (ms: number): Promise<boolean> => {
    const before = opened();
    breaks();
    await clock.advance(ms);
    return opened() > before;
  };
  assert.equal(await openedWithin(50), true);
  assert.equal(await openedWithin(50), false);
  await clock.advance(50);
  for (let i = 0; i < 10; i++) assert.equal(await openedWithin(2_000), true);
  assert.equal(await openedWithin(1_000), false);
  await clock.advance(1_000);
  says({ events: [11] });
  assert.equal(await openedWithin(50), true);
  watch.stop();
});

test("a silent stream is queried once; it stays when it answers, and is replaced when it does not", async () => {
  const { watch, says, clock, asks, opened } = aWatch();
  asks();
  await clock.advance(10_000);
  assert.deepEqual(asks(), ["progress?"]);
  says({ progress: 10 });
  await clock.advance(10_000);
  assert.deepEqual([asks(), opened()], [["progress?"], 1]);
  await clock.advance(10_000);
  await clock.advance(100);
  assert.deepEqual([asks(), opened()], [["watch from 10"], 2]);
  watch.stop();
});

test("a stream opened after a silent one is given its own time before it is queried, and before it is replaced", async () => {
  const { watch, clock, asks, opened } = aWatch();
  await clock.advance(20_100); // queried, and replaced
  assert.deepEqual([asks(), opened()], [["watch from 10", "progress?", "watch from 10"], 2]);
  await clock.advance(9_900); // the next check of the watchdog, when the stream has been silent for 9,950 ms
  assert.deepEqual([asks(), opened()], [[], 2]);
  await clock.advance(10_000);
  assert.deepEqual([asks(), opened()], [["progress?"], 2]);
  await clock.advance(10_100);
  assert.equal(opened(), 3);
  watch.stop();
});

const none = Buffer.alloc(0);
for (const { name, kvs, error, want } of [
  { name: "still there", kvs: [{ modRevision: 12, value: none }], want: [] },
  { name: "compacted", error: new EtcdError("compacted", "compacted"), want: [] },
  { name: "not answered for", error: new EtcdError("unavailable", "lost"), want: [] },
  { name: "of another revision", kvs: [{ modRevision: 9, value: none }], want: ["other history"] },
  { name: "of another value", kvs: [{ modRevision: 12, value: Buffer.from("1") }], want: ["other history"] },
  { name: "not there", kvs: [], want: ["other history"] },
  { name: "of the future", error: new EtcdError("future-revision", "future"), want: ["other history"] },
]) {
  test(`after a reconnect the last event that was reported is looked up: ${name}`, async () => {
    const requests: string[] = [];
    const { watch, reported, says, breaks, clock } = aWatch(undefined, async ({ key, revision }) => {
      requests.push(`${key} at ${revision}`);
      if (error !== undefined) throw error;
      return { revision: 20, count: 1, more: false, kvs: kvs as never };
    });
    says({ created: true });
    says({ events: [11, 12] });
    breaks();
    await clock.advance(5_000);
    says({ created: true });
    await settle();
    assert.deepEqual(requests, ["/registry/pods/web/p12 at 12"]);
    assert.deepEqual(
      reported.filter((one) => one.startsWith("other")),
      want,
    );
    watch.stop();
  });
}

test("the last event is looked up after each reconnect, in its state of that time", async () => {
  const requests: string[] = [];
  const { watch, reported, says, breaks, clock } = aWatch(undefined, async ({ key, revision = 0 }) => {
    requests.push(key);
    const kvs = revision === 13 ? [] : [{ modRevision: revision, value: none }];
    return { revision: 20, count: 1, more: false, kvs: kvs as never };
  });
  for (const revision of [12, 13]) {
    says({ events: [revision] });
    breaks();
    await clock.advance(5_000);
    says({ created: true });
    await settle();
  }
  assert.deepEqual([requests, reported.at(-1)], [["/registry/pods/web/p12", "/registry/pods/web/p13"], "other history"]);
  watch.stop();
});

test("a watch that was stopped while its history was checked says nothing of it", async () => {
  const answered = Promise.withResolvers<never>();
  const { watch, reported, says, breaks, clock } = aWatch(undefined, () => answered.promise);
  says({ created: true });
  says({ events: [12] });
  breaks();
  await clock.advance(50);
  says({ created: true });
  watch.stop();
  const before = [...reported];
  answered.reject(new EtcdError("future-revision", "future"));
  await settle();
  assert.deepEqual(reported, before);
});

test("a stream that was replaced is no longer heard", async () => {
  const { watch, reported, says, breaks, clock, streams } = aWatch();
  breaks();
  await clock.advance(50);
  streams[0]?.message(answer({ events: [11] }));
  says({ events: [11, 12] });
  assert.deepEqual(reported, ["canceled", "11,12 to 12"]);
  watch.stop();
});

test("a stream with a response that cannot be decoded is replaced, and nothing is left out", async () => {
  const errors: string[] = [];
  const log = { ...discardLogger, error: (message: string) => void errors.push(message) };
  const { watch, reported, says, clock, streams, opened } = aWatch(undefined, undefined, { log });
  streams[0]?.message(Buffer.from([(11 << 3) | 2, 5, (2 << 3) | 2, 127])); // an event that ends early
  says({ events: [11] });
  await clock.advance(50);
  assert.deepEqual([opened(), errors], [2, ["cannot process a response of the etcd watch"]]);
  says({ events: [11] });
  assert.deepEqual(reported, ["canceled", "11 to 11"]);
  watch.stop();
});

test("a watch of everything starts at the first revision, since 0 would mean the present", () => {
  const { watch, asks } = aWatch(undefined, undefined, { after: 0 });
  assert.deepEqual(asks(), ["watch from 1"]);
  watch.stop();
});

test("progress of members that are not trusted is neither requested nor believed", () => {
  const { watch, reported, says, asks } = aWatch(undefined, undefined, { trusted: false });
  asks();
  assert.equal(watch.requestProgress(), false);
  says({ progress: 15 });
  says({ events: [12] });
  assert.deepEqual([asks(), reported], [[], ["12 to 12"]]);
  watch.stop();
});

test("before the first event the write that the watch begins after is looked up", async () => {
  const requests: string[] = [];
  const range: EtcdClient["range"] = async ({ key, revision }) => {
    requests.push(`${key} at ${revision}`);
    return { revision: 20, count: 0, more: false, kvs: [] };
  };
  const witness = { key: "/registry/barrier", revision: 10, value: none };
  const { watch, reported, says, breaks, clock } = aWatch(undefined, range, { witness });
  breaks();
  await clock.advance(50);
  says({ created: true });
  await settle();
  assert.deepEqual([requests, reported.at(-1)], [["/registry/barrier at 10"], "other history"]);
  watch.stop();
});

test("a deletion is not looked up, but the last write before it", async () => {
  const requests: string[] = [];
  const { watch, reported, says, breaks, clock } = aWatch(undefined, async ({ key, revision = 0 }) => {
    requests.push(key);
    return { revision: 20, count: 1, more: false, kvs: [{ modRevision: revision, value: none }] as never };
  });
  says({ events: [11, 12], deletes: true });
  breaks();
  await clock.advance(50);
  says({ created: true });
  await settle();
  assert.deepEqual([requests, reported.includes("other history")], [["/registry/pods/web/p11"], false]);
  watch.stop();
});

test("an interruption is logged once, when it lasts, and the next one again", async () => {
  const warnings: string[] = [];
  const log = { ...discardLogger, warn: (message: string) => void warnings.push(message) };
  const { watch, says, breaks, clock } = aWatch(undefined, undefined, { log });
  const interrupt = async (times: number): Promise<void> => {
    for (let i = 0; i < times; i++) {
      breaks();
      await clock.advance(2_000);
    }
  };
  await interrupt(2);
  assert.equal(warnings.length, 0);
  await interrupt(5);
  assert.equal(warnings.length, 1);
  says({ events: [11] });
  await interrupt(3);
  assert.equal(warnings.length, 2);
  watch.stop();
});

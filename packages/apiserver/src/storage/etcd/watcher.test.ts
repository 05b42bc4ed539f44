import assert from "node:assert/strict";
import { test } from "node:test";
import { newFakeClock } from "@coxswain/apimachinery/clock/fake-clock";
import { discardLogger } from "@coxswain/apimachinery/logging/logger";
import protobuf from "protobufjs/minimal.js";
import type { EtcdClient } from "./client.ts";
import { EtcdError } from "./errors.ts";
import type { GrpcStreamHandlers } from "./grpc.ts";
import type { ProgressTrust } from "./progress-trust.ts";
import { startEtcdWatch } from "./watcher.ts";

interface Answer {
  progress?: number;
  events?: number[];
  fragment?: boolean;
  canceled?: boolean;
}

/** rpc.proto, WatchResponse: what etcd says of progress (watch -1), or events of these revisions. */
function answer({ progress, events = [], fragment = false, canceled = false }: Answer): Buffer {
  const message = protobuf.Writer.create();
  message
    .uint32((1 << 3) | 2)
    .fork()
    .uint32(3 << 3)
    .int64(progress ?? 0)
    .ldelim();
  message.uint32(2 << 3).int64(progress === undefined ? 0 : -1);
  if (canceled) message.uint32(4 << 3).bool(true);
  if (fragment) message.uint32(7 << 3).bool(true);
  for (const revision of events) {
    message.uint32((11 << 3) | 2).fork();
    message.uint32((2 << 3) | 2).fork();
    message.uint32((1 << 3) | 2).string(`/registry/pods/web/p${revision}`);
    message.uint32(3 << 3).int64(revision);
    message.ldelim().ldelim();
  }
  return Buffer.from(message.finish());
}

/** A watch after revision 10 whose answers the test gives. */
function aWatch(busy?: Promise<void>) {
  let handlers: GrpcStreamHandlers | undefined;
  let opened = 0;
  const clock = newFakeClock();
  const told: string[] = [];
  const client: Partial<EtcdClient> = {
    openWatch(_turn, given) {
      handlers = given;
      opened++;
      return { write: () => undefined, cancel: () => undefined };
    },
  };
  const trust: ProgressTrust = {
    trusted: true,
    doubt: () => undefined,
    ask: () => undefined,
    refute: () => void told.push("refuted"),
    stop: () => undefined,
  };
  const watch = startEtcdWatch({
    client: client as EtcdClient,
    prefix: "/registry/",
    after: 10,
    prevKv: false,
    onEvents(events, revision) {
      told.push(`${events.map(({ kv }) => kv.modRevision).join()} to ${revision}`);
      return busy;
    },
    onCompacted: () => void told.push("compacted"),
    progress: {
      trust,
      onProgress: (revision) => void told.push(`progress ${revision}`),
      onUntrue: () => void told.push("untrue"),
    },
    clock,
    log: discardLogger,
  });
  const says = (what: Answer): void => handlers?.message(answer(what));
  const breaks = (): void => handlers?.ended(new EtcdError("unavailable", "lost"));
  return { watch, told, says, breaks, clock, opened: () => opened };
}

test("progress moves the watch on, and events after it go on as before", () => {
  const { watch, told, says } = aWatch();
  says({ events: [11] });
  says({ progress: 15 });
  says({ events: [16, 17] });
  says({ events: [17, 18] }); // etcd may repeat itself
  assert.deepEqual(told, ["11 to 11", "progress 15", "16,17 to 17", "18 to 18"]);
  assert.equal(watch.revision, 18);
  watch.stop();
});

test("an event that progress had passed over refutes what etcd said, and ends the watch as a hole does", () => {
  const { told, says } = aWatch();
  says({ events: [11] });
  says({ progress: 15 });
  says({ events: [14, 16] });
  says({ events: [17] });
  assert.deepEqual(told, ["11 to 11", "progress 15", "refuted", "untrue"]);
});

test("progress within the parts of an answer says nothing of them", () => {
  const { told, says, watch } = aWatch();
  says({ events: [11, 12], fragment: true });
  says({ progress: 13 });
  says({ events: [13] });
  assert.deepEqual(told, ["11,12,13 to 13"]);
  watch.stop();
});

test("what a broken stream left behind is told, and does not break the next one", async () => {
  const busy = Promise.withResolvers<void>();
  const { watch, told, says, breaks, clock, opened } = aWatch(busy.promise);
  says({ events: [11] });
  says({ events: [12] });
  says({ canceled: true });
  breaks();
  busy.resolve();
  await clock.advance(5_000);
  assert.deepEqual([told, opened()], [["11 to 11", "12 to 12"], 2]);
  watch.stop();
});

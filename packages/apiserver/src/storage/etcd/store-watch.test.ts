import assert from "node:assert/strict";
import { test } from "node:test";
import { newFakeClock } from "@coxswain/apimachinery/process/clock/fake-clock";
import { Turns } from "@coxswain/apimachinery/process/event-loop/turns";
import { discardLogger } from "@coxswain/apimachinery/process/logging/logger";
import { settle } from "@coxswain/apimachinery/testing/wait-for";
import protobuf from "protobufjs/minimal.js";
import { newObjectCodec } from "../object-codec.ts";
import { suiteResource, unlimitedEntries } from "../testing.ts";
import type { EtcdClient, WatchHandlers } from "./client.ts";
import { watchStore } from "./store-watch.ts";
import { StoredValues } from "./stored-values.ts";
import { identityTransformer } from "./transformer.ts";

/** A WatchResponse (rpc.proto) with the deletion of a key whose earlier value is compacted. */
function deletion(revision: number): Buffer {
  const message = protobuf.Writer.create();
  message.uint32((11 << 3) | 2).fork();
  message.uint32(1 << 3).int32(1);
  message.uint32((2 << 3) | 2).fork();
  message.uint32((1 << 3) | 2).string("/registry/configmaps/web/a");
  message.uint32(3 << 3).int64(revision);
  message.ldelim().ldelim();
  return Buffer.from(message.finish());
}

test("a deletion whose object was compacted ends the watch with an error, and is not left out", async () => {
  let handlers: WatchHandlers | undefined;
  let isCancelled = false;
  const client: Partial<EtcdClient> = {
    openWatch(_failed, given) {
      handlers = given;
      return {
        server: 0,
        write() {},
        cancel() {
          isCancelled = true;
        },
      };
    },
  };
  const codec = newObjectCodec(suiteResource, "application/json", unlimitedEntries());
  const [prefix, turns] = ["/registry/configmaps/", new Turns()];
  const stream = watchStore({
    ...{ client: client as EtcdClient, clock: newFakeClock(), log: discardLogger, prefix, after: 10, initial: [] },
    values: new StoredValues({ codec, transformer: identityTransformer, prefix, log: discardLogger, turns }),
    request: { prefix: "", signal: new AbortController().signal },
  });
  handlers?.message(deletion(11));
  await settle();
  const [event] = stream.take();
  assert.ok(event?.type === "ERROR");
  assert.match(event.error.message, /PrevKv=nil \(key="\/registry\/configmaps\/web\/a", modRevision=11, type=DELETE\)/);
  assert.deepEqual([await stream.ready(), isCancelled], [false, true]);
});

import assert from "node:assert/strict";
import { Readable } from "node:stream";
import { test } from "node:test";
import { protobufMediaType } from "../objects/codec/negotiate.ts";
import { encodeProtobuf } from "../objects/codec/protobuf.ts";
import { frameWatchEvent } from "../objects/codec/stream.ts";
import { StatusError } from "../objects/errors/status-error.ts";
import { Turns } from "../process/event-loop/turns.ts";
import { BadEventError, decodeProtobufWatch, decodeWatchStream } from "./watch-decoder.ts";

const events = (text: string) =>
  Array.fromAsync(decodeWatchStream(Readable.from([Buffer.from(text)]), new AbortController().signal));

for (const line of ['{"type":"ERROR"}', '{"type":"ADDED","object":null}', '{"object":{}}', "null", "1", '{"type":']) {
  test(`a line that is no event (${line}) ends the watch and says so`, async () => {
    await assert.rejects(events(`${line}\n`), (err) => {
      assert.ok(err instanceof BadEventError);
      return err.message === "unable to decode an event from the watch stream";
    });
  });
}

test("an ERROR event is thrown as the Status that it has", async () => {
  await assert.rejects(events('{"type":"ERROR","object":{"code":410,"reason":"Expired"}}\n'), (err) => {
    return err instanceof StatusError && err.code === 410;
  });
});

test("a last event without a line end is delivered", async () => {
  assert.equal((await events('{"type":"ADDED","object":{}}')).length, 1);
});

const podKind = { group: "", version: "v1", kind: "Pod" };
const inProtobuf = (type: string, name: string, more: object = {}): Buffer =>
  frameWatchEvent(type, encodeProtobuf({ metadata: { name, ...more } }, podKind), protobufMediaType);
const inJson = (type: string, name: string, more: object = {}): Buffer =>
  Buffer.from(`${JSON.stringify({ type, object: { metadata: { name, ...more } } })}\n`);

for (const { form, decode, frame } of [
  { form: "JSON", decode: decodeWatchStream, frame: inJson },
  { form: "protobuf", decode: decodeProtobufWatch, frame: inProtobuf },
]) {
  const bytes = Buffer.concat(["a", "b", "c"].map((name) => frame("ADDED", name)));
  const follow = async (body: Readable, signal = new AbortController().signal, most = Number.POSITIVE_INFINITY) => {
    const names: string[] = [];
    for await (const { object } of decode<{ metadata: { name: string } }>(body, signal)) {
      names.push(object.metadata.name);
      if (names.length >= most) break;
    }
    return names.join();
  };

  test(`${form}: events are the same however they are cut`, async () => {
    for (let at = 0; at <= bytes.length; at++)
      assert.equal(await follow(Readable.from([bytes.subarray(0, at), bytes.subarray(at)])), "a,b,c");
    assert.equal(await follow(Readable.from([...bytes].map((byte) => Buffer.from([byte])))), "a,b,c");
  });

  test(`${form}: an event has its object's managed fields, unless they are omitted on request`, async () => {
    const managedFields = [{ manager: "m", operation: "Update", apiVersion: "v1" }];
    const keys = async (options: { omitsManagedFields?: boolean }) => {
      const body = Readable.from([frame("ADDED", "a", { managedFields })]);
      const [event] = await Array.fromAsync(decode<{ metadata: object }>(body, new AbortController().signal, options));
      return Object.keys(event?.object.metadata ?? {}).filter((key) => key !== "creationTimestamp");
    };
    assert.deepEqual(await keys({}), ["name", "managedFields"]);
    assert.deepEqual(await keys({ omitsManagedFields: true }), ["name"]);
  });

  test(`${form}: a consumer that returns early or is aborted leaves no response open`, async () => {
    const left = Readable.from([bytes]);
    assert.equal(await follow(left, undefined, 2), "a,b");
    assert.equal(left.destroyed, true);
    const stop = new AbortController();
    const silent = new Readable({ read() {} });
    const requested = follow(silent, stop.signal);
    silent.push(bytes);
    await new Promise(setImmediate);
    stop.abort(new Error("stopped"));
    silent.destroy(new Error("aborted"));
    await assert.rejects(requested, /stopped/);
  });

  test(`${form}: an end within an event is an error, an end after the signal is its reason`, async () => {
    const cut = Readable.from([bytes.subarray(0, bytes.length - 3)]);
    await assert.rejects(follow(cut), /the watch ended in the middle of an event/);
    for (const begun of [1, 4])
      await assert.rejects(
        follow(Readable.from([Buffer.concat([bytes, bytes.subarray(0, begun)])])),
        /the watch ended in the middle of an event/,
        `${begun} bytes of the fourth one`,
      );
    assert.equal(cut.destroyed, true);
    await assert.rejects(follow(Readable.from([bytes]), AbortSignal.abort(new Error("stopped"))), /stopped/);
  });
}

test("a large object of a watch is decoded in several turns, and small ones around it in their order", async () => {
  let [now, turnsTaken] = [0, 0];
  const turns = new Turns(
    () => (now += 10), // each step takes longer than a turn
    (run) => {
      turnsTaken++;
      setImmediate(run);
    },
  );
  const labels = Object.fromEntries(Array.from({ length: 30_000 }, (_, at) => [`l${at}`, "v"]));
  const { signal } = new AbortController();
  const namesOf = async (...frames: Buffer[]): Promise<string[]> => {
    const body = Readable.from([Buffer.concat(frames)]);
    const events = decodeProtobufWatch<{ metadata: { name: string } }>(body, signal, {}, turns);
    return Array.fromAsync(events, ({ object }) => object.metadata.name);
  };
  assert.deepEqual(await namesOf(inProtobuf("ADDED", "a"), inProtobuf("ADDED", "b")), ["a", "b"]);
  assert.equal(turnsTaken, 0, "small ones alone");
  const frames = [inProtobuf("ADDED", "a"), inProtobuf("MODIFIED", "b", { labels }), inProtobuf("ADDED", "c")];
  assert.deepEqual(await namesOf(...frames), ["a", "b", "c"]);
  assert.ok(turnsTaken > 3, `${turnsTaken} turns`);
});

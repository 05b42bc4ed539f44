import assert from "node:assert/strict";
import { duplexPair } from "node:stream";
import { test } from "node:test";
import { Turns } from "../../../process/event-loop/turns.ts";
import { errorCodes } from "../wire/connection-error.ts";
import { flags, frame, frameTypes, newFrameReader, numberFrame, preface, settingsFrame } from "../wire/frames.ts";
import { encodeFields } from "../wire/hpack.ts";
import { ServerConnection } from "./connection.ts";
import { FieldWork, HeaderMemory } from "./input.ts";
import type { ServerStream } from "./stream.ts";

/** A server's connection whose client is the test, frame by frame. */
function aConnection(maxConcurrentStreams = 10, spendReset = () => true) {
  const [ours, theirs] = duplexPair();
  for (const end of [ours, theirs]) end.on("error", () => {});
  let sent: string[] = [];
  const read = newFrameReader((type, flag, id, payload) => {
    const name = Object.entries(frameTypes).find(([, value]) => value === type)?.[0];
    if (type === frameTypes.resetStream || type === frameTypes.windowUpdate)
      sent.push(`${name} ${id} ${payload.readUInt32BE(0)}`);
    else if (type === frameTypes.goAway) sent.push(`goAway ${payload.readUInt32BE(0)} ${payload.readUInt32BE(4)}`);
    else if (type !== frameTypes.settings) sent.push(`${name} ${id}${flag & flags.endStream ? " end" : ""}`);
  });
  theirs.on("data", read);
  const streams: ServerStream[] = [];
  const reported = { ended: 0, closed: [] as (string | undefined)[] };
  const client = { spendReset, ended: () => void reported.ended++ };
  const limits = { maxHeaderBytes: 16_384, headersTimeoutMs: 1000, idleTimeoutMs: 5000 };
  const connection = new ServerConnection(
    ours,
    { maxConcurrentStreams, ...limits, client, fieldWork: new FieldWork(new Turns()), headerMemory: new HeaderMemory() },
    { request: (stream) => void streams.push(stream), refused() {}, closed: (reason) => void reported.closed.push(reason) },
  );
  const says = async (...bytes: Buffer[]): Promise<string[]> => {
    for (const chunk of bytes) theirs.write(chunk);
    for (let i = 0; i < 6; i++) await new Promise(setImmediate);
    const frames = sent;
    sent = [];
    return frames;
  };
  const begin = () => says(preface, settingsFrame([]));
  return { connection, streams, reported, says, begin, theirs };
}

const requestFrame = (id: number, ...more: string[]): Buffer =>
  frame(
    frameTypes.headers,
    flags.endHeaders | flags.endStream,
    id,
    encodeFields([":method", "GET", ":path", "/", ":scheme", "https", ...more]),
  );
const respond = encodeFields([":status", "200"]);
const answer = (stream: ServerStream): void =>
  stream.respond(frame(frameTypes.headers, flags.endHeaders | flags.endStream, stream.id, respond), true);

test("a connection begins the same wherever its first bytes are cut", async () => {
  const bytes = Buffer.concat([preface, settingsFrame([]), requestFrame(1)]);
  for (let at = 1; at < bytes.length; at++) {
    const { streams, says, reported } = aConnection();
    await says(bytes.subarray(0, at), bytes.subarray(at));
    assert.deepEqual([streams.length, reported.closed], [1, []], `cut at ${at}`);
  }
  const { streams, says } = aConnection();
  await says(...[...bytes].map((byte) => Buffer.from([byte])));
  assert.equal(streams.length, 1);
});

for (const { name, bytes, code } of [
  { name: "does not begin as HTTP/2", bytes: [Buffer.from("GET / HTTP/1.1\r\n")], code: errorCodes.protocol },
  { name: "asks before its settings", bytes: [preface, requestFrame(1)], code: errorCodes.protocol },
  { name: "opens a stream of ours", bytes: [preface, settingsFrame([]), requestFrame(2)], code: errorCodes.protocol },
  {
    name: "resets what did not begin",
    bytes: [preface, settingsFrame([]), numberFrame(frameTypes.resetStream, 1, 0)],
    code: errorCodes.protocol,
  },
]) {
  test(`the connection of a client that ${name} is closed, and it may reconnect at once`, async () => {
    const { says, reported, theirs } = aConnection();
    assert.ok((await says(...bytes)).includes(`goAway 0 ${code}`));
    theirs.end();
    await says();
    assert.deepEqual([reported.ended, reported.closed.length], [0, 1]);
  });
}

for (const { name, flood, spendReset } of [
  {
    name: "more pings than anybody needs",
    flood: () => Array.from({ length: 1200 }, () => frame(frameTypes.ping, 0, 0, Buffer.alloc(8))),
  },
  {
    name: "more resets of what has ended than anybody needs",
    flood: () => [
      requestFrame(1),
      numberFrame(frameTypes.resetStream, 1, errorCodes.cancel),
      ...Array.from({ length: 1200 }, () => numberFrame(frameTypes.resetStream, 1, errorCodes.cancel)),
    ],
  },
  {
    name: "more requests that are broken off than its budget",
    flood: () => [requestFrame(1), numberFrame(frameTypes.resetStream, 1, errorCodes.cancel)],
    spendReset: () => false,
  },
] as { name: string; flood: () => Buffer[]; spendReset?: () => boolean }[]) {
  test(`a client that sends ${name} gets ENHANCE_YOUR_CALM, and its address is counted`, async () => {
    const { says, begin, reported } = aConnection(10, spendReset);
    await begin();
    const frames = await says(Buffer.concat(flood()));
    assert.ok(
      frames.some((one) => one.endsWith(` ${errorCodes.enhanceYourCalm}`)),
      frames.join(),
    );
    assert.equal(reported.ended, 1);
  });
}

test("a stream beyond the limit is refused until another ends; reset streams count until their handlers end", async () => {
  const { connection, streams, says, begin } = aConnection(2);
  await begin();
  assert.deepEqual(await says(requestFrame(1), requestFrame(3), requestFrame(5)), [`resetStream 5 ${errorCodes.refusedStream}`]);
  answer(streams[0] as ServerStream);
  connection.handled();
  assert.deepEqual([await says(), await says(requestFrame(7))], [["headers 1 end"], []]);
  assert.equal(streams.length, 3);
  const cancel = (id: number): Buffer => numberFrame(frameTypes.resetStream, id, errorCodes.cancel);
  await says(cancel(3), cancel(7), requestFrame(9), requestFrame(11), cancel(9), cancel(11));
  assert.deepEqual([connection.size, streams.length], [0, 5]);
  // Four handlers, twice the limit, run for cancelled requests.
  assert.deepEqual(await says(requestFrame(13)), [`resetStream 13 ${errorCodes.refusedStream}`]);
  connection.handled();
  assert.deepEqual(await says(requestFrame(15)), []);
  assert.equal(streams.length, 6);
});

test("a closed connection refuses new streams, completes open ones, then ends", async () => {
  const { connection, streams, says, begin, reported, theirs } = aConnection();
  await begin();
  await says(requestFrame(1));
  connection.close();
  connection.close();
  assert.deepEqual(await says(requestFrame(3)), ["goAway 1 0", `resetStream 3 ${errorCodes.refusedStream}`]);
  assert.deepEqual(reported.closed, []);
  answer(streams[0] as ServerStream);
  assert.deepEqual(await says(), ["headers 1 end"]);
  assert.equal(theirs.readableEnded, true);
});

test("a handler that waits for the window is notified when the client resets the request", async () => {
  const { streams, says, begin } = aConnection();
  await begin();
  await says(requestFrame(1));
  const stream = streams[0] as ServerStream;
  stream.respond(frame(frameTypes.headers, flags.endHeaders, 1, respond), false);
  assert.equal(stream.write(Buffer.alloc(1_000_000)), false);
  await says();
  const waiting = assert.rejects(stream.drained(), /the client disconnected/);
  await says(numberFrame(frameTypes.resetStream, 1, errorCodes.cancel));
  await waiting;
  await assert.rejects(stream.drained(), /the client disconnected/);
});

test("a connection is idle from its last response on, and only then closed", async (t) => {
  let now = 0;
  t.mock.method(performance, "now", () => now);
  const { connection, streams, says, begin } = aConnection();
  await begin();
  await says(requestFrame(1));
  now = 6_000;
  connection.check(now);
  answer(streams[0] as ServerStream);
  assert.deepEqual(await says(), ["headers 1 end"]);
  now = 10_999;
  connection.check(now);
  assert.deepEqual(await says(), []);
  now = 11_000;
  connection.check(now);
  assert.deepEqual(await says(), ["goAway 1 0"]);
});

test("a stream that was answered early closes when its request ends, and is not reset afterwards", async (t) => {
  const { streams, says, begin } = aConnection();
  await begin();
  const fields = encodeFields([":method", "POST", ":path", "/", ":scheme", "https"]);
  await says(frame(frameTypes.headers, flags.endHeaders, 1, fields));
  t.mock.timers.enable({ apis: ["setTimeout"] });
  answer(streams[0]!);
  assert.deepEqual(await says(), ["headers 1 end"]);
  assert.equal(streams[0]!.isClosed, false);
  await says(frame(frameTypes.data, flags.endStream, 1, Buffer.alloc(0)));
  assert.equal(streams[0]!.isClosed, true);
  t.mock.timers.tick(60_000);
  assert.deepEqual(await says(), []);
});

test("data that arrives for a reset stream is returned to the connection's window", async () => {
  const { streams, says, begin } = aConnection();
  await begin();
  const fields = encodeFields([":method", "POST", ":path", "/", ":scheme", "https"]);
  await says(frame(frameTypes.headers, flags.endHeaders, 1, fields));
  streams[0]?.reset(errorCodes.cancel);
  const data = frame(frameTypes.data, 0, 1, Buffer.alloc(16_384));
  const frames = await says(...Array.from({ length: 200 }, () => data));
  assert.ok(
    frames.some((text) => text.startsWith("windowUpdate 0 ")),
    frames.join(),
  );
});

test("data that was not read when its stream is reset is returned to the connection's window, too", async () => {
  const { streams, says, begin } = aConnection(200);
  await begin();
  const fields = encodeFields([":method", "POST", ":path", "/", ":scheme", "https"]);
  const frames: string[] = [];
  for (let id = 1; id < 400; id += 2) {
    const sent = await says(
      frame(frameTypes.headers, flags.endHeaders, id, fields),
      frame(frameTypes.data, 0, id, Buffer.alloc(16_384)),
    );
    streams.at(-1)?.reset(errorCodes.cancel);
    frames.push(...sent);
  }
  assert.equal(streams.length, 200);
  assert.ok(frames.some((text) => text.startsWith("windowUpdate 0 ")));
});

test("a writer that waited for the window waits again when it has filled it again", async () => {
  const { streams, says, begin } = aConnection();
  await begin();
  await says(requestFrame(1));
  const stream = streams[0] as ServerStream;
  stream.respond(frame(frameTypes.headers, flags.endHeaders, 1, respond), false);
  const open = (bytes: number): Buffer[] => [0, 1].map((id) => numberFrame(frameTypes.windowUpdate, id, bytes));
  for (let round = 0; round < 2; round++) {
    assert.equal(stream.write(Buffer.alloc(1_000_000)), false);
    let isDrained = false;
    const waiting = stream.drained().then(() => (isDrained = true));
    await says();
    assert.equal(isDrained, false, `round ${round}`);
    await says(...open(1_000_000));
    await waiting;
  }
});

test("what arrived before a body is read is delivered once, also when another reads on", async () => {
  const { streams, says, begin } = aConnection();
  await begin();
  const fields = encodeFields([":method", "POST", ":path", "/", ":scheme", "https"]);
  const data = (text: string): Buffer => frame(frameTypes.data, 0, 1, Buffer.from(text));
  await says(frame(frameTypes.headers, flags.endHeaders, 1, fields), data("early"));
  const received: string[] = [];
  for (const name of ["one", "two"]) {
    streams[0]?.receive({ data: (chunk) => void received.push(`${name} ${chunk.toString()}`), end() {} });
    await says(data(`for ${name}`));
  }
  assert.deepEqual(received, ["one early", "one for one", "two for two"]);
});

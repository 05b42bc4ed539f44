import assert from "node:assert/strict";
import { Duplex } from "node:stream";
import { test } from "node:test";
import { answered, aPipe, bytes, grant, ok, pipeOver, post, windows } from "../testing/client-pipe.ts";
import { errorCodes } from "../wire/connection-error.ts";
import { flags, frame, frameTypes, numberFrame, settings, settingsFrame } from "../wire/frames.ts";
import { encodeFields } from "../wire/hpack.ts";
import { ClientConnection } from "./connection.ts";
import type { Fields } from "./stream.ts";

const reset = (id: number, code: number): Buffer => numberFrame(frameTypes.resetStream, id, code);
const data = (id: number, size: number, flag = 0): Buffer => frame(frameTypes.data, flag, id, Buffer.alloc(size));
const trailers = (id: number, ...fields: string[]): Buffer =>
  frame(frameTypes.headers, flags.endHeaders | flags.endStream, id, encodeFields(fields));

test("a server that admits no data gets headers, and a request without a body ends while another is blocked", async (t) => {
  const { send, says, turn, begin, ends } = aPipe(t, [settings.initialWindowSize, 0]);
  await begin();
  let sent = false;
  const blocked = send("a", 5, false);
  blocked.write(bytes(3), () => (sent = true));
  send("b", 0);
  assert.deepEqual(await turn(), ["headers 1", "headers 3 end"]);
  await says(answered(3));
  assert.deepEqual([ends, sent], [["b ended"], false]);
  blocked.end();
  assert.deepEqual(await says(grant(1, 6)), ["data 1 5", "data 1 1"]);
  assert.equal(sent, false);
  assert.deepEqual(await says(grant(1, 6)), ["data 1 2 end"]);
  assert.equal(sent, true);
});

test("after settings make a window negative, data waits until it is positive again", async (t) => {
  const { send, says, turn, begin } = aPipe(t, [settings.initialWindowSize, 10]);
  await begin();
  send("a", 15);
  assert.deepEqual(await turn(), ["headers 1", "data 1 10"]);
  assert.deepEqual(await says(settingsFrame([[settings.initialWindowSize, 2]])), []);
  assert.deepEqual(await says(grant(1, 8)), []);
  assert.deepEqual(await says(grant(1, 1)), ["data 1 1"]);
  assert.deepEqual(await says(settingsFrame([[settings.initialWindowSize, 100]])), ["data 1 4 end"]);
});

test("a request without more data ends with an empty frame, whatever the window", async (t) => {
  const { send, turn, begin } = aPipe(t, [settings.initialWindowSize, 3]);
  await begin();
  const stream = send("a", 3, false);
  assert.deepEqual(await turn(), ["headers 1", "data 1 3"]);
  stream.end();
  stream.end();
  stream.write(bytes(1));
  assert.deepEqual(await turn(), ["data 1 0 end"]);
});

for (const { name, before } of [
  { name: "before the headers", before: [] },
  { name: "after the headers", before: [ok(1)] },
]) {
  test(`a request that is cancelled ${name} of its response is reset once; late frames are ignored`, async (t) => {
    const { send, says, turn, begin, ends } = aPipe(t);
    await begin();
    let chunks = 0;
    let sent = 0;
    const stream = send("a", 1, false, { data: () => void chunks++ });
    stream.write(bytes(100_000), () => sent++);
    await turn();
    await says(...before);
    stream.cancel();
    stream.cancel();
    stream.end();
    stream.write(bytes(1), () => sent++);
    assert.deepEqual(await turn(), [`resetStream 1 ${errorCodes.cancel}`]);
    assert.deepEqual(await says(ok(1), data(1, 10), grant(1, 1_000), trailers(1), reset(1, errorCodes.internal)), []);
    assert.deepEqual([ends, chunks, sent], [[], 0, 2]);
    send("b", 0);
    await says(answered(3));
    assert.deepEqual(ends, ["b ended"]);
  });
}

test("a reset of the server ends its stream alone, with its code; without processing where the server says so", async (t) => {
  const { send, says, begin } = aPipe(t);
  await begin();
  const ends: object[] = [];
  const handlers = { closed: (end: object) => void ends.push(end) };
  for (const name of ["a", "b", "c"]) send(name, 1, true, handlers);
  await says(ok(1), reset(1, errorCodes.internal), reset(3, errorCodes.refusedStream), answered(5));
  assert.deepEqual(ends, [
    { type: "lost", code: errorCodes.internal, reason: "stream closed with error code 2" },
    { type: "refused", code: errorCodes.refusedStream, reason: "stream closed with error code 7" },
    { type: "ended" },
  ]);
});

test("a response is the same wherever its bytes are divided", async (t) => {
  const head = encodeFields([":status", "200", "a", "b"]);
  const response = Buffer.concat([
    frame(frameTypes.headers, 0, 1, head.subarray(0, 1)),
    frame(frameTypes.continuation, flags.endHeaders, 1, head.subarray(1)),
    frame(frameTypes.data, flags.padded, 1, Buffer.from([2, 7, 8, 0, 0])),
    frame(frameTypes.data, 0, 1, Buffer.from([9])),
    trailers(1, "c", "d"),
  ]);
  for (let at = 1; at < response.length; at++) {
    const { send, socket, turn, begin } = aPipe(t);
    await begin();
    const seen: unknown[] = [];
    send("a", 0, true, {
      fields: (fields: Fields) => void seen.push(Object.fromEntries(fields)),
      data: (chunk) => void seen.push(...chunk),
      closed: ({ type }) => void seen.push(type),
    });
    socket.push(response.subarray(0, at));
    await new Promise(setImmediate);
    socket.push(response.subarray(at));
    await turn();
    assert.deepEqual(seen, [{ ":status": "200", a: "b" }, 7, 8, 9, { c: "d" }, "ended"], `divided at ${at}`);
  }
});

test("informational responses are not the response", async (t) => {
  const { send, says, begin } = aPipe(t);
  await begin();
  const seen: (string | undefined)[] = [];
  send("a", 0, true, { fields: (fields) => void seen.push(fields.get(":status")) });
  const hints = frame(frameTypes.headers, flags.endHeaders, 1, encodeFields([":status", "103"]));
  await says(hints, hints, answered(1));
  assert.deepEqual(seen, ["200"]);
});

const small = { streamWindowBytes: 100, connectionWindowBytes: 70_000 };

for (const { bytes: connectionWindowBytes, sent } of [
  { bytes: 65_535, sent: [] },
  { bytes: 65_536, sent: ["windowUpdate 0 1"] },
]) {
  test(`a connection's window of ${connectionWindowBytes} bytes is announced without an increment of 0`, async (t) => {
    const { turn } = pipeOver(t, { ...small, connectionWindowBytes });
    assert.deepEqual(await turn(), sent);
  });
}

test("a stream that is read slowly applies backpressure only to itself", async (t) => {
  const { send, says, turn, begin, ends } = pipeOver(t, small);
  await begin();
  const paced = send("a", 0, true, { isPaced: true });
  send("b", 0);
  await turn();
  assert.deepEqual(await says(ok(1), ok(3), data(1, 100), data(3, 100)), ["windowUpdate 3 100"]);
  paced.consumed(50);
  assert.deepEqual(await turn(), []);
  paced.consumed(1);
  assert.deepEqual(await turn(), ["windowUpdate 1 51"]);
  await says(data(1, 51), data(3, 100, flags.endStream));
  assert.deepEqual(ends, ["b ended"]);
  assert.deepEqual(await says(data(1, 1)), [`resetStream 1 ${errorCodes.flowControl}`]);
  assert.deepEqual(ends, ["b ended", "a lost"]);
});

test("padding is returned to the window of a stream that is read slowly", async (t) => {
  const { send, says, turn, begin } = pipeOver(t, small);
  await begin();
  send("a", 0, true, { isPaced: true });
  await turn();
  const padded = frame(frameTypes.data, flags.padded, 1, Buffer.concat([Buffer.from([60]), Buffer.alloc(70)]));
  assert.deepEqual(await says(ok(1), padded), ["windowUpdate 1 61"]);
});

for (const { name, says: said, code } of [
  { name: "data before headers", says: data(1, 1), code: errorCodes.protocol },
  { name: "more data than its window lets in", says: Buffer.concat([ok(1), data(1, 101)]), code: errorCodes.flowControl },
  { name: "WINDOW_UPDATE with increment 0", says: grant(1, 0), code: errorCodes.protocol },
  { name: "flow-control window above 2^31-1", says: grant(1, 2 ** 31 - 1), code: errorCodes.flowControl },
]) {
  test(`a stream with ${name} is reset, others continue`, async (t) => {
    const { send, says, turn, begin, ends } = pipeOver(t, small);
    await begin();
    send("a", 0);
    send("b", 0);
    await turn();
    assert.deepEqual(await says(said), [`resetStream 1 ${code}`]);
    await says(answered(3));
    assert.deepEqual(ends, ["a lost", "b ended"]);
  });
}

const ackOfNothing = frame(frameTypes.ping, 0, 0, Buffer.alloc(7));
for (const { name, says: said, code, isFirst } of [
  { name: "something before its settings", says: grant(0, 1), code: errorCodes.protocol, isFirst: true },
  { name: "a stream that did not begin", says: ok(5), code: errorCodes.protocol },
  { name: "a stream of the server", says: ok(2), code: errorCodes.protocol },
  { name: "WINDOW_UPDATE with increment 0", says: grant(0, 0), code: errorCodes.protocol },
  { name: "flow-control window above 2^31-1", says: grant(0, 2 ** 31 - 1), code: errorCodes.flowControl },
  { name: "frames that may be tiny", says: settingsFrame([[settings.maxFrameSize, 1]]), code: errorCodes.protocol },
  {
    name: "windows that are too wide",
    says: settingsFrame([[settings.initialWindowSize, 2 ** 31]]),
    code: errorCodes.flowControl,
  },
  {
    name: "settings that widen the window of a stream above 2^31-1",
    says: Buffer.concat([grant(1, 2 ** 31 - 1 - 65_535), settingsFrame([[settings.initialWindowSize, 65_536]])]),
    code: errorCodes.flowControl,
  },
  { name: "a ping of seven octets", says: ackOfNothing, code: errorCodes.frameSize },
  {
    name: "headers that cannot be decoded",
    says: frame(frameTypes.headers, flags.endHeaders, 1, Buffer.from([0xff, 0xff])),
    code: errorCodes.compression,
  },
] as { name: string; says: Buffer; code: number; isFirst?: boolean }[]) {
  test(`a server that sends ${name} gets the reason in GOAWAY`, async (t) => {
    const { send, says, turn, begin, ends, events, made } = aPipe(t);
    if (!isFirst) await begin();
    send("a", 0);
    await turn();
    assert.deepEqual(await says(said), [`goAway 0 ${code}`]);
    assert.deepEqual([ends, events.at(-1)], [["a lost"], "closed"]);
    assert.equal(made.maxStreams, 0);
  });
}

for (const [first, ...later] of [[[0]], [[4095]], [[0, 4096]], [[4095, 65_536]], [[0], [4096]], [[4095], [65_536]], [[], [0]]]) {
  test(`a server that reduced its header table sees that in each block: ${[first, ...later].join(", then ")}`, async (t) => {
    const tables = (sizes: readonly number[] = []) => sizes.map((bytes) => [settings.headerTableSize, bytes] as const);
    const { send, turn, begin, says } = aPipe(t, ...tables(first));
    await begin();
    for (const sizes of later) await says(settingsFrame(tables(sizes)));
    for (const id of [1, 3]) {
      send("a", 0);
      assert.deepEqual(await turn(), [`headers ${id} ${post.length + 1} end`]);
    }
  });
}

test("a block for a server that never reduced its header table does not mention it", async (t) => {
  const { send, turn, begin, says } = aPipe(t, [settings.headerTableSize, 4096]);
  await begin();
  await says(settingsFrame([[settings.headerTableSize, 65_536]]));
  send("a", 0);
  assert.deepEqual(await turn(), ["headers 1 end"]);
});

test("a server may widen the windows of all streams, to 2^31-1", async (t) => {
  const { send, says, turn, begin, ends } = aPipe(t);
  await begin();
  send("a", 0);
  await turn();
  const widest = [grant(1, 2 ** 31 - 2 - 65_535), settingsFrame([[settings.initialWindowSize, 65_536]])];
  assert.deepEqual(await says(...widest), []);
  await says(answered(1));
  assert.deepEqual(ends, ["a ended"]);
});

for (const [bytesOver, code] of [
  [0, errorCodes.compression],
  [1, errorCodes.protocol],
] as const) {
  test(`fields of an answer in a block of 1 MiB and ${bytesOver} bytes are refused ${bytesOver > 0 ? "un" : ""}read`, async (t) => {
    const { send, says, turn, begin, ends } = aPipe(t);
    await begin();
    send("a", 0);
    await turn();
    const status = encodeFields([":status", "200"]);
    const field = encodeFields(["x", "y".repeat(8_000)]);
    const many = Array.from({ length: 130 }, () => field);
    const room = 1024 * 1024 + bytesOver - status.length - many.length * field.length;
    const last = encodeFields(["x", "y".repeat(room - (field.length - 8_000))]);
    const block = Buffer.concat([status, ...many, last]);
    assert.equal(block.length, 1024 * 1024 + bytesOver);
    const parts = Array.from({ length: Math.ceil(block.length / 16_384) }, (_, i) =>
      block.subarray(i * 16_384, (i + 1) * 16_384),
    );
    const frames = parts.map((part, i) =>
      frame(
        i === 0 ? frameTypes.headers : frameTypes.continuation,
        (i === 0 ? flags.endStream : 0) | (i === parts.length - 1 ? flags.endHeaders : 0),
        1,
        part,
      ),
    );
    assert.deepEqual(await says(...frames), [`goAway 0 ${code}`]);
    assert.deepEqual(ends, ["a lost"]);
  });
}

test("headers longer than a frame continue in CONTINUATION frames", async (t) => {
  const { made, turn, begin } = aPipe(t);
  await begin();
  made.request(Buffer.concat([post, encodeFields(["x", "y".repeat(20_000)])]), bytes(1), true, {
    fields() {},
    data() {},
    closed() {},
  });
  const frames = await turn();
  assert.deepEqual(
    frames.map((one) => one.replace(/ \d+( end)?$/, "$1")),
    ["headers 1", "continuation 1", "data 1 end"],
  );
});

test("a closed connection ends with its last stream, after GOAWAY", async (t) => {
  const { send, says, turn, begin, ends, events, made, socket } = aPipe(t);
  await begin();
  send("a", 0);
  await turn();
  made.close();
  made.close();
  assert.deepEqual([socket.destroyed, made.maxStreams, events], [false, 0, []]);
  assert.throws(() => send("b", 0), /accepts no new streams/);
  assert.deepEqual(await says(answered(1)), [`goAway 0 ${errorCodes.none}`]);
  assert.deepEqual([socket.destroyed, ends, events], [true, ["a ended"], ["closed"]]);
});

test("a closed connection also ends when its last stream is cancelled", async (t) => {
  const { send, turn, begin, events, made } = aPipe(t);
  await begin();
  const a = send("a", 0);
  await turn();
  made.close();
  a.cancel();
  assert.deepEqual(await turn(), [`resetStream 1 ${errorCodes.cancel}`, `goAway 0 ${errorCodes.none}`]);
  assert.deepEqual(events, ["closed"]);
});

test("bytes of a cancelled stream are returned to the connection's window", async (t) => {
  const pipe = pipeOver(t, { streamWindowBytes: 100_000, connectionWindowBytes: 65_535 });
  await pipe.begin();
  const a = pipe.send("a", 0);
  await pipe.turn();
  a.cancel();
  await pipe.turn();
  const late = Array.from({ length: 3 }, () => data(1, 16_000));
  assert.deepEqual(await pipe.says(ok(1), ...late), ["windowUpdate 0 48000"]);
});

test("small requests use up the window of the connection, too", async (t) => {
  const { send, turn, begin } = aPipe(t);
  await begin();
  for (let i = 0; i < 5; i++) send(`${i}`, 16_000);
  const sent = (await turn()).filter((one) => one.startsWith("data"));
  const whole = [1, 3, 5, 7].map((id) => `data ${id} 16000 end`);
  assert.deepEqual(sent, [...whole, "data 9 1535"]);
});

test("pings are answered in order", async (t) => {
  const { made, says, begin } = aPipe(t);
  await begin();
  const answeredPings: number[] = [];
  for (const one of [1, 2]) made.ping(() => void answeredPings.push(one));
  const pong = frame(frameTypes.ping, flags.ack, 0, Buffer.alloc(8));
  await says(pong);
  assert.deepEqual(answeredPings, [1]);
  await says(pong, pong);
  assert.deepEqual(answeredPings, [1, 2]);
});

for (const { name, first = [], frames } of [
  { name: "settings of 7 bytes that come first", frames: [frame(frameTypes.settings, 0, 0, Buffer.alloc(7))] },
  { name: "settings of 5 bytes", first: [settingsFrame([])], frames: [frame(frameTypes.settings, 0, 0, Buffer.alloc(5))] },
  {
    name: "an acknowledgement of settings with contents",
    first: [settingsFrame([])],
    frames: [frame(frameTypes.settings, flags.ack, 0, Buffer.alloc(6))],
  },
]) {
  test(`a server's ${name} end the connection with FRAME_SIZE_ERROR`, async (t) => {
    const { says, events } = aPipe(t);
    await says(...first);
    assert.deepEqual(await says(...frames), [`goAway 0 ${errorCodes.frameSize}`]);
    assert.deepEqual(events, ["closed"]);
  });
}

test("an endless sequence of empty CONTINUATION frames ends the connection", async (t) => {
  const { send, says, turn, begin, ends } = aPipe(t);
  await begin();
  send("a", 0);
  await turn();
  const empty = frame(frameTypes.continuation, 0, 1, Buffer.alloc(0));
  const said = await says(frame(frameTypes.headers, 0, 1, Buffer.alloc(0)), ...Array.from({ length: 600 }, () => empty));
  assert.deepEqual(said, [`goAway 0 ${errorCodes.enhanceYourCalm}`]);
  assert.deepEqual(ends, ["a lost"]);
});

for (const { name, question } of [
  { name: "pings", question: frame(frameTypes.ping, 0, 0, Buffer.alloc(8)) },
  { name: "settings", question: settingsFrame([]) },
]) {
  test(`the connection to a server that sends ${name} and does not read is closed`, async () => {
    const closed: string[] = [];
    const socket = new Duplex({ read() {}, write() {} }); // takes the first bytes and never asks for more
    new ClientConnection(socket, windows, { ready() {}, leaving() {}, closed: (reason) => void closed.push(reason) });
    socket.push(settingsFrame([]));
    for (let i = 0; i < 300 && closed.length === 0; i++) {
      socket.push(Buffer.concat(Array.from({ length: 100 }, () => question)));
      await new Promise(setImmediate);
    }
    assert.deepEqual(closed, ["the server does not read replies to its PING and SETTINGS frames"]);
  });
}

test("requests that wait are sent when the server raises its limit", async (t) => {
  const { send, says, turn, begin } = aPipe(t, [settings.maxConcurrentStreams, 1]);
  await begin();
  for (const name of ["a", "b", "c"]) send(name, 0);
  assert.deepEqual(await turn(), ["headers 1 end"]);
  assert.deepEqual(await says(settingsFrame([[settings.maxConcurrentStreams, 2]])), ["headers 3 end"]);
});

test("each of several write callbacks runs when the window has let its data pass", async (t) => {
  const { send, says, turn, begin } = aPipe(t, [settings.initialWindowSize, 0]);
  await begin();
  const sent: number[] = [];
  const stream = send("a", 0, false);
  for (const which of [1, 2, 3]) stream.write(bytes(2), () => void sent.push(which));
  assert.deepEqual([await turn(), sent], [["headers 1"], []]);
  await says(grant(1, 6));
  assert.deepEqual(sent, [1, 2, 3]);
});

test("a complete response stops the rest of the request body", async (t) => {
  const { send, says, turn, begin, ends } = aPipe(t, [settings.initialWindowSize, 2]);
  await begin();
  send("a", 5);
  assert.deepEqual(await turn(), ["headers 1", "data 1 2"]);
  assert.deepEqual([await says(answered(1)), ends], [[`resetStream 1 ${errorCodes.cancel}`], ["a ended"]]);
  assert.deepEqual(await says(grant(1, 10)), []);
});

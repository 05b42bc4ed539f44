import assert from "node:assert/strict";
import { constants, createServer, type Http2ServerRequest, type Http2ServerResponse, type ServerOptions } from "node:http2";
import { connect, createServer as createTcpServer, type Server, type Socket } from "node:net";
import { type TestContext, test } from "node:test";
import { listening } from "../../../testing/listening.ts";
import { waitFor } from "../../../testing/wait-for.ts";
import { answered, aPipe, bytes, grant, ok, post, windows } from "../testing/client-pipe.ts";
import { errorCodes } from "../wire/connection-error.ts";
import { defaultMaxFrameBytes, flags, frame, frameTypes, numberFrame, settings, settingsFrame } from "../wire/frames.ts";
import { encodeFields } from "../wire/hpack.ts";
import { ClientConnection, type ClientConnectionEvents } from "./connection.ts";
import type { Fields, StreamEnd } from "./stream.ts";

function connectTo(origin: string, events: ClientConnectionEvents): ClientConnection {
  const { hostname: host, port } = new URL(origin);
  return new ClientConnection(connect({ host, port: Number(port), noDelay: true }), windows, events);
}

const originOf = async (t: TestContext, server: Server): Promise<string> => `http://127.0.0.1:${await listening(t, server)}`;

/** A node:http2 server that echoes requests. */
function anEcho(t: TestContext, options: ServerOptions, handle = echo): Promise<string> {
  const server = createServer(options, handle);
  server.on("sessionError", () => {});
  return originOf(t, server);
}

function echo(request: Http2ServerRequest, response: Http2ServerResponse): void {
  const chunks: Buffer[] = [];
  request.on("data", (chunk: Buffer) => chunks.push(chunk));
  request.on("end", () => response.end(Buffer.concat(chunks)));
}

/** A TCP server that sends what the test specifies, regardless of its input. */
function aTalker(t: TestContext, say: (socket: Socket) => void): Promise<string> {
  return originOf(
    t,
    createTcpServer((socket) => void socket.once("data", () => say(socket))),
  );
}

interface Answer {
  readonly fields: Fields[];
  readonly body: Buffer;
  readonly end: StreamEnd;
}

async function connected(t: TestContext, origin: string) {
  let ready = (): void => {};
  let lost = (_: string): void => {};
  const isReady = new Promise<void>((resolve) => {
    ready = resolve;
  });
  const isLost = new Promise<string>((resolve) => {
    lost = resolve;
  });
  let left = false;
  const leaving = (): void => {
    left = true;
  };
  const made = connectTo(origin, { ready, heard() {}, leaving, closed: lost });
  t.after(() => made.destroy(new Error("the test is over")));
  await Promise.race([isReady, isLost]);
  return { made, isLost, hasLeft: () => left, send: (body: Buffer) => send(made, body) };
}

function send(on: ClientConnection, body: Buffer): Promise<Answer> {
  return new Promise((resolve) => {
    const fields: Fields[] = [];
    const chunks: Buffer[] = [];
    on.request(post, body, true, {
      fields: (some) => void fields.push(some),
      data: (bytes) => void chunks.push(bytes),
      closed: (end) => resolve({ fields, body: Buffer.concat(chunks), end }),
    });
  });
}

for (const { name, options, size } of [
  { name: "an empty one", options: {}, size: 0 },
  { name: "a large one", options: {}, size: 3_000_000 },
  { name: "one through small windows", options: { settings: { initialWindowSize: 10 } }, size: 2_000 },
  { name: "one from a server that pads", options: { paddingStrategy: constants.PADDING_STRATEGY_MAX }, size: 100_000 },
]) {
  test(`a body is echoed unchanged: ${name}`, async (t) => {
    const { send } = await connected(t, await anEcho(t, options));
    const sent = bytes(size);
    const { fields, body, end } = await send(sent);
    assert.deepEqual(end, { type: "ended" });
    assert.equal(fields[0]?.get(":status"), "200");
    assert.ok(body.equals(sent));
  });
}

test("many requests share the windows, and each gets its own answer", async (t) => {
  const { send } = await connected(t, await anEcho(t, { settings: { initialWindowSize: 1_000 } }));
  const sent = Array.from({ length: 50 }, (_, i) => bytes(i * 1_000));
  const answers = await Promise.all(sent.map(send));
  for (const [i, { body }] of answers.entries()) assert.ok(body.equals(sent[i] as Buffer), `answer ${i}`);
});

test("requests beyond the server's stream limit wait in order", async (t) => {
  let most = 0;
  let now = 0;
  const origin = await anEcho(t, { settings: { maxConcurrentStreams: 2 } }, (request, response) => {
    most = Math.max(most, ++now);
    response.once("close", () => now--);
    setImmediate(() => echo(request, response));
  });
  const { send } = await connected(t, origin);
  const answers = await Promise.all(Array.from({ length: 10 }, (_, i) => send(Buffer.from([i]))));
  assert.deepEqual(
    answers.map(({ body }) => body[0]),
    Array.from({ length: 10 }, (_, i) => i),
  );
  assert.equal(most, 2);
});

test("every header character of Node's server is decoded, also in CONTINUATION frames", async (t) => {
  const printable = String.fromCharCode(...Array.from({ length: 94 }, (_, i) => 33 + i));
  const long = printable.repeat(300);
  const origin = await anEcho(t, { maxSendHeaderBlockLength: 100_000 }, (_, response) => {
    response.writeHead(200, { printable, long });
    response.end();
  });
  const { send } = await connected(t, origin);
  const { fields } = await send(bytes(1));
  assert.equal(fields[0]?.get("printable"), printable);
  assert.equal(fields[0]?.get("long"), long);
});

test("a lost connection fails its running requests", async (t) => {
  const { send, made, isLost } = await connected(t, await anEcho(t, {}, () => {}));
  const waiting = send(bytes(1));
  made.destroy(new Error("it was too slow"));
  assert.deepEqual((await waiting).end, { type: "lost", reason: "it was too slow" });
  assert.equal(await isLost, "it was too slow");
  assert.throws(() => made.request(post, bytes(1), true, { fields() {}, data() {}, closed() {} }));
});

const hello = settingsFrame([[settings.maxConcurrentStreams, 2]]);

test("requests that a closing server did not process fail as unprocessed, the rest is answered", async (t) => {
  let socket: Socket | undefined;
  const origin = await aTalker(t, (made) => {
    socket = made;
    made.write(hello);
  });
  const { send, hasLeft, isLost, made } = await connected(t, origin);
  const requested = [send(bytes(1)), send(bytes(1)), send(bytes(1))]; // streams 1 and 3, and one queued
  const lastSeen = Buffer.from([0, 0, 0, 1, 0, 0, 0, errorCodes.none]);
  socket?.write(frame(frameTypes.goAway, 0, 0, lastSeen));
  await waitFor(hasLeft, { what: "the goodbye" });
  assert.throws(() => made.request(post, bytes(1), true, { fields() {}, data() {}, closed() {} }));
  socket?.write(answered(1));
  const ends = await Promise.all(requested);
  assert.deepEqual(
    ends.map(({ end }) => end.type),
    ["ended", "refused", "refused"],
  );
  await isLost;
});

test("frames cut anywhere are decoded", async (t) => {
  let socket: Socket | undefined;
  const origin = await aTalker(t, (made) => {
    made.setNoDelay(true);
    socket = made;
    made.write(hello);
  });
  const { send } = await connected(t, origin);
  const requested = send(bytes(1));
  for (const byte of answered(1)) {
    socket?.write(Buffer.from([byte]));
    await new Promise(setImmediate);
  }
  const { body, end } = await requested;
  assert.deepEqual([body, end.type], [Buffer.from([1]), "ended"]);
});

const head = (length: number, type: number): Buffer =>
  Buffer.from([length >> 16, (length >> 8) & 255, length & 255, type, 0, 0, 0, 0, 1]);
for (const { name, says } of [
  { name: "a frame that is too large", says: head(1_000_000, frameTypes.data) },
  { name: "headers within headers", says: Buffer.concat([head(0, frameTypes.headers), head(0, frameTypes.headers)]) },
  { name: "headers that go on without beginning", says: head(0, frameTypes.continuation) },
  { name: "headers that cannot be decoded", says: frame(frameTypes.headers, flags.endHeaders, 1, Buffer.from([0xff, 0xff])) },
  { name: "a push", says: head(0, frameTypes.pushPromise) },
  { name: "a frame that is all padding", says: frame(frameTypes.data, flags.padded, 1, Buffer.from([9])) },
  { name: "a frame that lacks its number", says: head(0, frameTypes.resetStream) },
]) {
  test(`the connection to a server that sends ${name} is closed`, async (t) => {
    const { send, isLost } = await connected(t, await aTalker(t, (socket) => void socket.write(Buffer.concat([hello, says]))));
    const requested = send(bytes(1)).catch(() => undefined); // may fail as lost before
    assert.notEqual(await isLost, "the connection was closed");
    const answer = await requested;
    if (answer !== undefined) assert.equal(answer.end.type, "lost");
  });
}

for (const count of [500, 501]) {
  test(`fields of an answer in ${count} frames are ${count > 500 ? "refused" : "taken"}`, async (t) => {
    const none = Buffer.alloc(0);
    const says = [
      frame(frameTypes.headers, flags.endStream, 1, encodeFields([":status", "200"])),
      ...Array.from({ length: count - 2 }, () => frame(frameTypes.continuation, 0, 1, none)),
      frame(frameTypes.continuation, flags.endHeaders, 1, none),
    ];
    let talker: Socket | undefined;
    const origin = await aTalker(t, (socket) => {
      talker = socket;
      socket.write(hello);
    });
    const { send } = await connected(t, origin);
    const requested = send(bytes(1));
    talker?.write(Buffer.concat(says));
    assert.equal((await requested).end.type, count > 500 ? "lost" : "ended");
  });
}

test("a ping of the server is answered, and the answer to a ping of the client is reported", async (t) => {
  let got = Buffer.alloc(0);
  const origin = await aTalker(t, (socket) => {
    socket.on("data", (chunk: Buffer) => {
      got = Buffer.concat([got, chunk]);
    });
    socket.write(
      Buffer.concat([hello, frame(frameTypes.ping, 0, 0, Buffer.from("8 octets")), numberFrame(frameTypes.windowUpdate, 0, 1)]),
    );
  });
  await connected(t, origin);
  const wanted = frame(frameTypes.ping, flags.ack, 0, Buffer.from("8 octets"));
  await waitFor(() => got.includes(wanted), { what: "the answer to a ping" });
  const { made } = await connected(t, await anEcho(t, {}));
  await new Promise<void>((resolve) => made.ping(resolve));
});

for (const withRequest of [true, false]) {
  test(`the answer to a ping is sent ${withRequest ? "with the next request, in one piece" : "alone when none comes"}`, async (t) => {
    const pieces: Buffer[] = [];
    let talker: Socket | undefined;
    const origin = await aTalker(t, (socket) => {
      socket.on("data", (chunk: Buffer) => void pieces.push(chunk));
      socket.write(hello);
      talker = socket;
    });
    let heard = 0;
    const made = connectTo(origin, { ready() {}, heard: () => void heard++, leaving() {}, closed() {} });
    t.after(() => made.destroy(new Error("the test is over")));
    await waitFor(() => pieces.length > 0, { what: "the client's answer to the settings" });

    t.mock.timers.enable({ apis: ["setTimeout"] });
    const pong = frame(frameTypes.ping, flags.ack, 0, Buffer.from("8 octets"));
    const turnsUntil = async (done: () => boolean): Promise<void> => {
      for (let turns = 0; !done() && turns < 100_000; turns++) await new Promise(setImmediate);
    };
    const isAnswered = (): boolean => Buffer.concat(pieces).includes(pong);
    heard = 0;
    talker?.write(frame(frameTypes.ping, 0, 0, Buffer.from("8 octets")));
    await turnsUntil(() => heard > 0);
    for (let turn = 0; turn < 20; turn++) await new Promise(setImmediate);
    assert.ok(!isAnswered());
    if (withRequest) void send(made, bytes(1));
    else t.mock.timers.tick(1_000);
    await turnsUntil(isAnswered);
    assert.ok(pieces.some((piece) => piece.includes(pong) && piece.includes(post) === withRequest));
  });
}

test("a stream sends what its window allows, and more of every stream when a window grows or the settings do", async (t) => {
  const { send, says, turn, begin } = aPipe(t, [settings.initialWindowSize, 10]);
  await begin();
  send("a", 25);
  send("b", 12);
  assert.deepEqual(await turn(), ["headers 1", "data 1 10", "headers 3", "data 3 10"]);
  assert.deepEqual(await says(grant(3, 1)), ["data 3 1"]);
  assert.deepEqual(await says(grant(0, 1000)), []);
  assert.deepEqual(await says(settingsFrame([[settings.initialWindowSize, 14]])), ["data 1 4", "data 3 1 end"]);
  assert.deepEqual(await says(grant(1, 100)), ["data 1 11 end"]);
  send("c", 20);
  assert.deepEqual(await turn(), ["headers 5", "data 5 14"]);
  assert.deepEqual(await says(grant(5, 6)), ["data 5 6 end"]);
});

test("an exhausted connection window blocks all streams until it opens", async (t) => {
  const { send, says, turn, begin } = aPipe(t, [settings.initialWindowSize, 1_000_000]);
  await begin();
  send("a", 65_535);
  const pieces = Array(3).fill("data 1 16384");
  send("b", 30);
  const c = send("c", 20, false);
  assert.deepEqual(await turn(), ["headers 1", ...pieces, "data 1 16383 end", "headers 3", "headers 5"]);
  assert.deepEqual(await says(grant(3, 1)), []);
  assert.deepEqual(await says(grant(0, 40)), ["data 3 30 end", "data 5 10"]);
  c.write(bytes(3));
  assert.deepEqual(await says(grant(0, 100)), ["data 5 10", "data 5 3"]);
});

test("received bytes are returned when half of the window is used, those of a stream only while it is open", async (t) => {
  const { send, says, turn, begin } = aPipe(t);
  await begin();
  send("a", 1);
  send("b", 1);
  await turn();
  assert.deepEqual(await says(ok(1), ok(3)), []);
  const full = Buffer.alloc(defaultMaxFrameBytes);
  const data = (id: number, flag = 0): Buffer => frame(frameTypes.data, flag, id, full);
  const half = 8 * 1024 * 1024;
  const frames = half / defaultMaxFrameBytes;
  assert.deepEqual(await says(...Array.from({ length: frames }, () => data(1))), []);
  const more = half + defaultMaxFrameBytes;
  assert.deepEqual(await says(data(1)), [`windowUpdate 0 ${more}`, `windowUpdate 1 ${more}`]);
  // Stream 3 uses up the other half of the connection's window; its own window update would come with its last frame.
  assert.deepEqual(await says(...Array.from({ length: frames }, () => data(3))), []);
  assert.deepEqual(await says(data(3, flags.endStream)), [`windowUpdate 0 ${more}`]);
});

test("requests wait for the server's limit; one cancelled meanwhile is never sent, and a cancelled running one frees a stream", async (t) => {
  const { send, says, turn, begin, ends, made } = aPipe(t, [settings.maxConcurrentStreams, 1]);
  await begin();
  const a = send("a", 1);
  const b = send("b", 1);
  send("c", 1);
  send("d", 1);
  assert.deepEqual(await turn(), ["headers 1", "data 1 1 end"]);
  b.cancel();
  a.cancel();
  a.cancel();
  assert.deepEqual(await turn(), [`resetStream 1 ${errorCodes.cancel}`, "headers 3", "data 3 1 end"]);
  const refused = await says(numberFrame(frameTypes.resetStream, 3, errorCodes.refusedStream));
  assert.deepEqual(refused, ["headers 5", "data 5 1 end"]);
  send("e", 1);
  made.destroy(new Error("over"));
  await turn();
  assert.deepEqual(ends, ["c refused", "d lost", "e refused"]);
});

test("a response before the end of the request resets the stream once, a response after it does not", async (t) => {
  const { send, says, turn, begin, ends } = aPipe(t);
  await begin();
  const a = send("a", 1, false);
  send("b", 1);
  await turn();
  assert.deepEqual(await says(answered(1), answered(3)), [`resetStream 1 ${errorCodes.cancel}`]);
  a.write(bytes(1));
  a.cancel();
  assert.deepEqual([await turn(), ends], [[], ["a ended", "b ended"]]);
});

test("the connection to a closing server ends with the last response, and reports it once", async (t) => {
  const { send, says, turn, begin, ends, events, socket, made } = aPipe(t, [settings.maxConcurrentStreams, 3]);
  await begin();
  for (const name of ["a", "b", "c", "d"]) send(name, 1);
  await turn();
  const goAway = (last: number): Buffer => frame(frameTypes.goAway, 0, 0, Buffer.from([0, 0, 0, last, 0, 0, 0, errorCodes.none]));
  await says(goAway(3));
  assert.deepEqual([ends, events], [["d refused", "c refused"], ["leaving"]]);
  assert.throws(() => made.request(post, bytes(1), true, { fields() {}, data() {}, closed() {} }), /accepts no new streams/);
  await says(goAway(3), answered(1));
  assert.equal(socket.destroyed, false);
  await says(answered(3));
  assert.deepEqual([socket.destroyed, ends.slice(2), events], [true, ["a ended", "b ended"], ["leaving", "closed"]]);
});

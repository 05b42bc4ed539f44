/** Hostile clients: each is limited or disconnected, and other clients are still served. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { test } from "node:test";
import { heldBytes } from "../testing/held-bytes.ts";
import { type Http2Bench, holdTime, startHttp2Bench } from "../testing/http2-bench.ts";
import { settle, waitFor } from "../testing/wait-for.ts";
import { floods, onStreams, unfinished } from "../transport/http2/testing/floods.ts";
import type { RawClient } from "../transport/http2/testing/raw-client.ts";
import {
  continuationFrame,
  dataFrame,
  getFrame,
  goAwayFrame,
  headersFrame,
  indexedBlock,
  literalBlock,
  pingFrame,
  postFrame,
  requestFields,
  resetFrame,
  windowFrame,
} from "../transport/http2/testing/raw-frames.ts";
import { flags, preface, settings, settingsFrame } from "../transport/http2/wire/frames.ts";
import type { ExchangeHandler, ResponseStream } from "./exchange.ts";

const MB = 2 ** 20;

/** `/hold` waits until its client disconnects, `/big` is 2 MB, other paths are answered at once. */
const handler: ExchangeHandler = async (exchange) => {
  if (exchange.url === "/hold") await once(exchange.signal, "abort");
  else if (exchange.url === "/big") exchange.respond(200, {}, big);
  else exchange.respond(200, {}, "ok");
};
const big = Buffer.alloc(2 * MB, "x");

/** Checks that another client is served promptly. */
async function servesOthers(bench: Http2Bench): Promise<void> {
  const cpu = process.cpuUsage();
  const other = await bench.connect();
  other.send(getFrame(1));
  assert.equal((await other.answer(1)).status, 200);
  const { user, system } = process.cpuUsage(cpu);
  assert.ok(user + system < 1_000_000, `another client waited while ${(user + system) / 1000} ms were worked`);
  other.socket.destroy();
}

/** Measures CPU time and memory growth. Client and server share the process, hence the wide bounds. */
function newGauge(): () => { cpuMs: number; heldBytes: number } {
  const cpu = process.cpuUsage();
  const before = heldBytes();
  return () => {
    const { user, system } = process.cpuUsage(cpu);
    return { cpuMs: (user + system) / 1000, heldBytes: heldBytes() - before };
  };
}

const end = flags.endStream;
const times = 20_000;

for (const { name, first = [], again, count } of Object.entries(floods).map(([name, flood]) => ({
  name,
  ...flood,
  count: flood.times ?? times,
}))) {
  test(`a flood of ${name} is stopped`, async (t) => {
    const bench = await startHttp2Bench(t, handler);
    const client = await bench.connect();
    const gauge = newGauge();
    client.send(...first);
    const sent = await client.flood(Buffer.concat(Array(20).fill(again)), count / 20);
    assert.match(await client.end(), /^connection (ENHANCE_YOUR_CALM|PROTOCOL_ERROR|STREAM_CLOSED|COMPRESSION_ERROR|closed)$/);
    const { cpuMs, heldBytes } = gauge();
    assert.ok(cpuMs < 4000 && heldBytes < 128 * MB, `${sent} frames, ${cpuMs} ms, ${heldBytes} bytes`);
    await servesOthers(bench);
    client.socket.destroy();
    await waitFor(() => bench.server.active === 0, { what: "the handlers to hear of the end" });
  });
}

test("a client may send two WINDOW_UPDATE frames for each stream, and more for what it was sent", async (t) => {
  const bench = await startHttp2Bench(t, handler);
  const client = await bench.connect();
  const updates = (stream: number, count: number): Buffer[] =>
    Array.from({ length: count }, () => [windowFrame(0, 1), windowFrame(stream, 1)]).flat();
  const [streams, long] = [1_500, 4_001];
  for (let at = 0; at < streams; at++) {
    const stream = 2 * at + 1;
    client.send(getFrame(stream), ...updates(stream, 1));
    assert.equal((await client.answer(stream)).status, 200);
  }
  client.send(windowFrame(0, 4 * MB), getFrame(long, "/big"), windowFrame(long, 4 * MB));
  assert.equal((await client.answer(long)).status, 200);
  client.send(...updates(long, 2_000));
  await client.ping();
  client.socket.destroy();
});

test("PINGs of a client that does not read do not accumulate in memory", async (t) => {
  const bench = await startHttp2Bench(t, handler);
  const client = await bench.connect();
  await client.ping();
  client.socket.pause();
  const gauge = newGauge();
  // Sends until the server stops reading or closes: socket buffers of both sides hold several MB.
  const chunk = Buffer.concat(Array(1000).fill(pingFrame("12345678")));
  let isStopped = false;
  client.socket.once("close", () => {
    isStopped = true;
  });
  for (let sent = 0; sent < 600 && client.socket.writableLength < 4 * MB && !isStopped; sent++) {
    client.socket.write(chunk);
    await new Promise(setImmediate);
  }
  const { heldBytes } = gauge();
  assert.ok(heldBytes < 64 * MB, `${heldBytes} bytes`);
  await servesOthers(bench);
});

test("rapid reset: no more handlers run at a time than the stream limit, and the connection is closed", async (t) => {
  let [now, most] = [0, 0];
  const finish = Promise.withResolvers<void>();
  const bench = await startHttp2Bench(
    t,
    async (exchange) => {
      if (exchange.url === "/") return exchange.respond(200, {});
      most = Math.max(most, ++now);
      await finish.promise; // ignores its signal
      now--;
    },
    { maxConcurrentStreams: 50 },
  );
  const client = await bench.connect();
  for (let at = 0; at < 10_000 && !client.isClosed; at += 100) {
    await client.flood(
      onStreams(at, 100, (stream) => [getFrame(stream, "/slow"), resetFrame(stream)]),
      1,
    );
  }
  await servesOthers(bench);
  assert.ok(most <= 2 * 50, `${most} handlers at a time`);
  assert.match(await client.end(), /^connection (ENHANCE_YOUR_CALM|closed)$/);
  finish.resolve();
  await waitFor(() => bench.server.active === 0 && now === 0, { what: "the handlers to end" });
});

test("an endless sequence of malformed requests is stopped", async (t) => {
  const bench = await startHttp2Bench(t, handler);
  const client = await bench.connect();
  const bad = literalBlock([["connection", "x"]]);
  for (let at = 0; at < 20_000 && !client.isClosed; at += 100) {
    await client.flood(
      onStreams(at, 100, (stream) => [headersFrame(stream, bad)]),
      1,
    );
  }
  assert.match(await client.end(), /^connection (ENHANCE_YOUR_CALM|closed)$/);
  await servesOthers(bench);
});

test("resets that the server is made to send are counted like those of the client", async (t) => {
  const bench = await startHttp2Bench(t, async (exchange) => {
    if (exchange.url === "/") return exchange.respond(200, {});
    await once(exchange.signal, "abort");
  });
  const client = await bench.connect();
  // An overflow of the window resets the stream (CVE-2025-8671).
  for (let at = 0; at < 10_000 && !client.isClosed; at += 100) {
    await client.flood(
      onStreams(at, 100, (stream) => [getFrame(stream, "/hold"), windowFrame(stream, 2 ** 31 - 1)]),
      1,
    );
  }
  assert.match(await client.end(), /^connection (ENHANCE_YOUR_CALM|closed)$/);
  await servesOthers(bench);
  await waitFor(() => bench.server.active === 0, { what: "the handlers to end" });
});

test("thousands of references to a large field do not multiply its memory", async (t) => {
  let handled = 0;
  const bench = await startHttp2Bench(t, (exchange) => {
    if (exchange.url === "/bomb") handled++;
    exchange.respond(200, {});
  });
  const client = await bench.connect();
  const request = literalBlock(requestFields("GET", "/bomb"));
  const gauge = newGauge();
  client.send(
    headersFrame(1, Buffer.concat([literalBlock(requestFields("GET", "/")), indexedBlock([["a", "b".repeat(4000)]])])),
    ...Array.from({ length: 20 }, (_, i) => headersFrame(3 + 2 * i, Buffer.concat([request, Buffer.alloc(16_000, 0xbe)]))),
  );
  assert.match(await client.outcome(41), /^(status 431|connection .*|stream .*)$/);
  const { cpuMs, heldBytes } = gauge();
  assert.ok(cpuMs < 2000 && heldBytes < 64 * MB, `${cpuMs} ms, ${heldBytes} bytes`);
  assert.equal(handled, 0);
  await servesOthers(bench);
});

test("a body in frames of one byte does not multiply its memory", async (t) => {
  let isRead = false;
  const bench = await startHttp2Bench(t, async (exchange) => {
    if (exchange.url !== "/body") return exchange.respond(200, {});
    await exchange.body(10 * MB);
    isRead = true;
  });
  const client = await bench.connect();
  client.send(postFrame(1, "/body"));
  await client.ping();
  const gauge = newGauge();
  const bytes = Buffer.concat(Array(1000).fill(dataFrame(1, "x")));
  for (let sent = 0; sent < 400; sent++) {
    await client.until(() => client.streamCredit(1) >= 1000, "room for more");
    client.sendData(1, bytes, 1000);
  }
  await client.ping();
  const { heldBytes } = gauge();
  assert.ok(heldBytes < 16 * MB, `${heldBytes} bytes`);
  assert.equal(isRead, false);
  await servesOthers(bench);
});

test("any amount of frames on reset streams is ignored without harm", async (t) => {
  const bench = await startHttp2Bench(t, (exchange) => (exchange.url === "/" ? exchange.respond(200, {}) : exchange.destroy()));
  const client = await bench.connect();
  const streams = Array.from({ length: 20 }, (_, i) => 1 + 2 * i);
  client.send(...streams.map((stream) => postFrame(stream, "/broken")));
  await client.ping();
  for (const stream of streams) {
    await client.until(() => client.resetCode(stream) !== undefined, "the end of the stream");
    const data = Buffer.concat([...Array<Buffer>(199).fill(dataFrame(stream, "x".repeat(500))), dataFrame(stream, "", end)]);
    await client.until(() => client.connectionCredit > 100_000, "room for more");
    client.sendData(stream, data, 199 * 500);
  }
  assert.ok(await client.isAlive());
  client.send(getFrame(1001));
  assert.equal((await client.answer(1001)).status, 200);
});

for (const { name, window, stop } of [
  { name: "whose windows stay shut", window: 0, stop: false },
  { name: "whose windows open by one byte", window: 1, stop: false },
  { name: "that does not read", window: 2 ** 31 - 1, stop: true },
]) {
  test(`responses to a client ${name} are dropped after answerTimeoutMs`, async (t) => {
    const advance = holdTime(t);
    const bench = await startHttp2Bench(t, handler, { answerTimeoutMs: 80, headersCheckMs: 20 });
    const client = await bench.connect({ settings: [[settings.initialWindowSize, window]], moreWindow: 2 ** 30 });
    const streams = Array.from({ length: 20 }, (_, i) => 1 + 2 * i);
    client.send(...streams.map((stream) => getFrame(stream, "/big")));
    if (stop) client.socket.pause();
    await waitFor(() => bench.server.active > 0, { what: "the answers to be held" });
    if (window === 1) client.send(...streams.map((stream) => windowFrame(stream, 1)));
    await advance(80, () => bench.server.active === 0, "the answers to be given up");
    client.socket.resume();
    // Responses that were already in the socket buffers may be complete.
    const isOver = (stream: number): boolean => client.isWhole(stream) || client.resetCode(stream) !== undefined;
    await client.until(() => streams.every(isOver) || client.isClosed, "their ends");
    assert.ok(streams.some((stream) => !client.isWhole(stream)));
    await servesOthers(bench);
  });
}

test("a handler that writes for a client that does not read is held back, and its signal is aborted when the client is gone", async (t) => {
  let stream: ResponseStream | undefined;
  let written = 0;
  const bench = await startHttp2Bench(t, (exchange) => {
    if (exchange.url === "/") return exchange.respond(200, {});
    stream = exchange.stream(200, {});
  });
  const client = await bench.connect({ settings: [[settings.initialWindowSize, 2 ** 31 - 1]], moreWindow: 2 ** 30 });
  client.send(getFrame(1, "/watch"));
  await client.next("headers", 1).catch(() => {});
  client.socket.pause();
  const chunk = Buffer.alloc(64 * 1024);
  const { write, drained } = await waitFor(() => stream, { what: "the handler" }).then((one) => ({
    write: () => one.write(chunk),
    drained: () => one.drained(),
  }));
  // Socket buffers hold several MB. Yields to the event loop, as nothing is sent otherwise.
  let isFull = false;
  for (; written < 1000 && !isFull; written++) {
    if (write()) continue;
    isFull = true;
    const reading = drained().then(() => {
      isFull = false;
    });
    await Promise.race([reading, new Promise((resolve) => setTimeout(resolve, 100))]);
    if (isFull) await settle(); // the process may have been suspended; process what has arrived meanwhile
  }
  assert.ok(isFull, "it could write without end");
  const rejected = assert.rejects(drained());
  client.socket.destroy();
  await rejected;
  await servesOthers(bench);
});

test("connections without a request are closed in time, those with one are not", async (t) => {
  const advance = holdTime(t);
  const bench = await startHttp2Bench(t, handler, { idleTimeoutMs: 250, headersCheckMs: 20 });
  const idle = await Promise.all(Array.from({ length: 50 }, () => bench.connect()));
  const busy = await bench.connect();
  busy.send(getFrame(1, "/hold"));
  await busy.ping();
  await advance(250, () => bench.server.connections === 1, "the end of the idle");
  assert.ok(idle.every((client) => client.of("goAway").every(({ payload }) => payload.readUInt32BE(4) === 0)));
  assert.ok(await busy.isAlive());
});

test("incomplete headers close the connection after headersTimeoutMs", async (t) => {
  const advance = holdTime(t);
  const bench = await startHttp2Bench(t, handler, { headersTimeoutMs: 200, headersCheckMs: 20 });
  const client = await bench.connect();
  await client.ping();
  client.send(unfinished);
  await advance(200, () => client.isClosed, "its end");
  await servesOthers(bench);
});

test("when incomplete header blocks are too many, the oldest are dropped", async (t) => {
  const bench = await startHttp2Bench(t, handler, { maxHeaderBytes: 8 * MB });
  // 4 MB in 256 frames; seventeen such blocks exceed the process-wide limit.
  const parts = Buffer.concat(Array(255).fill(continuationFrame(1, Buffer.alloc(16_384), 0)));
  const clients: RawClient[] = [];
  for (let i = 0; i < 17; i++) {
    const client = await bench.connect();
    clients.push(client);
    await client.ping(); // its SETTINGS acknowledgement was sent
    await client.flood(Buffer.concat([headersFrame(1, Buffer.alloc(16_384), end), parts]), 1);
  }
  const [first, second] = clients as [RawClient, RawClient];
  assert.equal(await first.end(), "connection ENHANCE_YOUR_CALM");
  second.socket.destroy();
  await waitFor(() => bench.server.connections === 15, { what: "both to be gone" });
  const late = await bench.connect();
  late.send(unfinished, continuationFrame(1, Buffer.alloc(0)));
  assert.equal((await late.answer(1)).status, 200);
  assert.ok(clients.slice(2).every((client) => !client.isClosed));
});

const half = Buffer.concat([preface, settingsFrame([]), getFrame(1, "/hold"), postFrame(3, "/hold"), dataFrame(3, "0123456789")]);
for (const { name, bytes } of [
  { name: "the preface", bytes: half.subarray(0, 10) },
  { name: "a frame's head", bytes: Buffer.concat([half, Buffer.of(0, 0)]) },
  { name: "a frame's content", bytes: half.subarray(0, -5) },
  { name: "a block of headers", bytes: Buffer.concat([half, headersFrame(5, literalBlock(requestFields("GET", "/")), end)]) },
  { name: "requests", bytes: half },
  { name: "nothing", bytes: Buffer.alloc(0) },
]) {
  for (const how of ["end", "destroy"] as const) {
    test(`a connection that the client ${how === "end" ? "closes" : "resets"} during ${name} leaves no state behind`, async (t) => {
      const bench = await startHttp2Bench(t, handler);
      const client = await bench.connect({ isSilent: true });
      client.socket.write(bytes);
      if (bytes.length >= half.length - 5) await waitFor(() => bench.server.active === 2, { what: "the requests" });
      if (how === "end") client.socket.end();
      else client.socket.destroy();
      await waitFor(() => bench.server.active === 0 && bench.server.connections === 0, { what: "the end of it all" });
      await servesOthers(bench);
    });
  }
}

const conversation = [
  preface,
  settingsFrame([]),
  getFrame(1),
  postFrame(3),
  dataFrame(3, "ab"),
  dataFrame(3, "", end),
  getFrame(5),
];
for (const { name, pieces } of [
  { name: "byte by byte", pieces: Array.from(Buffer.concat(conversation), (octet) => Buffer.of(octet)) },
  { name: "in one piece", pieces: [Buffer.concat(conversation)] },
]) {
  test(`requests that a client sends ${name} are served`, async (t) => {
    const bench = await startHttp2Bench(t, async (exchange) => exchange.respond(200, {}, await exchange.body(10)));
    const client = await bench.connect({ isSilent: true });
    for (const piece of pieces) {
      client.socket.write(piece);
      await new Promise(setImmediate);
    }
    const answers = await Promise.all([1, 3, 5].map((stream) => client.answer(stream)));
    assert.deepEqual(
      answers.map(({ body }) => String(body)),
      ["", "ab", ""],
    );
  });
}

test("requests that a client sends after its own GOAWAY do not keep its connection open", async (t) => {
  const bench = await startHttp2Bench(t, handler);
  const client = await bench.connect();
  const more = Array.from({ length: 100 }, (_, i) => getFrame(3 + 2 * i, "/hold"));
  client.send(getFrame(1), goAwayFrame(0), ...more);
  assert.match(await client.end(), /^connection /);
  await waitFor(() => bench.server.active === 0 && bench.server.connections === 0, { what: "the end of it all" });
  await servesOthers(bench);
});

test("rapid reset over many connections is stopped too, and no other client of that address", async (t) => {
  const bench = await startHttp2Bench(t, handler);
  const resets = 900; // below the limit of one connection
  const pairs = (from: number): Buffer => Buffer.concat([getFrame(from, "/hold"), resetFrame(from)]);
  let ended = 0;
  for (let connection = 0; connection < 4; connection++) {
    const client = await bench.connect();
    for (let at = 0; at < resets && !client.isClosed; at++) client.send(pairs(1 + 2 * at));
    const how = await Promise.race([
      client.end(),
      client.ping().then(
        () => "alive",
        () => client.end(),
      ),
    ]);
    if (how !== "alive") {
      assert.equal(how, "connection ENHANCE_YOUR_CALM");
      ended++;
    }
    client.socket.destroy();
  }
  assert.ok(ended >= 2, `${ended} connections were ended`);
  const other = await bench.connect();
  other.send(...Array.from({ length: 20 }, (_, at) => pairs(1 + 2 * at)), getFrame(101));
  assert.equal((await other.answer(101)).status, 200);
});

test("resets that the server is made to send are counted across connections", async (t) => {
  const bench = await startHttp2Bench(t, handler);
  const provoked = 900; // below the limit of one connection
  // An overflow of the window resets the stream (CVE-2025-8671).
  const pair = (stream: number): Buffer => Buffer.concat([getFrame(stream, "/hold"), windowFrame(stream, 2 ** 31 - 1)]);
  const outcomes: string[] = [];
  for (let connection = 0; connection < 4; connection++) {
    const client = await bench.connect();
    for (let at = 0; at < provoked && !client.isClosed; at++) client.send(pair(1 + 2 * at));
    const ended = client.end();
    const alive = client.ping().then(
      () => "alive",
      () => ended,
    );
    outcomes.push(await Promise.race([ended, alive]));
    client.socket.destroy();
  }
  assert.equal(outcomes[0], "alive");
  assert.ok(outcomes.filter((how) => how === "connection ENHANCE_YOUR_CALM").length >= 2, outcomes.join());
  await waitFor(() => bench.server.active === 0, { what: "the handlers to end" });
});

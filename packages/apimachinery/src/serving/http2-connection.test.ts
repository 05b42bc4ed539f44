/** Life cycle of connections and streams. Source: RFC 9113, sections 3 to 6 */
import assert from "node:assert/strict";
import { once } from "node:events";
import { test } from "node:test";
import { holdTime, startHttp2Bench } from "../testing/http2-bench.ts";
import { waitFor } from "../testing/wait-for.ts";
import {
  dataFrame,
  getFrame,
  goAwayFrame,
  headersFrame,
  indexedBlock,
  literalBlock,
  pingFrame,
  postFrame,
  priorityFrame,
  requestFields,
  resetFrame,
  windowFrame,
} from "../transport/http2/testing/raw-frames.ts";
import { flags, frameTypes, preface, settings, settingsFrame } from "../transport/http2/wire/frames.ts";
import type { ExchangeHandler } from "./exchange.ts";

/** `/hold` is never answered, other paths report the length of the body. */
const handler: ExchangeHandler = async (exchange) => {
  if (exchange.url === "/hold") return void (await once(exchange.signal, "abort"));
  const body = await exchange.body(1_000_000);
  exchange.respond(200, {}, String(body.length));
};

const request = literalBlock(requestFields("GET", "/"));

const beginnings: Readonly<Record<string, readonly Buffer[]>> = {
  "another preface": [Buffer.from(preface.toString("latin1").replace("SM", "XX"), "latin1"), settingsFrame([]), getFrame(1)],
  "a request of HTTP/1.1": [Buffer.from("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")],
  "no SETTINGS behind the preface": [preface, getFrame(1)],
  "no preface": [settingsFrame([]), getFrame(1)],
};
for (const [name, send] of Object.entries(beginnings)) {
  test(`3.4 preface: ${name} ends the connection`, async (t) => {
    const bench = await startHttp2Bench(t, () => assert.fail("a handler was called"));
    const client = await bench.connect({ isSilent: true });
    client.send(...send);
    assert.ok(["connection PROTOCOL_ERROR", "connection closed"].includes(await client.end()));
  });
}

test("3.4 preface: one that is not finished holds the connection no longer than headersTimeoutMs", async (t) => {
  const advance = holdTime(t);
  const bench = await startHttp2Bench(t, handler, { headersTimeoutMs: 200, headersCheckMs: 20 });
  const clients = await Promise.all([bench.connect({ isSilent: true }), bench.connect({ isSilent: true }), bench.connect()]);
  const [, slow, quick] = clients;
  slow.send(preface.subarray(0, 10));
  // A client that has sent the whole preface is not affected.
  quick.send(getFrame(1, "/hold"));
  await quick.ping();
  await advance(200, () => bench.server.connections === 1, "the end of those that do not begin");
  assert.ok(await quick.isAlive());
});

test("3.4 preface: SETTINGS of the server are the first that it sends, and allow no more than it can", async (t) => {
  const bench = await startHttp2Bench(t, handler, { maxConcurrentStreams: 17 });
  const client = await bench.connect();
  client.send(getFrame(1));
  await client.answer(1);
  const [first] = client.frames;
  assert.deepEqual([first?.type, first?.flag, first?.stream], [frameTypes.settings, 0, 0]);
  assert.equal(client.serverSettings.get(settings.maxConcurrentStreams), 17);
  assert.equal(client.serverSettings.get(settings.maxFrameSize) ?? 16_384, 16_384);
});

test("4.3 field blocks: header table entries of a request are available to later requests, whatever its outcome", async (t) => {
  const bench = await startHttp2Bench(t, (exchange) => exchange.respond(200, {}, String(exchange.headers["a"])));
  const client = await bench.connect();
  // Two malformed requests, and one that the client resets.
  client.send(
    headersFrame(1, Buffer.concat([literalBlock(requestFields("GET", "/", [["Upper", "x"]])), indexedBlock([["a", "1"]])])),
    headersFrame(3, Buffer.concat([literalBlock([["connection", "x"]]), indexedBlock([["a", "2"]])])),
    headersFrame(5, Buffer.concat([request, indexedBlock([["a", "3"]])])),
    resetFrame(5),
    ...[62, 63, 64].map((index, at) => headersFrame(7 + 2 * at, Buffer.concat([request, Buffer.of(0x80 | index)]))),
  );
  const answers = await Promise.all([7, 9, 11].map((stream) => client.answer(stream)));
  assert.deepEqual(
    answers.map(({ body }) => String(body)),
    ["3", "2", "1"],
  );
});

for (const { name, send, want } of [
  { name: "WINDOW_UPDATE", send: windowFrame(1, 1000), want: undefined },
  { name: "RST_STREAM", send: resetFrame(1), want: undefined },
  { name: "PRIORITY", send: priorityFrame(1, 3), want: undefined },
  { name: "DATA", send: dataFrame(1, "x"), want: "connection STREAM_CLOSED" },
  { name: "HEADERS", send: getFrame(1), want: "connection STREAM_CLOSED" },
]) {
  test(`5.1 closed streams: ${name} hurts no other stream${want === undefined ? "" : `, or is ${want}`}`, async (t) => {
    const bench = await startHttp2Bench(t, handler);
    const client = await bench.connect();
    client.send(getFrame(1));
    await client.answer(1);
    client.send(send, getFrame(3));
    const outcome = await client.outcome(3);
    if (outcome !== "status 200") assert.equal(outcome, want);
    // Frames that may arrive late are no error.
    else if (want === undefined) assert.equal(client.resetCode(1), undefined);
  });
}

test("5.1.2 limits: streams beyond the limit are refused, and the others continue", async (t) => {
  let mostAtATime = 0;
  const bench = await startHttp2Bench(
    t,
    async (exchange) => {
      mostAtATime = Math.max(mostAtATime, bench.server.active);
      exchange.respond(200, {}, await exchange.body(100));
    },
    { maxConcurrentStreams: 3 },
  );
  const client = await bench.connect();
  client.send(...[1, 3, 5, 7, 9].map((stream) => postFrame(stream)));
  assert.deepEqual(await Promise.all([client.outcome(7), client.outcome(9)]), ["stream REFUSED_STREAM", "stream REFUSED_STREAM"]);
  client.send(...[1, 3, 5].map((stream) => dataFrame(stream, `body ${stream}`, flags.endStream)));
  const answers = await Promise.all([1, 3, 5].map((stream) => client.answer(stream)));
  assert.deepEqual(
    answers.map(({ body }) => String(body)),
    ["body 1", "body 3", "body 5"],
  );
  client.send(getFrame(11));
  assert.equal((await client.answer(11)).status, 200);
  assert.equal(mostAtATime, 3);
});

test("6.4 RST_STREAM: the handler is aborted, and nothing more is sent to the client", async (t) => {
  let notifications = 0;
  const bench = await startHttp2Bench(t, async (exchange) => {
    if (exchange.url !== "/hold") return exchange.respond(200, {});
    await once(exchange.signal, "abort");
    notifications++;
    exchange.respond(200, {}, "too late");
  });
  const client = await bench.connect();
  client.send(getFrame(1, "/hold"), postFrame(3, "/hold"));
  await client.ping();
  client.send(resetFrame(1), resetFrame(3));
  await waitFor(() => notifications === 2, { what: "the handlers to hear of it" });
  client.send(getFrame(5));
  await client.answer(5);
  assert.deepEqual(
    client.frames.filter(({ stream }) => stream === 1 || stream === 3),
    [],
  );
  assert.equal(bench.server.active, 0);
});

test("6.5.3 SETTINGS: each is acknowledged before later frames are answered", async (t) => {
  const bench = await startHttp2Bench(t, handler);
  const client = await bench.connect();
  client.send(
    settingsFrame([]),
    pingFrame("--one---"),
    settingsFrame([[settings.enablePush, 0]]),
    settingsFrame([]),
    pingFrame("--two---"),
  );
  await client.until(() => client.of("ping").length === 2, "two answers");
  const order = client.frames
    .filter(({ flag, stream, type }) => stream === 0 && flag === flags.ack && type !== frameTypes.windowUpdate)
    .map(({ type, payload }) => (type === frameTypes.ping ? payload.toString("latin1") : "acknowledged"));
  assert.equal(order.filter((what) => what === "acknowledged").length, 4);
  assert.deepEqual(
    order.filter((what) => what !== "acknowledged"),
    ["--one---", "--two---"],
  );
});

test("6.8 GOAWAY: running requests are completed, then the connection closes", async (t) => {
  const bench = await startHttp2Bench(t, handler);
  const client = await bench.connect();
  client.send(postFrame(1), goAwayFrame(0), dataFrame(1, "abc"));
  await client.ping();
  client.send(dataFrame(1, "def", flags.endStream));
  const { status, body } = await client.answer(1);
  assert.deepEqual([status, String(body)], [200, "6"]);
  assert.equal(await client.end(), "connection closed");
});

/** Flow control of both directions, to the byte. Source: RFC 9113, sections 5.2 and 6.9 */
import assert from "node:assert/strict";
import { once } from "node:events";
import type { Readable } from "node:stream";
import { test } from "node:test";
import { startHttp2Bench } from "../testing/http2-bench.ts";
import { waitFor } from "../testing/wait-for.ts";
import type { RawClient } from "../transport/http2/testing/raw-client.ts";
import {
  dataFrame,
  getFrame,
  headersFrame,
  paddedDataFrame,
  postFrame,
  requestFields,
  resetFrame,
  windowFrame,
} from "../transport/http2/testing/raw-frames.ts";
import { defaultWindowBytes, flags, settings, settingsFrame } from "../transport/http2/wire/frames.ts";
import type { Exchange, ExchangeHandler, ResponseStream } from "./exchange.ts";

/** `/20000`: that many bytes; `/20000?stream`: without a length, ended by an empty write. */
const handler: ExchangeHandler = (exchange) => {
  const [path = "", query] = exchange.url.split("?");
  const body = pattern(Number(path.slice(1)));
  if (query === undefined) return exchange.respond(200, {}, body);
  const stream = exchange.stream(200, {});
  if (body.length > 0) stream.write(body);
  stream.end();
};

/** Bytes that depend on their position. */
function pattern(length: number): Buffer {
  return Buffer.from(Array.from({ length }, (_, at) => (at * 31 + (at >> 8)) & 0xff));
}

const initialWindow = (bytes: number) => [[settings.initialWindowSize, bytes]] as const;

/** Bytes received once everything allowed has arrived. Pings twice, because the response may be queued behind the first reply. */
async function received(client: RawClient, stream: number, want: number): Promise<number> {
  await client.until(() => client.body(stream).length >= want || client.isClosed, `${want} bytes on ${stream}`);
  await client.ping();
  await client.ping();
  return client.body(stream).length;
}

for (const kind of ["", "?stream"]) {
  test(`6.9.1: an answer${kind} is cut where the stream's window ends, and continues when it opens`, async (t) => {
    const client = await (await startHttp2Bench(t, handler)).connect({ settings: initialWindow(1000) });
    client.send(getFrame(1, `/20000${kind}`));
    let open = 1000;
    assert.equal(await received(client, 1, open), open);
    for (const more of [1, 1, 1, 999, 16_384]) {
      client.send(windowFrame(1, more));
      open += more;
      assert.equal(await received(client, 1, open), open);
    }
    assert.equal(client.isWhole(1), false);
    client.send(windowFrame(1, 20_000 - open));
    assert.deepEqual((await client.answer(1)).body, pattern(20_000));
  });

  test(`6.9.1: an answer${kind} is cut where the connection's window ends`, async (t) => {
    const client = await (await startHttp2Bench(t, handler)).connect({ settings: initialWindow(2 ** 31 - 1) });
    client.send(getFrame(1, `/100000${kind}`));
    assert.equal(await received(client, 1, defaultWindowBytes), defaultWindowBytes);
    client.send(windowFrame(0, 1));
    assert.equal(await received(client, 1, defaultWindowBytes + 1), defaultWindowBytes + 1);
    client.send(windowFrame(0, 100_000));
    assert.deepEqual((await client.answer(1)).body, pattern(100_000));
  });

  test(`6.9.1: an answer${kind} arrives byte by byte when the window opens by single bytes`, async (t) => {
    const client = await (await startHttp2Bench(t, handler)).connect({ settings: initialWindow(0) });
    client.send(getFrame(1, `/40${kind}`));
    assert.equal(await received(client, 1, 0), 0);
    for (let open = 1; open <= 40; open++) {
      client.send(windowFrame(1, 1));
      await client.until(() => client.body(1).length === open, `byte ${open}`);
    }
    assert.deepEqual((await client.answer(1)).body, pattern(40));
  });

  test(`6.9.1: the end of an answer${kind} needs no window`, async (t) => {
    const client = await (await startHttp2Bench(t, handler)).connect({ settings: initialWindow(100) });
    client.send(getFrame(1, `/100${kind}`));
    assert.equal((await client.answer(1)).body.length, 100);
    client.send(settingsFrame(initialWindow(0)), getFrame(3, `/0${kind}`), headersFrame(5, requestFields("HEAD", "/100")));
    assert.equal((await client.answer(3)).body.length, 0);
    assert.equal((await client.answer(5)).body.length, 0);
  });
}

test("6.9.1: streams share the connection's window, and none waits for another whose own window is exhausted", async (t) => {
  const client = await (await startHttp2Bench(t, handler)).connect();
  client.send(getFrame(1, "/60000"), getFrame(3, "/60000"), getFrame(5, "/60000"));
  const all = (): number => [1, 3, 5].reduce((sum, stream) => sum + client.body(stream).length, 0);
  await client.until(() => all() >= defaultWindowBytes, "the connection's window");
  await client.ping();
  assert.equal(all(), defaultWindowBytes);
  // Headers are not subject to flow control.
  client.send(headersFrame(7, requestFields("HEAD", "/100")), getFrame(9, "/0"));
  await Promise.all([client.answer(7), client.answer(9)]);
  client.send(settingsFrame(initialWindow(0)), windowFrame(0, 200_000));
  await client.ping();
  const shut = all();
  client.send(settingsFrame(initialWindow(defaultWindowBytes)));
  const answers = await Promise.all([1, 3, 5].map((stream) => client.answer(stream)));
  assert.ok(answers.every(({ body }) => body.equals(pattern(60_000))));
  assert.ok(shut <= 180_000);
});

test("6.9.1: a writer waits while the window is exhausted, and continues when it opens", async (t) => {
  let stream: ResponseStream | undefined;
  const bench = await startHttp2Bench(t, (exchange) => {
    stream = exchange.stream(200, {});
  });
  const client = await bench.connect({ settings: initialWindow(1000) });
  client.send(getFrame(1));
  const writer = await waitFor(() => stream, { what: "the handler" });
  assert.equal(writer.write(pattern(1_000_000)), false);
  let isDrained = false;
  const drained = writer.drained().then(() => {
    isDrained = true;
  });
  assert.equal(await received(client, 1, 1000), 1000);
  assert.equal(isDrained, false);
  client.send(windowFrame(0, 1_000_000), windowFrame(1, 999_000));
  await drained;
  writer.end();
  assert.deepEqual((await client.answer(1)).body, pattern(1_000_000));
});

test("a large response does not delay a small one", async (t) => {
  const bench = await startHttp2Bench(t, (exchange) =>
    exchange.respond(200, {}, exchange.url === "/large" ? Buffer.alloc(30_000_000) : "small"),
  );
  const client = await bench.connect({ settings: initialWindow(2 ** 30), moreWindow: 2 ** 30 });
  client.send(getFrame(1, "/large"));
  await client.next("data", 1);
  client.send(getFrame(3, "/small"));
  assert.equal(String((await client.answer(3)).body), "small");
  assert.equal(client.isWhole(1), false);
  assert.equal((await client.answer(1)).body.length, 30_000_000);
});

test("6.9.2: a window reduced by SETTINGS may be negative, and must become positive again", async (t) => {
  const client = await (await startHttp2Bench(t, handler)).connect({ settings: initialWindow(5000) });
  client.send(getFrame(1, "/20000"));
  assert.equal(await received(client, 1, 5000), 5000);
  client.send(settingsFrame(initialWindow(1000)), windowFrame(1, 4000));
  assert.equal(await received(client, 1, 5000), 5000);
  client.send(windowFrame(1, 1));
  assert.equal(await received(client, 1, 5001), 5001);
  // Raising the initial window widens open streams by the difference.
  client.send(settingsFrame(initialWindow(3000)));
  assert.equal(await received(client, 1, 7001), 7001);
  client.send(settingsFrame(initialWindow(0)), settingsFrame(initialWindow(3000)));
  assert.equal(await received(client, 1, 7001), 7001);
  client.send(windowFrame(1, 2 ** 31 - 1));
  assert.deepEqual((await client.answer(1)).body, pattern(20_000));
});

test("6.9.2: SETTINGS change the windows of streams, and not that of the connection", async (t) => {
  const client = await (await startHttp2Bench(t, handler)).connect();
  client.send(settingsFrame(initialWindow(1_000_000)), getFrame(1, "/100000"));
  assert.equal(await received(client, 1, defaultWindowBytes), defaultWindowBytes);
});

test("6.5.2: no frame is larger than the client's maximum", async (t) => {
  const client = await (await startHttp2Bench(t, handler)).connect({ settings: initialWindow(1_000_000), moreWindow: 1_000_000 });
  client.send(getFrame(1, "/200000"), getFrame(3, "/200000?stream"));
  for (const stream of [1, 3]) assert.deepEqual((await client.answer(stream)).body, pattern(200_000));
  assert.ok(client.of("data").every(({ payload }) => payload.length <= 16_384));
});

for (const { name, send, want } of [
  { name: "nothing, on the connection", send: [windowFrame(0, 0)], want: "connection PROTOCOL_ERROR" },
  { name: "nothing, on a stream", send: [windowFrame(1, 0)], want: "stream PROTOCOL_ERROR" },
  { name: "too much, on the connection", send: [windowFrame(0, 2 ** 31 - 1)], want: "connection FLOW_CONTROL_ERROR" },
  { name: "too much, on a stream", send: [windowFrame(1, 2 ** 31 - 1)], want: "stream FLOW_CONTROL_ERROR" },
  {
    name: "too much, by SETTINGS",
    send: [windowFrame(1, 2 ** 31 - 1 - defaultWindowBytes), settingsFrame(initialWindow(defaultWindowBytes + 1))],
    want: "connection FLOW_CONTROL_ERROR",
  },
]) {
  test(`6.9: WINDOW_UPDATE by ${name} is ${want}`, async (t) => {
    const bench = await startHttp2Bench(t, async (exchange) => {
      if (exchange.url === "/hold") await once(exchange.signal, "abort");
      else exchange.respond(204, {});
    });
    const client = await bench.connect();
    client.send(getFrame(1, "/hold"), ...send);
    assert.equal(await client.outcome(1), want);
    await waitFor(() => bench.server.active === 0, { what: "the handler to hear of it" });
    if (want.startsWith("connection")) return;
    client.send(getFrame(3));
    assert.equal((await client.answer(3)).status, 204);
  });
}

test("6.9: data beyond the flow-control window of an unread stream ends the stream", async (t) => {
  const bench = await startHttp2Bench(t, async (exchange) => {
    if (exchange.url === "/good") return exchange.respond(204, {});
    exchange.bodyStream(); // never read
    await once(exchange.signal, "abort");
  });
  const client = await bench.connect();
  client.send(postFrame(1));
  await client.ping();
  const window = client.streamCredit(1);
  await client.upload(1, Buffer.alloc(window), { endStream: false });
  await client.ping();
  assert.deepEqual(client.of("windowUpdate", 1), []);
  client.send(dataFrame(1, "x"), getFrame(3, "/good"));
  const outcome = await client.outcome(1);
  assert.ok(["stream FLOW_CONTROL_ERROR", "connection FLOW_CONTROL_ERROR"].includes(outcome), outcome);
});

test("6.9: more than the connection's window ends the connection", async (t) => {
  const bench = await startHttp2Bench(t, async (exchange) => {
    exchange.bodyStream();
    await once(exchange.signal, "abort");
  });
  const client = await bench.connect();
  await client.ping();
  const streams = Math.ceil(client.connectionCredit / client.streamCredit(1));
  for (let i = 0; i < streams; i++) {
    const [stream, room] = [1 + 2 * i, client.connectionCredit];
    client.send(postFrame(stream));
    await client.upload(stream, Buffer.alloc(Math.min(room, client.streamCredit(stream))), { endStream: false });
  }
  await client.ping();
  assert.equal(client.connectionCredit, 0);
  client.send(postFrame(1001), dataFrame(1001, "x"));
  assert.equal(await client.outcome(1001), "connection FLOW_CONTROL_ERROR");
});

test("6.9: padding of frames counts, and its window is returned even if the body is not read", async (t) => {
  const bench = await startHttp2Bench(t, async (exchange) =>
    exchange.respond(200, {}, String((await exchange.body(1e6)).length)),
  );
  const client = await bench.connect();
  client.send(postFrame(1));
  await client.ping();
  const frames = Math.ceil((2 * client.connectionCredit) / 257);
  for (let sent = 0; sent < frames; sent++) {
    await client.until(() => client.connectionCredit >= 257 && client.streamCredit(1) >= 257, "room for a frame");
    client.sendData(1, paddedDataFrame(1, "x", 255));
  }
  client.send(dataFrame(1, "", flags.endStream));
  assert.equal(String((await client.answer(1)).body), String(frames));
});

/** Handlers that differ in what they do with a body whose first part has arrived. */
const fates: Readonly<Record<string, ExchangeHandler>> = {
  "is not read": (exchange) => exchange.respond(200, {}),
  "is read": async (exchange) => exchange.respond(200, {}, String((await exchange.body(1e6)).length)),
  "is refused as too large": (exchange) => exchange.body(1000).catch(() => exchange.respond(413, {})) as Promise<void>,
  "is not read any more": (exchange) => {
    const body = exchange.bodyStream() as Readable;
    body.once("data", () => {
      body.destroy();
      exchange.respond(200, {});
    });
  },
  "is of an answer that is destroyed": (exchange) => {
    exchange.bodyStream();
    exchange.destroy();
  },
};
/** Fails while bytes of bodies are still being sent, not when a later one waits for them. */
async function windowIsLeft(client: RawClient, window: number): Promise<void> {
  await client.ping();
  assert.ok(client.connectionCredit >= window / 2 - 60_000, `only ${client.connectionCredit} of ${window} are left`);
}

for (const [fate, then] of Object.entries(fates)) {
  test(`6.9: a body that ${fate} leaves the connection's window unchanged`, async (t) => {
    const bench = await startHttp2Bench(t, async (exchange) => {
      await new Promise(setImmediate); // the first part of the body has arrived and is queued
      await then(exchange);
    });
    const client = await bench.connect();
    await client.ping();
    const window = client.connectionCredit;
    const body = Buffer.alloc(60_000);
    for (let i = 0; i < 100; i++) {
      const stream = 1 + 2 * i;
      client.send(postFrame(stream), dataFrame(stream, "the beginning"));
      client.connectionCredit -= "the beginning".length;
      await client.upload(stream, body);
      await client.until(() => client.isWhole(stream) || client.resetCode(stream) !== undefined, "the answer");
      assert.ok(client.connectionCredit <= window, `${client.connectionCredit - window} more than it was`);
      if (i % 5 === 0) await windowIsLeft(client, window);
    }
    await windowIsLeft(client, window);
    const errors = client.of("resetStream").map(({ payload }) => payload.readUInt32BE(0));
    if (!fate.includes("destroyed")) assert.ok(errors.every((code) => code === 0));
  });
}

test("6.9: the window of a body that is no longer read is returned before the response", async (t) => {
  const end = Promise.withResolvers<void>();
  const bench = await startHttp2Bench(t, async (exchange) => {
    const body = exchange.bodyStream() as Readable;
    body.once("data", () => void body.destroy());
    await end.promise;
    exchange.respond(200, {});
  });
  const client = await bench.connect();
  client.send(postFrame(1));
  await client.ping();
  await client.upload(1, Buffer.alloc(4 * client.streamCredit(1)));
  end.resolve();
  await client.answer(1);
});

test("6.9: a body that the client resets leaves the connection's window unchanged", async (t) => {
  const bench = await startHttp2Bench(t, async (exchange) => {
    if (exchange.url === "/read") exchange.bodyStream();
    await once(exchange.signal, "abort");
  });
  const client = await bench.connect();
  await client.ping();
  const window = client.connectionCredit;
  for (let i = 0; i < 100; i++) {
    const stream = 1 + 2 * i;
    client.send(postFrame(stream, i % 2 === 0 ? "/read" : "/"));
    await client.upload(stream, Buffer.alloc(60_000), { endStream: false });
    client.send(resetFrame(stream));
    assert.ok(client.connectionCredit <= window);
    if (i % 5 === 0) await windowIsLeft(client, window);
  }
  await windowIsLeft(client, window);
});

test("bodyStream: a slow reader lets the client send no more than the window", async (t) => {
  let exchange: Exchange | undefined;
  const bench = await startHttp2Bench(t, async (one) => {
    exchange = one;
    await once(one.signal, "abort");
  });
  const client = await bench.connect();
  client.send(postFrame(1));
  await client.ping();
  const window = client.streamCredit(1);
  await waitFor(() => exchange !== undefined, { what: "the request" });
  const body = (exchange as Exchange).bodyStream();
  await client.upload(1, Buffer.alloc(window), { endStream: false });
  await client.ping();
  assert.equal(client.streamCredit(1), 0);
  let read = 0;
  body.on("data", (chunk: Buffer) => {
    read += chunk.length;
  });
  await client.upload(1, Buffer.alloc(window));
  await once(body, "end");
  assert.equal(read, 2 * window);
});

test("6.9: an upload of 20 MB and many at once arrive completely", async (t) => {
  const bench = await startHttp2Bench(t, async (exchange) => {
    const body = await exchange.body(30e6);
    exchange.respond(200, {}, `${body.length} ${body.at(-1)}`);
  });
  const client = await bench.connect();
  client.send(postFrame(1));
  await client.upload(1, Buffer.alloc(20_000_000, 7));
  assert.equal(String((await client.answer(1)).body), "20000000 7");
  const streams = Array.from({ length: 20 }, (_, i) => 3 + 2 * i);
  client.send(...streams.map((stream) => postFrame(stream)));
  await Promise.all(streams.map((stream) => client.upload(stream, Buffer.alloc(400_000, stream))));
  const answers = await Promise.all(streams.map((stream) => client.answer(stream)));
  assert.deepEqual(
    answers.map(({ body }) => String(body)),
    streams.map((stream) => `400000 ${stream}`),
  );
});

/** Requests as handlers see them, and their responses. Source: RFC 9113, section 8 */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { StatusError } from "../objects/errors/status-error.ts";
import { startHttp2Bench } from "../testing/http2-bench.ts";
import {
  continuationFrame,
  dataFrame,
  type Field,
  getFrame,
  headersFrame,
  indexedBlock,
  literalBlock,
  postFrame,
  requestFields,
} from "../transport/http2/testing/raw-frames.ts";
import { flags } from "../transport/http2/wire/frames.ts";
import type { ExchangeHandler } from "./exchange.ts";

interface Seen {
  method: string;
  url: string;
  headers: Record<string, string | string[]>;
  body: string;
}

/** Responds with the request. */
const mirror: ExchangeHandler = async (exchange) => {
  const { method, url, headers } = exchange;
  const body = String(await exchange.body(1_000_000));
  exchange.respond(200, {}, JSON.stringify({ method, url, headers: Object.entries(headers), body }));
};

function seenIn(body: Buffer): Seen {
  const { headers, ...seen } = JSON.parse(body.toString("utf8"));
  return { ...seen, headers: Object.fromEntries(headers) };
}

const [method, scheme, , path] = requestFields("GET", "/") as [Field, Field, Field, Field];
const end = flags.endStream;
const wellFormed: readonly { name: string; send: readonly Buffer[]; want: { [Key in keyof Seen]?: unknown } }[] = [
  { name: "a body in pieces", send: [postFrame(1), dataFrame(1, "ab"), dataFrame(1, "c", end)], want: { body: "abc" } },
  { name: "a body of nothing", send: [postFrame(1), dataFrame(1, "", end)], want: { body: "" } },
  {
    name: "a body of the announced length",
    send: [postFrame(1, "/", [["content-length", "3"]]), dataFrame(1, "ab"), dataFrame(1, "c", end)],
    want: { body: "abc" },
  },
  {
    name: "trailers, which are not used",
    send: [postFrame(1), dataFrame(1, "abc"), headersFrame(1, [["x-late", "1"]])],
    want: { body: "abc", headers: { host: "localhost" } },
  },
  { name: "trailers in place of a body", send: [postFrame(1), headersFrame(1, [["x-late", "1"]])], want: { body: "" } },
  {
    name: "no field at all as trailers",
    send: [postFrame(1), dataFrame(1, "abc"), headersFrame(1, [])],
    want: { body: "abc" },
  },
  {
    name: "cookies in several fields",
    send: [
      getFrame(1, "/", [
        ["cookie", "a=b"],
        ["cookie", "c=d"],
        ["cookie", "e=f"],
      ]),
    ],
    want: { headers: { host: "localhost", cookie: "a=b; c=d; e=f" } },
  },
  {
    name: "a field that comes several times",
    send: [
      getFrame(1, "/", [
        ["x-remote-group", "a"],
        ["x-remote-group", "b"],
        ["x-remote-group", "c, d"],
      ]),
    ],
    want: { headers: { host: "localhost", "x-remote-group": "a, b, c, d" } },
  },
  {
    name: "an authority that a host contradicts",
    send: [getFrame(1, "/", [["host", "elsewhere"]])],
    want: { headers: { host: "localhost" } },
  },
  {
    name: "a host without an authority",
    send: [headersFrame(1, [method, scheme, path, ["host", "elsewhere"]])],
    want: { headers: { host: "elsewhere" } },
  },
  { name: "neither host nor authority", send: [headersFrame(1, [method, scheme, path])], want: { headers: {} } },
  {
    name: "te: trailers",
    send: [getFrame(1, "/", [["te", "trailers"]])],
    want: { headers: { host: "localhost", te: "trailers" } },
  },
  { name: "an empty value", send: [getFrame(1, "/", [["a", ""]])], want: { headers: { host: "localhost", a: "" } } },
  {
    name: "octets beyond ASCII in a value",
    send: [getFrame(1, "/", [["a", "\xe4\xff"]])],
    want: { headers: { host: "localhost", a: "\xe4\xff" } },
  },
  {
    name: "spaces within a value",
    send: [getFrame(1, "/", [["a", "b \t c"]])],
    want: { headers: { host: "localhost", a: "b \t c" } },
  },
  {
    name: "a method of its own",
    send: [headersFrame(1, requestFields("M-SEARCH", "/x"))],
    want: { method: "M-SEARCH", url: "/x" },
  },
  {
    name: "a path with what paths may have",
    send: [getFrame(1, "/a//b/../c;d=e?f=%20g&h#i\xe4")],
    want: { url: "/a//b/../c;d=e?f=%20g&h#i\xe4" },
  },
  {
    name: "OPTIONS of a path",
    send: [headersFrame(1, requestFields("OPTIONS", "/x"))],
    want: { method: "OPTIONS", url: "/x" },
  },
  {
    name: "a GET with a body",
    send: [headersFrame(1, requestFields("GET", "/"), flags.endHeaders), dataFrame(1, "abc", end)],
    want: { method: "GET", body: "abc" },
  },
];
for (const { name, send, want } of wellFormed) {
  test(`8.3 requests: ${name}`, async (t) => {
    const client = await (await startHttp2Bench(t, mirror)).connect();
    client.send(...send);
    const { status, body } = await client.answer(1);
    assert.equal(status, 200);
    const seen = seenIn(body);
    for (const [key, value] of Object.entries(want)) assert.deepEqual(seen[key as keyof Seen], value, key);
  });
}

for (const name of [
  "__proto__",
  "constructor",
  "prototype",
  "hasownproperty",
  "tostring",
  "toString".toLowerCase(),
  "__definegetter__",
]) {
  test(`8.2 fields: ${name} is a name like any other`, async (t) => {
    let prototype: unknown;
    const bench = await startHttp2Bench(t, (exchange) => {
      prototype = Object.getPrototypeOf(exchange.headers);
      exchange.respond(200, {}, JSON.stringify(Object.keys(exchange.headers)));
    });
    const client = await bench.connect();
    client.send(
      getFrame(1, "/", [
        [name, "polluted"],
        [name, "twice"],
        ["a", "b"],
      ]),
    );
    const { status, body } = await client.answer(1);
    assert.equal(status, 200);
    assert.ok(JSON.parse(String(body)).includes("a"));
    // The shared prototype of header objects is empty and has no prototype itself.
    assert.deepEqual([Object.getPrototypeOf(prototype), Reflect.ownKeys(prototype as object)], [null, []]);
    assert.deepEqual(Object.keys(Object.prototype), []);
  });
}

test("8.2 fields: hundreds of them reach the handler", async (t) => {
  const client = await (await startHttp2Bench(t, mirror)).connect();
  const many = Array.from({ length: 1000 }, (_, i): Field => [`x-${i}`, String(i)]);
  client.send(...cutBlock(1, literalBlock(requestFields("GET", "/", many))));
  const { status, body } = await client.answer(1);
  assert.equal(status, 200);
  assert.deepEqual(seenIn(body).headers, { host: "localhost", ...Object.fromEntries(many) });
});

/** Splits a block into HEADERS and CONTINUATION frames. */
function cutBlock(stream: number, block: Buffer): Buffer[] {
  const frames = [headersFrame(stream, block.subarray(0, 16_384), flags.endStream)];
  for (let at = 16_384; at < block.length; at += 16_384)
    frames.push(continuationFrame(stream, block.subarray(at, at + 16_384), 0));
  frames.push(continuationFrame(stream, Buffer.alloc(0)));
  return frames;
}

test("8.2 fields: more of them than allowed are answered 431, and their header table entries are kept", async (t) => {
  const handled: (string | undefined)[] = [];
  const bench = await startHttp2Bench(
    t,
    (exchange) => {
      handled.push(exchange.headers["a"] as string | undefined);
      exchange.respond(204, {});
    },
    { maxHeaderBytes: 20_000 },
  );
  const client = await bench.connect();
  const large = literalBlock([["x-large", "y".repeat(30_000)]]);
  const request = literalBlock(requestFields("GET", "/"));
  client.send(
    headersFrame(1, Buffer.concat([request, indexedBlock([["a", "before"]])])),
    ...cutBlock(3, Buffer.concat([request, large, indexedBlock([["a", "within"]])])),
    ...cutBlock(5, Buffer.concat([request, literalBlock(Array<Field>(1000).fill(["b", "c"]))])),
    headersFrame(7, Buffer.concat([request, Buffer.of(0x80 | 62)])),
    headersFrame(9, Buffer.concat([request, Buffer.of(0x80 | 63)])),
  );
  const statuses = await Promise.all([1, 3, 5, 7, 9].map(async (stream) => (await client.answer(stream)).status));
  assert.deepEqual(statuses, [204, 431, 431, 204, 204]);
  assert.deepEqual(handled, ["before", "within", "before"]);
});

const tooMany = Array<Field>(100).fill(["x-more", "y".repeat(100)]);
const page431 = "<h1>HTTP Error 431</h1><p>Request Header Field(s) Too Large</p>";
for (const { name, fields, want } of [
  { name: "GET is answered with a page", fields: requestFields("GET", "/", tooMany), want: page431 },
  { name: "HEAD is answered with the length of that page", fields: requestFields("HEAD", "/", tooMany), want: "" },
]) {
  test(`8.2 fields: with too many of them ${name}`, async (t) => {
    const bench = await startHttp2Bench(t, () => assert.fail("a handler was called"), { maxHeaderBytes: 10_000 });
    const client = await bench.connect();
    client.send(...cutBlock(1, literalBlock(fields)));
    const { status, headers, body } = await client.answer(1);
    assert.deepEqual([status, String(body), headers.get("content-length")], [431, want, String(page431.length)]);
    assert.equal(headers.get("content-type"), "text/html; charset=utf-8");
    assert.ok(headers.has("date"));
  });
}

test("8.2 fields: with too many of them before the path there is no request", async (t) => {
  const bench = await startHttp2Bench(t, () => assert.fail("a handler was called"), { maxHeaderBytes: 10_000 });
  const client = await bench.connect();
  client.send(headersFrame(1, [...requestFields("GET", "/").slice(0, 3), [":path", `/${"x".repeat(10_000)}`]]));
  assert.equal(await client.outcome(1), "stream PROTOCOL_ERROR");
});

test("8.2 fields: rawHeaders has each as received, with its own value", async (t) => {
  const bench = await startHttp2Bench(t, (exchange) => exchange.respond(200, {}, JSON.stringify(exchange.rawHeaders)));
  const client = await bench.connect();
  const fields = requestFields("GET", "/", [
    ["x-remote-group", "a"],
    ["x-remote-group", "b, c"],
    ["__proto__", "d"],
  ]);
  client.send(headersFrame(1, fields));
  assert.deepEqual(JSON.parse(String((await client.answer(1)).body)), fields.flat());
});

test("8.1 HEAD: the answer has a length and no content", async (t) => {
  const bench = await startHttp2Bench(t, (exchange) => exchange.respond(200, {}, "abc"));
  const client = await bench.connect();
  client.send(headersFrame(1, requestFields("HEAD", "/")));
  const { status, headers, body } = await client.answer(1);
  assert.deepEqual([status, headers.get("content-length"), body.length], [200, "3", 0]);
  await client.ping();
  assert.deepEqual(client.of("data"), []);
});

for (const { name, fields } of [
  {
    name: "of an authority",
    fields: [
      [":method", "CONNECT"],
      [":authority", "localhost"],
    ] as Field[],
  },
  { name: "of nothing", fields: [[":method", "CONNECT"]] as Field[] },
  { name: "with a path", fields: requestFields("CONNECT", "/") },
]) {
  test(`8.5 CONNECT: one ${name} opens no tunnel`, async (t) => {
    const bench = await startHttp2Bench(t, (exchange) => exchange.respond(405, {}, exchange.method));
    const client = await bench.connect();
    client.send(headersFrame(1, fields, flags.endHeaders));
    assert.ok(["status 405", "status 400", "status 501", "stream PROTOCOL_ERROR"].includes(await client.outcome(1)));
  });
}

test("8.3.1 OPTIONS *: answered by the server, passed to no handler", async (t) => {
  const bench = await startHttp2Bench(t, () => assert.fail("a handler was called"));
  const client = await bench.connect();
  client.send(headersFrame(1, requestFields("OPTIONS", "*")));
  assert.equal((await client.answer(1)).status, 200);
});

test("8.2 fields: the body of a request with too many of them is thrown away", async (t) => {
  const bench = await startHttp2Bench(t, (exchange) => exchange.respond(204, {}), { maxHeaderBytes: 1000 });
  const client = await bench.connect();
  const body = Buffer.alloc(200_000);
  for (let i = 0; i < 40; i++) {
    const stream = 1 + 2 * i;
    client.send(postFrame(stream, "/", Array<Field>(100).fill(["a", "b"])));
    await client.upload(stream, body);
    assert.equal((await client.answer(stream)).status, 431);
  }
  client.send(getFrame(1001));
  assert.equal((await client.answer(1001)).status, 204);
});

test("RFC 9110, 10.1.1: a client that expects 100 Continue gets it before the response", async (t) => {
  const client = await (await startHttp2Bench(t, mirror)).connect();
  client.send(postFrame(1, "/", [["expect", "100-continue"]]));
  const reported = await client.next("headers", 1);
  assert.deepEqual([reported.fields?.slice(0, 2), reported.flag], [[":status", "100"], flags.endHeaders]);
  client.send(dataFrame(1, "abc", flags.endStream));
  const { status, body } = await client.answer(1);
  assert.deepEqual([status, seenIn(body).body], [200, "abc"]);
});

test("8.1 bodies: one beyond the limit is answered 413 while the client still sends, with and without a length", async (t) => {
  const bench = await startHttp2Bench(t, async (exchange) => {
    try {
      exchange.respond(200, {}, await exchange.body(1000));
    } catch (err) {
      exchange.respond((err as StatusError).code, {}, (err as StatusError).message);
    }
  });
  const client = await bench.connect();
  for (const [stream, fields] of [
    [1, []],
    [3, [["content-length", "5000"]]],
  ] as const) {
    client.send(postFrame(stream, "/", fields), dataFrame(stream, "x".repeat(1001)));
    const { status, body } = await client.answer(stream);
    assert.deepEqual([status, String(body)], [413, "Request entity too large: limit is 1000"]);
    client.send(dataFrame(stream, "x".repeat(3000)), dataFrame(stream, "x".repeat(999), flags.endStream));
  }
  client.send(getFrame(5));
  assert.equal((await client.answer(5)).status, 200);
});

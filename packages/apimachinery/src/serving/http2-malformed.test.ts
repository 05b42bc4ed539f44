/** Malformed requests: they reach no handler, or their body fails. Source: RFC 9113, section 8.1.1 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { newLogger } from "../process/logging/logger.ts";
import { newMetricsRegistry } from "../process/metrics/registry.ts";
import { startHttp2Bench } from "../testing/http2-bench.ts";
import { waitFor } from "../testing/wait-for.ts";
import {
  continuationFrame,
  dataFrame,
  type Field,
  getFrame,
  headersFrame,
  literalBlock,
  postFrame,
} from "../transport/http2/testing/raw-frames.ts";
import { flags } from "../transport/http2/wire/frames.ts";

const method: Field = [":method", "GET"];
const scheme: Field = [":scheme", "https"];
const authority: Field = [":authority", "localhost"];
const path: Field = [":path", "/"];
const good = [method, scheme, authority, path];

/** CONTINUATION frames of one request's fields, each of 10,000 octets. */
const manyFields = (stream: number, count: number): Buffer[] =>
  Array.from({ length: count }, (_, at) =>
    continuationFrame(stream, literalBlock([["a", "x".repeat(10_000)]]), at === count - 1 ? flags.endHeaders : 0),
  );

const malformed: Readonly<Record<string, readonly Field[]>> = {
  "no field at all": [],
  "no :method": [scheme, authority, path],
  "no :scheme": [method, authority, path],
  "no :path": [method, scheme, authority],
  "two :method": [...good, method],
  "two :scheme": [...good, scheme],
  "two :path": [...good, path],
  "two :authority": [...good, authority],
  "an empty :path": [method, scheme, authority, [":path", ""]],
  "a :path without a slash": [method, scheme, authority, [":path", "api"]],
  "an empty :method": [[":method", ""], scheme, authority, path],
  "a :method with a space": [[":method", "GET /x"], scheme, authority, path],
  "a :path with a line's end": [method, scheme, authority, [":path", "/\r\nx: y"]],
  "unknown pseudo-header field": [...good, [":foo", "x"]],
  "a pseudo field of answers": [...good, [":status", "200"]],
  ":protocol, which was not offered": [[":method", "CONNECT"], scheme, authority, path, [":protocol", "websocket"]],
  "a pseudo field behind others": [method, scheme, authority, ["accept", "*/*"], path],
  "a capital letter in a name": [...good, ["Accept", "*/*"]],
  "an empty name": [...good, ["", "x"]],
  "thousands of empty names": [...good, ...Array<Field>(2000).fill(["", ""])],
  "a space in a name": [...good, ["a b", "x"]],
  "a NUL in a name": [...good, ["a\0", "x"]],
  "a line's end in a name": [...good, ["a\r\nb", "x"]],
  "a colon in a name": [...good, ["a:b", "x"]],
  "DEL in a name": [...good, ["a\x7f", "x"]],
  "an octet beyond ASCII in a name": [...good, ["a\xe4", "x"]],
  "a NUL in a value": [...good, ["a", "x\0y"]],
  "CR in a value": [...good, ["a", "x\ry"]],
  "LF in a value": [...good, ["a", "x\ny"]],
  "a request behind a value": [...good, ["a", "x\r\n\r\nGET /secret HTTP/1.1"]],
  "another control character in a value": [...good, ["a", "x\x1by"]],
  "DEL in a value": [...good, ["a", "x\x7f"]],
  connection: [...good, ["connection", "close"]],
  "keep-alive": [...good, ["keep-alive", "timeout=5"]],
  "proxy-connection": [...good, ["proxy-connection", "keep-alive"]],
  "transfer-encoding": [...good, ["transfer-encoding", "chunked"]],
  upgrade: [...good, ["upgrade", "websocket"]],
  "te other than trailers": [...good, ["te", "gzip"]],
  "an unknown :scheme": [method, [":scheme", "ftp"], authority, path],
  "CONNECT with :path": [[":method", "CONNECT"], scheme, authority, path],
  "te with more than trailers": [...good, ["te", "trailers, gzip"]],
  "a content-length of a request that ends at once": [...good, ["content-length", "1"]],
};
for (const [name, fields] of Object.entries(malformed)) {
  test(`8.1.1 malformed: ${name} reaches no handler and affects no other request`, async (t) => {
    const bench = await startHttp2Bench(t, (exchange) =>
      exchange.url === "/good" ? exchange.respond(204, {}) : assert.fail("a handler was called"),
    );
    const client = await bench.connect();
    client.send(headersFrame(1, fields), getFrame(3, "/good"));
    assert.equal((await client.answer(3)).status, 204);
    assert.ok(["stream PROTOCOL_ERROR", "status 400"].includes(await client.outcome(1)), await client.outcome(1));
  });
}

for (const value of [" x", "x ", "\tx", "x\t", " "]) {
  test(`8.2.1 a value ${JSON.stringify(value)} with blanks around it arrives as it is, as with Go's server`, async (t) => {
    const bench = await startHttp2Bench(t, (exchange) =>
      exchange.respond(200, {}, JSON.stringify(exchange.headers["user-agent"])),
    );
    const client = await bench.connect();
    client.send(headersFrame(1, [...good, ["user-agent", value]]));
    const { status, body } = await client.answer(1);
    assert.deepEqual({ status, body: String(body) }, { status: 200, body: JSON.stringify(value) });
  });
}

for (const { fields, want } of [
  { fields: [["te", "gzip"]], want: 'request header "TE" may only be "trailers" in HTTP/2\n' },
  { fields: [["upgrade", "websocket"]], want: 'request header "Upgrade" is not valid in HTTP/2\n' },
] as const) {
  test(`8.2.2 ${fields.join(": ")} is answered with 400 and its reason, as by Go's server`, async (t) => {
    const bench = await startHttp2Bench(t, () => assert.fail("a handler was called"));
    const client = await bench.connect();
    client.send(headersFrame(1, [...good, ...fields]));
    const { status, headers, body } = await client.answer(1);
    assert.deepEqual([status, headers.get("content-type"), String(body)], [400, "text/plain; charset=utf-8", want]);
  });
}

for (const { name, send, series, reason } of [
  {
    name: "a request with a field of HTTP/1.1's connections",
    send: [headersFrame(1, [...good, ["connection", "close"]])],
    series: 'protocol="HTTP/2",scope="request"',
    reason: 'request header \\\\"Connection\\\\" is not valid in HTTP/2',
  },
  {
    name: "a request with more header fields than the limit",
    send: [headersFrame(1, [...good, ["a", "x".repeat(10_000)]], 0), ...manyFields(1, 30)],
    series: 'protocol="HTTP/2",scope="request"',
    reason: "header fields exceed the limit",
  },
  {
    name: "a path with a broken percent escape",
    send: [getFrame(1, "/%zz")],
    series: 'protocol="HTTP/2",scope="request"',
    reason: "broken percent escape in the path",
  },
  {
    name: "a malformed request",
    send: [headersFrame(1, [...good, ["a", "x\0"]])],
    series: 'protocol="HTTP/2",scope="request"',
    reason: "invalid value of a",
  },
  {
    name: "a body that is longer than announced",
    send: [postFrame(1, "/", [["content-length", "1"]]), dataFrame(1, "abc", flags.endStream)],
    series: 'protocol="HTTP/2",scope="request"',
    reason: "body length differs from content-length",
  },
  {
    name: "a stream of the server's",
    send: [headersFrame(2, good)],
    series: 'protocol="HTTP/2",scope="connection"',
    reason: "even stream ID from the client",
  },
]) {
  test(`${name} is counted, and logged at verbosity 2 with its reason`, async (t) => {
    const metrics = newMetricsRegistry();
    const lines: string[] = [];
    const log = newLogger({ verbosity: 2, write: (line) => void lines.push(line) });
    const bench = await startHttp2Bench(t, (exchange) => exchange.respond(204, {}), { metrics, log });
    const client = await bench.connect();
    client.send(...send);
    await waitFor(() => lines.length > 0, { what: "a log line" });
    assert.match(lines.join(""), new RegExp(`Refused for a violation of the protocol.*reason="${reason}"`));
    assert.ok((await metrics.render()).includes(`coxswain_http_protocol_errors_total{${series}} 1\n`), await metrics.render());
  });
}

const lengths: readonly { name: string; fields: readonly Field[]; data: readonly string[]; trailers?: boolean }[] = [
  { name: "more than announced", fields: [["content-length", "3"]], data: ["abcd"] },
  { name: "more than announced, in pieces", fields: [["content-length", "3"]], data: ["ab", "cd"] },
  { name: "less than announced", fields: [["content-length", "3"]], data: ["ab"] },
  { name: "less than announced, and trailers", fields: [["content-length", "3"]], data: ["ab"], trailers: true },
  { name: "none of what was announced", fields: [["content-length", "3"]], data: [""] },
  { name: "something where nothing was announced", fields: [["content-length", "0"]], data: ["a"] },
  {
    name: "two lengths",
    fields: [
      ["content-length", "3"],
      ["content-length", "4"],
    ],
    data: ["abcd"],
  },
  { name: "two lengths in one", fields: [["content-length", "4, 5"]], data: ["abcd"] },
  { name: "a length with a sign", fields: [["content-length", "+4"]], data: ["abcd"] },
  { name: "a length below nothing", fields: [["content-length", "-1"]], data: ["abcd"] },
  { name: "a length that is no number", fields: [["content-length", "four"]], data: ["abcd"] },
  { name: "a length in another base", fields: [["content-length", "0x4"]], data: ["abcd"] },
  { name: "a length with an exponent", fields: [["content-length", "4e0"]], data: ["abcd"] },
  { name: "an empty length", fields: [["content-length", ""]], data: ["abcd"] },
  { name: "a length beyond all bounds", fields: [["content-length", "9".repeat(40)]], data: ["abcd"] },
];
for (const { name, fields, data, trailers = false } of lengths) {
  test(`8.1.1 content-length: ${name} is never accepted as a complete body`, async (t) => {
    const bodies: string[] = [];
    const bench = await startHttp2Bench(t, async (exchange) => {
      bodies.push(exchange.url === "/good" ? "good" : String(await exchange.body(1000)));
      exchange.respond(204, {});
    });
    const client = await bench.connect();
    const last = data.length - 1;
    client.send(
      postFrame(1, "/", fields),
      ...data.map((one, i) => dataFrame(1, one, i === last && !trailers ? flags.endStream : 0)),
      ...(trailers ? [headersFrame(1, [["a", "b"]])] : []),
      getFrame(3, "/good"),
    );
    assert.ok(["stream PROTOCOL_ERROR", "status 400"].includes(await client.outcome(1)), await client.outcome(1));
    assert.equal((await client.answer(3)).status, 204);
    assert.deepEqual(bodies, ["good"]);
  });
}

for (const { name, send } of [
  { name: "that do not end the request", send: [headersFrame(1, [["a", "b"]], flags.endHeaders)] },
  { name: "with a pseudo field", send: [headersFrame(1, [[":path", "/secret"]])] },
  { name: "with a capital letter", send: [headersFrame(1, [["A", "b"]])] },
  { name: "with a line's end", send: [headersFrame(1, [["a", "b\r\nc: d"]])] },
  { name: "with connection", send: [headersFrame(1, [["connection", "close"]])] },
]) {
  test(`8.1 trailers: those ${name} are malformed`, async (t) => {
    let whole = 0;
    const bench = await startHttp2Bench(t, async (exchange) => {
      await exchange.body(1000);
      whole++;
      exchange.respond(204, {});
    });
    const client = await bench.connect();
    client.send(postFrame(1), dataFrame(1, "abc"), ...send, getFrame(3));
    assert.ok(["stream PROTOCOL_ERROR", "status 400"].includes(await client.outcome(1)), await client.outcome(1));
    assert.equal((await client.answer(3)).status, 204);
    assert.equal(whole, 1);
  });
}

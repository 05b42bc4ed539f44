/** Requests and connections over HTTP/1.1 that are refused before a handler sees them. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { connect as connectTcp } from "node:net";
import { test } from "node:test";
import { connect as connectTls } from "node:tls";
import { newLogger } from "../process/logging/logger.ts";
import { newMetricsRegistry } from "../process/metrics/registry.ts";
import { testPair } from "../testing/tls.ts";
import { startHttpServer } from "./https-server.ts";

const request = (line: string, ...fields: string[]): string => `${[`${line} HTTP/1.1`, ...fields].join("\r\n")}\r\n\r\n`;

for (const { name, send, isPlain = false, scope = "request", want, reason } of [
  {
    name: "a path with a broken percent escape",
    send: request("GET /%zz", "Host: x"),
    want: /^HTTP\/1\.1 400 Bad Request\r\n/,
    reason: "broken percent escape in the path",
  },
  {
    name: "a request without Host",
    send: request("GET /"),
    want: /^HTTP\/1\.1 400 Bad Request\r\n[\s\S]*400 Bad Request: missing required Host header$/,
    reason: "missing required Host header",
  },
  {
    name: "a request that expects something else than 100-continue",
    send: request("GET /", "Host: x", "Expect: tea"),
    want: /^HTTP\/1\.1 417 Expectation Failed\r\n/,
    reason: "unknown value of Expect",
  },
  {
    name: "CONNECT",
    send: request("CONNECT x:443", "Host: x"),
    scope: "connection",
    want: /^HTTP\/1\.1 400 Bad Request\r\n/,
    reason: "CONNECT",
  },
  {
    name: "what is no request",
    send: "GET / SPDY\r\n\r\n",
    scope: "connection",
    want: /^HTTP\/1\.1 400 Bad Request\r\n/,
    reason: "Parse Error: Expected HTTP/, RTSP/ or ICE/",
  },
  {
    name: "plain HTTP on a TLS port",
    send: request("GET /", "Host: x"),
    isPlain: true,
    scope: "connection",
    want: /^HTTP\/1\.0 400 Bad Request\r\n\r\nClient sent an HTTP request to an HTTPS server\.\n$/,
    reason: "plain HTTP on a TLS port",
  },
]) {
  test(`${name} is answered, counted, and logged at verbosity 2 with its reason`, async (t) => {
    const metrics = newMetricsRegistry();
    const lines: string[] = [];
    const log = newLogger({ verbosity: 2, write: (line) => void lines.push(line) });
    const pair = await testPair();
    const server = await startHttpServer({
      ...{ port: 0, bindAddress: "127.0.0.1", metrics, log, tls: { cert: pair.cert, key: pair.key } },
      handler: () => assert.fail("a handler was called"),
    });
    t.after(() => server.close());
    const { port } = server;
    const socket = isPlain ? connectTcp(port, "127.0.0.1") : connectTls({ port, host: "127.0.0.1", ca: pair.ca });
    t.after(() => void socket.destroy());
    let answer = "";
    socket.on("data", (chunk) => (answer += String(chunk)));
    const ended = scope === "connection" || !send.includes("%") ? once(socket, "end") : once(socket, "data");
    socket.write(send);
    await ended;
    assert.match(answer, want);
    assert.match(
      lines.join(""),
      new RegExp(`Refused for a violation of the protocol.*from="127\\.0\\.0\\.1".*reason="${reason}"`),
    );
    const series = `coxswain_http_protocol_errors_total{protocol="HTTP/1.1",scope="${scope}"} 1`;
    assert.ok((await metrics.render()).split("\n").includes(series), await metrics.render());
  });
}

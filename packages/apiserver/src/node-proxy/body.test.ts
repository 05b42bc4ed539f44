import assert from "node:assert/strict";
import { once } from "node:events";
import { type AddressInfo, createServer } from "node:net";
import { PassThrough } from "node:stream";
import { test } from "node:test";
import { Turns } from "@coxswain/apimachinery/process/event-loop/turns";
import type { Exchange } from "@coxswain/apimachinery/serving/exchange";
import type { RequestContext } from "../request/context.ts";
import { pipe } from "./pipe.ts";

/** A body that a backend could misinterpret as a separate request. */
const smuggled = "POST /run/x HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n";
const asChunk = `${smuggled.length.toString(16)}\r\n${smuggled}\r\n0\r\n\r\n`;

for (const { method, httpVersion = "1.1", headers = {}, wanted } of [
  { method: "GET", headers: { "transfer-encoding": "chunked" }, wanted: asChunk },
  { method: "DELETE", headers: { "transfer-encoding": "chunked" }, wanted: asChunk },
  { method: "POST", headers: { "transfer-encoding": "chunked" }, wanted: asChunk },
  { method: "OPTIONS", httpVersion: "2.0", wanted: asChunk },
  { method: "DELETE", httpVersion: "2.0", wanted: asChunk },
  { method: "GET", httpVersion: "2.0", wanted: "" },
  { method: "HEAD", httpVersion: "2.0", wanted: "" },
  { method: "GET", headers: { "content-length": String(smuggled.length) }, wanted: smuggled },
  { method: "PUT", headers: { "content-length": "0" }, wanted: "" },
  { method: "GET", wanted: "" },
]) {
  const how = Object.entries(headers).flat().join(" ") || "no length";
  test(`a body of ${method} over HTTP/${httpVersion} with ${how} is no second request to the proxied server`, async (t) => {
    let heard = "";
    const backend = createServer((socket) => {
      socket.on("error", () => {});
      socket.on("data", (chunk) => {
        heard += chunk.toString();
        if (heard.includes("\r\n\r\n") && heard.endsWith(wanted)) socket.end("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
      });
    }).listen(0, "127.0.0.1");
    await once(backend, "listening");
    t.after(() => backend.close());
    const { port } = backend.address() as AddressInfo;
    let answer = "";
    const exchange = {
      method,
      url: "/pods",
      headers: { ...headers },
      httpVersion,
      remoteAddress: "10.1.2.3",
      bodyStream: () => new PassThrough().end(smuggled),
      stream: () => ({
        write(chunk: Buffer) {
          answer += chunk.toString();
          return true;
        },
        end() {},
      }),
    } as unknown as Exchange;
    const ctx = { exchange, signal: AbortSignal.timeout(60_000) } as unknown as RequestContext;
    const dial = { address: "127.0.0.1", port, secure: false, timeoutMs: 60_000, tls: {} as never };
    await pipe(ctx, { url: new URL(`http://127.0.0.1:${port}/pods`), toNode: false, as: "proxy" }, dial, new Turns());
    assert.equal(answer, method === "HEAD" ? "" : "ok");
    const end = heard.indexOf("\r\n\r\n");
    assert.equal(heard.slice(end + 4), wanted);
    assert.equal(/\r\ntransfer-encoding: chunked(\r\n|$)/i.test(heard.slice(0, end)), wanted === asChunk);
  });
}

import assert from "node:assert/strict";
import { test } from "node:test";
import { gunzipSync } from "node:zlib";
import { StatusError } from "@coxswain/apimachinery/objects/errors/status-error";
import { LoopbackExchange } from "../loopback/exchange.ts";
import { parseRequestInfo } from "../request/request-info.ts";
import { ServerRequest } from "../request/server-request.ts";
import { send, writeError } from "./response.ts";

const limit = 128 * 1024;

for (const { name, status = 200, bytes, accept, compressed } of [
  { name: "an object", bytes: limit + 1, accept: "gzip", compressed: true },
  { name: "a created object", status: 201, bytes: limit + 1, accept: "br, gzip", compressed: true },
  { name: "an object of just the limit", bytes: limit, accept: "gzip", compressed: false },
  { name: "an object for a client that does not say so", bytes: limit + 1, accept: undefined, compressed: false },
  { name: "an object for a client that wants it least", bytes: limit + 1, accept: "gzip;q=0", compressed: false },
]) {
  test(`${name} is ${compressed ? "" : "not "}compressed`, async () => {
    const headers: Record<string, string> = accept === undefined ? {} : { "accept-encoding": accept };
    const exchange = new LoopbackExchange({ method: "GET", path: "/", headers });
    const text = "x".repeat(bytes);
    await send(new ServerRequest(exchange, parseRequestInfo("GET", "/"), 0, false), status, "application/json", text);
    const response = await exchange.response;
    const body = Buffer.concat(await response.body.toArray());
    assert.equal(response.status, status);
    assert.deepEqual(
      [response.headers["content-encoding"], response.headers.vary],
      compressed ? ["gzip", "Accept-Encoding"] : [undefined, undefined],
    );
    assert.equal(String(compressed ? gunzipSync(body) : body), text);
  });
}

for (const { name, seconds, headers, want } of [
  { name: "in the status is the header", seconds: 7, headers: {}, want: "7" },
  { name: "of 0 s is no header", seconds: 0, headers: {}, want: undefined },
  { name: "in a header of its own stays", seconds: 7, headers: { "retry-after": "3" }, want: "3" },
  { name: "in a header alone stays", seconds: undefined, headers: { "retry-after": "3" }, want: "3" },
]) {
  test(`the time to try again after ${name}`, async () => {
    const exchange = new LoopbackExchange({ method: "GET", path: "/", headers: {} });
    const details = seconds === undefined ? {} : { details: { retryAfterSeconds: seconds } };
    const err = new StatusError({ status: "Failure", code: 429, ...details } as never);
    writeError(exchange, Object.assign(err, { headers }));
    assert.equal((await exchange.response).headers["retry-after"], want);
  });
}

test("an error after the answer has begun breaks the connection and answers nothing", () => {
  const said: string[] = [];
  const exchange = { headersSent: true, destroy: () => said.push("destroy"), respond: () => said.push("respond") };
  writeError(exchange as never, new Error("late"));
  assert.deepEqual(said, ["destroy"]);
});

for (const { accept, query = "", agent, want } of [
  { accept: undefined, want: /^\{"kind":"Status"[^\n]*\}\n$/ },
  { accept: "application/json", query: "?pretty=1", want: /^\{\n {2}"kind": "Status",/ },
  { accept: undefined, agent: "curl/8", want: /^\{\n/ },
  { accept: "application/yaml", want: /^apiVersion: v1\ncode: 409\n/ },
  { accept: "application/vnd.kubernetes.protobuf", want: /^k8s\0/ },
  { accept: "text/html", want: /^\{\n/ },
  { accept: "application/json;as=Table;v=v1;g=meta.k8s.io", want: /"kind": ?"Status"/ },
]) {
  test(`an error for ${agent ?? accept ?? "a client that accepts any type"}${query} is written as ${want}`, async () => {
    const headers = { ...(accept && { accept }), ...(agent && { "user-agent": agent }) };
    const exchange = new LoopbackExchange({ method: "GET", path: `/${query}`, headers });
    writeError(exchange, new StatusError({ status: "Failure", code: 409 } as never));
    const response = await exchange.response;
    assert.equal(response.status, 409);
    assert.match(Buffer.concat(await response.body.toArray()).toString("latin1"), want);
  });
}

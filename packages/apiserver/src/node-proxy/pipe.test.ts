import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, type IncomingMessage, type OutgoingHttpHeaders, type RequestListener, request } from "node:http";
import { type AddressInfo, createServer as createTcpServer } from "node:net";
import { type TestContext, test } from "node:test";
import { deflateRawSync, gunzipSync, gzipSync, inflateRawSync } from "node:zlib";
import { StatusError } from "@coxswain/apimachinery/objects/errors/status-error";
import { Turns } from "@coxswain/apimachinery/process/event-loop/turns";
import type { Exchange } from "@coxswain/apimachinery/serving/exchange";
import { whenDrained } from "@coxswain/apimachinery/serving/exchange-parts";
import { asyncListener } from "@coxswain/apimachinery/testing/async-listener";
import { longestTurnOf } from "@coxswain/apimachinery/testing/cpu-time";
import type { RequestContext } from "../request/context.ts";
import type { Dial } from "./dial.ts";
import { forwardedHeaders, linkRewriter, pipe, returnedHeaders } from "./pipe.ts";

async function listening(t: TestContext, handler: RequestListener): Promise<number> {
  const server = createServer(handler).listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(() => server.close());
  return (server.address() as AddressInfo).port;
}

const below = "/api/v1/namespaces/default/pods/web/proxy";

/** Requests `path` of a server on `port` through the proxy of a pod. */
async function proxied(
  t: TestContext,
  port: number,
  path: string,
  init: { method?: string; body?: string; headers?: OutgoingHttpHeaders } = {},
) {
  const front = await listening(t, (req, res) => {
    const exchange = {
      method: req.method,
      url: req.url,
      headers: req.headers,
      remoteAddress: "10.1.2.3",
      bodyStream: () => req,
      stream(status: number, headers: Record<string, string>) {
        res.writeHead(status, headers);
        const end = (chunk?: Buffer) => void res.end(chunk);
        return { write: (chunk: Buffer) => res.write(chunk), drained: () => whenDrained(res), end };
      },
    } as unknown as Exchange;
    const ctx = { exchange, signal: new AbortController().signal } as unknown as RequestContext;
    const url = new URL(`http://127.0.0.1:${port}${path.split("?", 1)[0]}`);
    const dial: Dial = { address: "127.0.0.1", port, secure: false, timeoutMs: 60_000, tls: {} as Dial["tls"] };
    pipe(ctx, { url, toNode: false, as: "proxy" }, dial, new Turns()).catch((err) => {
      res.writeHead(err instanceof StatusError ? err.code : 500).end(err.message);
    });
  });
  const { body, ...options } = init;
  const sent = request(`http://127.0.0.1:${front}${below}${path}`, { agent: false, ...options }).end(body);
  const [answer] = (await once(sent, "response")) as [IncomingMessage];
  return { status: answer.statusCode, headers: answer.headers, body: Buffer.concat(await Array.fromAsync(answer)) };
}

test("a request is forwarded unchanged except for hop-by-hop and credential headers", async (t) => {
  let seen: IncomingMessage | undefined;
  const port = await listening(
    t,
    asyncListener(async (req, res) => {
      seen = req;
      res.setHeader("access-control-allow-origin", "*");
      res.writeHead(201, { "x-own": "1" }).end(`got ${(await Array.fromAsync(req as AsyncIterable<Buffer>)).join("")}`);
    }),
  );
  const answer = await proxied(t, port, "/a%20b?x=1&y=a+b&z", {
    method: "PUT",
    body: "hello",
    headers: { authorization: "Bearer secret", "impersonate-user": "x", "x-forwarded-for": "10.9.9.9", "x-kept": "1" },
  });
  assert.equal(answer.status, 201);
  assert.equal(String(answer.body), "got hello");
  assert.equal(answer.headers["x-own"], "1");
  assert.equal(answer.headers["access-control-allow-origin"], undefined);
  assert.equal(seen?.url, "/a%20b?x=1&y=a+b&z");
  assert.partialDeepStrictEqual(seen?.headers, {
    "x-kept": "1",
    "x-forwarded-for": "10.9.9.9, 10.1.2.3",
    "x-forwarded-uri": `${below}/a%20b`,
  });
  assert.equal(seen?.headers.authorization, undefined);
  assert.equal(seen?.headers["impersonate-user"], undefined);
  assert.notEqual(seen?.headers.host, `127.0.0.1:${port}`, "the server sees the name the client requested");
});

const page = '<a href="/next">x</a>';
const rewritten = `<a href="${below}/next">x</a>`;
const html = { "content-type": "text/html; charset=utf-8" };
for (const { name, headers, body, read = String, want } of [
  { name: "plain", headers: html, body: page, want: rewritten },
  {
    name: "compressed",
    headers: { ...html, "content-encoding": "gzip" },
    body: gzipSync(page),
    read: (bytes: Buffer) => String(gunzipSync(bytes)),
    want: rewritten,
  },
  {
    name: "deflated",
    headers: { ...html, "content-encoding": "deflate" },
    body: deflateRawSync(page),
    read: (bytes: Buffer) => String(inflateRawSync(bytes)),
    want: rewritten,
  },
  { name: "of a type without parameters", headers: { "content-type": "text/html" }, body: page, want: rewritten },
  { name: "of nothing, compressed", headers: { ...html, "content-encoding": "gzip" }, body: "", want: "" },
  { name: "not compressed as it says", headers: { ...html, "content-encoding": "gzip" }, body: page, want: page },
  { name: "compressed in a way we do not know", headers: { ...html, "content-encoding": "br" }, body: page, want: page },
  { name: "of another type", headers: { "content-type": "text/plain" }, body: page, want: page },
]) {
  test(`links of a page: ${name}`, async (t) => {
    const port = await listening(t, (_req, res) => res.writeHead(200, { ...headers, "content-length": body.length }).end(body));
    const answer = await proxied(t, port, "/");
    assert.equal(read(answer.body), want);
    const length = answer.headers["content-length"];
    assert.ok(length === undefined || length === String(answer.body.length), `${length} instead of ${answer.body.length} bytes`);
  });
}

test("a page of 200,000 links is rewritten without a long turn; a longer one is not rewritten", async (t) => {
  const [links, longer] = [200_000, 450_000];
  const port = await listening(t, ({ url }, res) =>
    res.writeHead(200, html).end("<a href=/>".repeat(url === "/" ? links : longer)),
  );
  let body = Buffer.alloc(0);
  const longest = await longestTurnOf(200, async () => {
    ({ body } = await proxied(t, port, "/"));
  });
  assert.equal(body.length, links * `<a href=${below}/>`.length);
  assert.ok(longest < 200, `a turn of ${longest} ms`);
  assert.equal((await proxied(t, port, "/long")).body.length, longer * "<a href=/>".length);
});

test("a redirect of the server behind leads back through the proxy", async (t) => {
  const port = await listening(t, (req, res) =>
    res.writeHead(302, { location: `http://127.0.0.1:${req.headers["x-port"]}/login?to=/` }).end(),
  );
  const answer = await proxied(t, port, "/", { headers: { "x-port": String(port) } });
  assert.equal(answer.status, 302);
  assert.equal(answer.headers.location, `${below}/login?to=/`);
});

test("a refused connection to the backend is 503 with the dial error", async (t) => {
  const answer = await proxied(t, 1, "/");
  assert.equal(answer.status, 503);
  assert.equal(String(answer.body), "error trying to reach service: dial tcp 127.0.0.1:1: connect: connection refused");
});

for (const { link, want } of [
  { link: "/x", want: `${below}/x` },
  { link: "/x/?q=/y#z", want: `${below}/x/?q=/y#z` },
  { link: "x/y", want: "x/y" },
  { link: "", want: "" },
  { link: "#top", want: "#top" },
  { link: `${below}/x`, want: `${below}/x` },
  { link: "http://10.0.0.7:8080/x", want: `${below}/x` },
  { link: "//10.0.0.7:8080/x", want: `${below}/x` },
  { link: "https://api.example/x", want: `https://api.example${below}/x` },
  { link: "https://elsewhere.example/x", want: "https://elsewhere.example/x" },
  { link: "//elsewhere.example/x", want: "//elsewhere.example/x" },
  { link: "mailto:a@b.example", want: "mailto:a@b.example" },
  { link: "/../../secret", want: "/api/v1/namespaces/default/pods/secret" },
]) {
  test(`the link ${JSON.stringify(link)} through the proxy: ${want}`, () => {
    const exchange = { url: `${below}/page?x=1`, headers: { host: "api.example" } } as unknown as Exchange;
    const url = new URL("http://10.0.0.7:8080/page");
    assert.equal(linkRewriter(exchange, { url, toNode: false, as: "proxy" })(link), want);
  });
}

test("an upgrade that was not requested is an error", async (t) => {
  const server = createTcpServer((socket) => {
    socket.on("error", () => {});
    socket.once("data", () => socket.write("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\nfree"));
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(() => server.close());
  const { status, body } = await proxied(t, (server.address() as AddressInfo).port, "/");
  assert.equal(status, 500);
  assert.equal(String(body), 'backend tried to switch protocol "x" when "" was requested');
});

test("fields that the server names in Connection stay on its connection", async (t) => {
  const port = await listening(t, (_req, res) => {
    res.writeHead(200, { connection: "close, X-Hop", "x-hop": "1", "x-own": "2" }).end("ok");
  });
  const { headers } = await proxied(t, port, "/a");
  assert.deepEqual([headers["x-hop"], headers["x-own"]], [undefined, "2"]);
});

for (const { code, location, want } of [
  { code: 201, location: "/items/7", want: `${below}/items/7` },
  { code: 303, location: "/items?new", want: `${below}/items?new` },
  { code: 200, location: "https://elsewhere.example.com/x", want: "https://elsewhere.example.com/x" },
]) {
  test(`the location of an answer with ${code} leads ${location.startsWith("/") ? "through the proxy" : "where it said"}`, async (t) => {
    const port = await listening(t, (_req, res) => res.writeHead(code, { location, "content-type": "text/plain" }).end("made"));
    const answer = await proxied(t, port, "/items", { method: "POST" });
    assert.deepEqual([answer.status, answer.headers.location], [code, want]);
  });
}

const ofConnection = {
  ...{ connection: "close", expect: "100-continue", "keep-alive": "timeout=5", "proxy-authenticate": "Basic" },
  ...{
    "proxy-authorization": "Basic a",
    "proxy-connection": "close",
    te: "trailers",
    trailer: "x",
    "transfer-encoding": "chunked",
  },
  ...{ upgrade: "x", "http2-settings": "AAAA" },
};

test("what belongs to a connection or to this server is neither forwarded nor returned", () => {
  const credentials = { authorization: "Bearer a", "impersonate-uid": "1", "x-remote-user": "root", "x-remote-extra-a": "b" };
  const headers = { ...ofConnection, ...credentials, accept: "*/*", cookie: "a=b" };
  const exchange = { headers, url: "/a?b", remoteAddress: "10.1.2.3" } as unknown as Exchange; // cast: all that is read
  assert.deepEqual(forwardedHeaders(exchange), {
    ...{ accept: "*/*", cookie: "a=b", "x-forwarded-for": "10.1.2.3", "x-forwarded-uri": "/a" },
  });
  const cors = Object.fromEntries(
    ["credentials", "headers", "methods", "origin"].map((what) => [`access-control-allow-${what}`, "*"]),
  );
  const answer = { headers: { ...ofConnection, ...cors, etag: "a", "set-cookie": ["a", "b"] } } as unknown as IncomingMessage;
  assert.deepEqual(returnedHeaders(answer), { etag: "a", "set-cookie": ["a", "b"] });
});

import assert from "node:assert/strict";
import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { once } from "node:events";
import { mkdtempSync, rmSync, stat, writeFileSync } from "node:fs";
import { request as httpRequest } from "node:http";
import { type ClientHttp2Session, connect as connectHttp2 } from "node:http2";
import { request as httpsRequest } from "node:https";
import { connect as connectTcp, type Server as NetServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { before, type TestContext, test } from "node:test";
import { connect as connectTls } from "node:tls";
import { StatusError } from "../objects/errors/status-error.ts";
import { discardLogger } from "../process/logging/logger.ts";
import { heldBytes } from "../testing/held-bytes.ts";
import { type FullAnswer, type RequestSettings, requestOver } from "../testing/https-client.ts";
import { waitFor } from "../testing/wait-for.ts";
import { type KeyPair, newCa, newCertificate, subjectOf } from "./certificates.ts";
import type { Exchange, ExchangeHandler } from "./exchange.ts";
import { type HttpServer, type HttpServerOptions, startHttpServer } from "./https-server.ts";

let ca: KeyPair;
let serving: KeyPair;
let client: KeyPair;
let stranger: KeyPair;
before(async () => {
  ca = await newCa({ commonName: "ca" });
  const other = await newCa({ commonName: "other" });
  const names = { dnsNames: ["localhost"], ips: ["127.0.0.1", "::1"] };
  serving = await newCertificate({ commonName: "server", ...names, usages: ["server"], ca });
  client = await newCertificate({ commonName: "alice", organizations: ["a", "b"], usages: ["client"], ca });
  stranger = await newCertificate({ commonName: "alice", usages: ["client"], ca: other });
});

async function start(t: TestContext, handler: ExchangeHandler, more: Partial<HttpServerOptions> = {}): Promise<HttpServer> {
  const tls = { cert: serving.certPem, key: serving.keyPem, clientCa: ca.certPem };
  const server = await startHttpServer({ port: 0, bindAddress: "127.0.0.1", handler, log: discardLogger, tls, ...more });
  t.after(() => server.close());
  return server;
}

function http2Session(t: TestContext, server: HttpServer): ClientHttp2Session {
  const session = connectHttp2(`https://127.0.0.1:${server.port}`, { ca: ca.certPem });
  session.on("error", () => {});
  t.after(() => session.destroy());
  return session;
}

const echo: ExchangeHandler = async (exchange) => {
  try {
    const body = await exchange.body(1000);
    exchange.setHeader("audit-id", "42");
    exchange.appendHeader("Warning", "one");
    exchange.appendHeader("warning", "two");
    const certificate = exchange.tls?.getPeerX509Certificate();
    const subject = certificate === undefined ? undefined : subjectOf(certificate);
    const said = {
      method: exchange.method,
      url: exchange.url,
      version: exchange.httpVersion,
      host: exchange.headers.host,
      body: String(body),
    };
    exchange.respond(
      201,
      { "content-type": "application/json" },
      JSON.stringify({ ...said, subject, authorized: exchange.tls?.authorized }),
    );
  } catch (err) {
    if (!(err instanceof StatusError)) throw err;
    exchange.respond(err.code, {}, err.message);
  }
};

for (const { protocol, version } of [
  { protocol: "HTTP/1.1", version: "1.1" },
  { protocol: "HTTP/2", version: "2.0" },
] as const) {
  const fetchFrom = ({ port }: HttpServer, requested: Omit<RequestSettings, "port" | "ca">): Promise<FullAnswer> =>
    requestOver(protocol, { port, ca: ca.certPem, ...requested });
  test(`${protocol}: gives the request to the handler and its answer to the client`, async (t) => {
    const server = await start(t, echo);
    const answer = await fetchFrom(server, { method: "POST", path: "/api/v1/pods?limit=5", body: "hello" });
    assert.equal(answer.status, 201);
    const host = `127.0.0.1:${server.port}`;
    assert.deepEqual(JSON.parse(answer.body), {
      method: "POST",
      url: "/api/v1/pods?limit=5",
      version,
      host,
      body: "hello",
      authorized: false,
    });
    assert.partialDeepStrictEqual(answer.headers, {
      "content-type": "application/json",
      "content-length": String(answer.body.length),
      "audit-id": "42",
      warning: "one, two",
    });
    assert.ok(answer.headers["date"]);
  });

  test(`${protocol}: reports the client certificate and whether its authority is known`, async (t) => {
    const server = await start(t, echo);
    const known = JSON.parse((await fetchFrom(server, { pair: client })).body);
    assert.deepEqual([known.subject, known.authorized], [{ commonName: "alice", organizations: ["a", "b"] }, true]);
    const unknown = JSON.parse((await fetchFrom(server, { pair: stranger })).body);
    assert.equal(unknown.authorized, false);
  });

  test(`${protocol}: refuses a body beyond the limit, with and without a length`, async (t) => {
    const server = await start(t, echo);
    for (const withLength of [true, false]) {
      const post = (bytes: number): Promise<FullAnswer> => {
        // Node's HTTP/1.1 client adds a length unless it sends chunks.
        const chunked: Record<string, string> = protocol === "HTTP/1.1" ? { "transfer-encoding": "chunked" } : {};
        const headers = withLength ? { "content-length": String(bytes) } : chunked;
        return fetchFrom(server, { method: "POST", body: Buffer.alloc(bytes, "x"), headers });
      };
      for (const bytes of [1001, 5000]) {
        const answer = await post(bytes);
        assert.deepEqual([answer.status, answer.body], [413, "Request entity too large: limit is 1000"]);
      }
      assert.equal((await post(1000)).status, 201);
    }
  });

  test(`${protocol}: streams with backpressure and counts written bytes`, async (t) => {
    const chunk = Buffer.alloc(64 * 1024, "y");
    let waited = 0;
    let exchange: Exchange | undefined;
    const server = await start(t, async (one) => {
      exchange = one;
      const stream = one.stream(200, { "content-type": "text/plain" });
      for (let i = 0; i < 100; i++) {
        if (!stream.write(chunk)) {
          waited++;
          await stream.drained();
        }
      }
      stream.end();
    });
    const answer = await fetchFrom(server, {});
    assert.equal(answer.body.length, 100 * chunk.length);
    assert.ok(waited > 0);
    assert.deepEqual([exchange?.status, exchange?.bytesWritten], [200, 100 * chunk.length]);
  });

  test(`${protocol}: answers 500 when the handler throws`, async (t) => {
    const server = await start(t, () => {
      throw new Error("secret detail");
    });
    const answer = await fetchFrom(server, {});
    assert.equal(answer.status, 500);
    assert.doesNotMatch(answer.body, /secret/);
  });

  test(`${protocol}: breaks off an answer whose handler throws`, async (t) => {
    const server = await start(t, (exchange) => {
      exchange.stream(200, {}).write("begun");
      throw new Error("secret detail");
    });
    await assert.rejects(fetchFrom(server, {}));
    await waitFor(() => server.active === 0, { what: "the end of the request" });
  });

  test(`${protocol}: refuses a path with a malformed escape before the handler`, async (t) => {
    const server = await start(t, (exchange) => exchange.respond(200, {}, exchange.url));
    for (const path of ["/%zz", "/a/%2", "/a%?b=c"]) {
      const { status, headers, body } = await fetchFrom(server, { path });
      assert.deepEqual([status, headers["content-type"], body], [400, "text/plain; charset=utf-8", "400 Bad Request"], path);
    }
    assert.equal((await fetchFrom(server, { path: "/%7Aa?b=%zz" })).body, "/%7Aa?b=%zz");
  });

  test(`${protocol}: answers OPTIONS * without calling the handler`, async (t) => {
    const server = await start(t, (exchange) => exchange.respond(403, {}, exchange.url));
    const { status, headers, body } = await fetchFrom(server, { method: "OPTIONS", path: "*" });
    assert.deepEqual([status, headers["content-length"], body], [200, "0", ""]);
    assert.equal((await fetchFrom(server, { method: "OPTIONS", path: "/" })).status, 403);
    // HTTP/2 refuses this path with another method.
    if (protocol === "HTTP/1.1") assert.equal((await fetchFrom(server, { method: "GET", path: "*" })).body, "*");
  });

  test(`${protocol}: answers HEAD and 204 without a body`, async (t) => {
    const server = await start(t, (exchange) =>
      exchange.respond(exchange.method === "HEAD" ? 200 : 204, {}, exchange.method === "HEAD" ? "abc" : ""),
    );
    const head = await fetchFrom(server, { method: "HEAD" });
    assert.deepEqual([head.status, head.headers["content-length"], head.body], [200, "3", ""]);
    const none = await fetchFrom(server, { method: "DELETE" });
    assert.deepEqual([none.status, none.headers["content-length"]], [204, undefined]);
  });
}

test("aborts the handler's signal when the client disconnects, over both protocols", async (t) => {
  const seen: string[] = [];
  let notify = (): void => {};
  const server = await start(t, async (exchange) => {
    exchange.stream(200, {}).write("x");
    await once(exchange.signal, "abort");
    seen.push(exchange.httpVersion);
    notify();
  });
  const session = http2Session(t, server);
  const stream = session.request({ ":path": "/" });
  stream.on("error", () => {});
  await once(stream, "data");
  const done = new Promise<void>((resolve) => {
    notify = () => {
      if (seen.length === 2) resolve();
    };
  });
  stream.close();
  const request = httpsRequest({ host: "127.0.0.1", port: server.port, ca: ca.certPem, agent: false });
  request.on("error", () => {});
  request.end();
  const [response] = await once(request, "response");
  await once(response, "data");
  request.destroy();
  await done;
  assert.deepEqual(seen.sort(), ["1.1", "2.0"]);
});

const refusal = (text: string): string =>
  `HTTP/1.1 ${text}\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\n\r\n${text}`;
for (const { name, sent, want } of [
  { name: "that is none", sent: "rubbish\r\n\r\n", want: refusal("400 Bad Request") },
  {
    name: "with two lengths",
    sent: "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
    want: refusal("400 Bad Request"),
  },
  {
    name: "with endless headers",
    sent: `GET / HTTP/1.1\r\nHost: x\r\nX: ${"a".repeat(2_000_000)}\r\n\r\n`,
    want: refusal("431 Request Header Fields Too Large"),
  },
  { name: "that does not come to its end", sent: "GET / HTTP/1.1\r\nHost: x\r\n", want: "" },
]) {
  test(`HTTP/1.1: a request ${name} is answered ${JSON.stringify(want.slice(0, 12))}, and is passed to no handler`, async (t) => {
    // The other requests are answered, so they get a generous timeout.
    const headersTimeoutMs = want === "" ? 200 : 60_000;
    const options = { tls: undefined, headersTimeoutMs, headersCheckMs: 20 };
    const server = await start(t, () => assert.fail("a handler was called"), options);
    const socket = connectTcp({ host: "127.0.0.1", port: server.port });
    let text = "";
    socket.setEncoding("latin1").on("data", (chunk: string) => {
      text += chunk;
    });
    socket.write(sent);
    await once(socket, "close");
    assert.equal(text, want);
    await waitFor(() => server.connections === 0, { what: "the end of the connection" });
  });
}

test("HTTP/1.1: a malformed body after a response does not cause a second response", async (t) => {
  const server = await start(
    t,
    async (exchange) => {
      exchange.stream(200, {}).write("begun");
      await exchange.body(100).catch(() => {});
    },
    { tls: undefined },
  );
  const socket = connectTcp({ host: "127.0.0.1", port: server.port });
  socket.on("error", () => {});
  let text = "";
  socket.setEncoding("latin1").on("data", (chunk: string) => {
    text += chunk;
  });
  socket.write("POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n");
  await waitFor(() => text.includes("begun"), { what: "the beginning of the answer" });
  socket.write("zz\r\n");
  await once(socket, "close");
  assert.equal(text.match(/HTTP\/1\.1 /g)?.length, 1);
});

test("HTTP/1.1: a body in chunks of one byte does not multiply its memory", async (t) => {
  const body = Promise.withResolvers<Buffer>();
  const requested = Promise.withResolvers<void>();
  const server = await start(
    t,
    async (exchange) => {
      requested.resolve();
      body.resolve(await exchange.body(1_000_000));
    },
    { tls: undefined },
  );
  const socket = connectTcp({ host: "127.0.0.1", port: server.port });
  socket.write("POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n");
  await requested.promise;
  const before = heldBytes();
  const chunks = "1\r\nx\r\n".repeat(10_000);
  for (let i = 0; i < 30; i++) if (!socket.write(chunks)) await once(socket, "drain");
  await new Promise((resolve) => socket.write("1\r\nx\r\n", resolve));
  for (let turn = 0; turn < 300; turn++) await new Promise(setImmediate); // each reads 64 KiB
  const held = heldBytes() - before;
  assert.ok(held < 8 * 2 ** 20, `${held} bytes`);
  socket.end("0\r\n\r\n");
  assert.equal((await body.promise).length, 300_001);
});

test("HTTP/1.1: an unread body does not delay the end of a disconnected request", async (t) => {
  const said = Promise.withResolvers<string>();
  const begun = Promise.withResolvers<void>();
  const server = await start(t, async (exchange) => {
    begun.resolve();
    await once(exchange.signal, "abort");
    await new Promise(setImmediate); // let all events of the disconnection run
    said.resolve(await exchange.body(1000).then(String, (err: Error) => err.message));
  });
  const request = httpsRequest({ host: "127.0.0.1", port: server.port, ca: ca.certPem, agent: false, method: "POST" });
  request.on("error", () => {});
  request.end("all of it");
  await begun.promise;
  request.destroy();
  assert.match(await said.promise, /the client disconnected/);
});

test("hands the socket over for an upgrade, or answers it plainly", async (t) => {
  const server = await start(t, (exchange) => {
    if (exchange.url === "/no") return exchange.respond(403, { "content-type": "text/plain" }, "no");
    const { socket, head } = exchange.upgrade as NonNullable<Exchange["upgrade"]>;
    socket.write("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n\r\n");
    if (head.length > 0) socket.write(head);
    socket.pipe(socket);
  });
  const fetchFrom = (path: string, upgrade: string) => {
    const headers = { connection: "Upgrade", upgrade };
    const request = httpsRequest({
      host: "127.0.0.1",
      port: server.port,
      ca: ca.certPem,
      agent: false,
      path,
      method: "POST",
      headers,
    });
    request.end();
    return request;
  };
  const [, socket] = await once(fetchFrom("/yes", "SPDY/3.1"), "upgrade");
  socket.write("ping");
  assert.equal(String((await once(socket, "data"))[0]), "ping");
  socket.destroy();
  const [refused] = await once(fetchFrom("/no", "SPDY/3.1"), "response");
  assert.equal(refused.statusCode, 403);
  const raw = connectTls({ port: server.port, host: "127.0.0.1", ca: ca.certPem });
  t.after(() => void raw.destroy());
  let answer = "";
  raw.on("data", (chunk: Buffer) => {
    answer += chunk.toString();
  });
  raw.write("GET /no HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n\r\n");
  await once(raw, "end");
  assert.match(answer, /^HTTP\/1.1 403 /);
  const [ignored] = await once(fetchFrom("/no", "h2c"), "response");
  assert.equal(ignored.statusCode, 403);
});

test("closes a connection gracefully: running requests continue, new ones use another connection", async (t) => {
  const server = await start(t, async (exchange) => {
    exchange.goAway();
    const stream = exchange.stream(200, {});
    stream.write("a");
    await exchange.body(10);
    stream.end("b");
  });
  const session = http2Session(t, server);
  const stream = session.request({ ":method": "POST", ":path": "/" }, { endStream: false });
  const goaway = once(session, "goaway");
  await once(stream, "response");
  await goaway;
  stream.end();
  let body = "";
  for await (const chunk of stream.setEncoding("utf8")) body += chunk;
  assert.equal(body, "ab");
});

test("lets running requests finish when it closes, and cuts off those that do not", async (t) => {
  let finish = (): void => {};
  const server = await start(t, async (exchange) => {
    if (exchange.url === "/forever") return new Promise(() => {});
    await new Promise<void>((resolve) => {
      finish = resolve;
    });
    exchange.respond(200, {}, "done");
  });
  const session = http2Session(t, server);
  const good = session.request({ ":path": "/" });
  const bad = session.request({ ":path": "/forever" });
  bad.on("error", () => {});
  while (server.active < 2) await new Promise(setImmediate);
  const closing = server.close(300);
  finish();
  const [headers] = await once(good, "response");
  assert.equal(headers[":status"], 200);
  await closing;
  assert.equal(server.active, 0);
  const refused = connectTcp(server.port, "127.0.0.1");
  const [err] = await once(refused, "error");
  assert.equal(err.code, "ECONNREFUSED");
});

test("a plain request on a TLS port is answered and its connection closed, also when the client does not close its side", async (t) => {
  const server = await start(t, echo);
  const socket = connectTcp({ port: server.port, host: "127.0.0.1", allowHalfOpen: true });
  t.after(() => void socket.destroy());
  let text = "";
  socket.on("error", () => {}).on("data", (chunk: Buffer) => (text += chunk.toString()));
  socket.write("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
  await waitFor(() => text.includes("HTTP request to an HTTPS server"), { what: "the answer" });
  await waitFor(() => server.connections === 0, { what: "the end of the connection" });
});

test("a server that has ended looks at its connections no more", async (t) => {
  const begun = t.mock.method(globalThis, "setInterval");
  const ended = t.mock.method(globalThis, "clearInterval");
  const server = await start(t, echo, { headersCheckMs: 12_345 });
  const sweeper = begun.mock.calls.find((call) => call.arguments[1] === 12_345)?.result;
  assert.ok(sweeper !== undefined);
  await server.close();
  assert.ok(ended.mock.calls.some((call) => call.arguments[0] === sweeper));
});

test("closes connections without a TLS handshake or headers in time", async (t) => {
  const deaf = await start(t, echo, { handshakeTimeoutMs: 50 });
  const silent = connectTcp(deaf.port, "127.0.0.1");
  silent.on("error", () => {});
  await once(silent, "close");
  const server = await start(t, echo, { headersTimeoutMs: 50, headersCheckMs: 20 });
  const shaken = connectTls({ host: "127.0.0.1", port: server.port, rejectUnauthorized: false, ALPNProtocols: ["http/1.1"] });
  shaken.on("error", () => {});
  await once(shaken, "secureConnect");
  shaken.write("GET / HTTP/1.1\r\nHost: x\r\n");
  shaken.resume();
  await once(shaken, "close");
});

test("keeps an HTTP/1.1 connection for the next request, and closes it when draining", async (t) => {
  const server = await start(t, (exchange) => {
    if (exchange.url === "/leave") exchange.goAway();
    exchange.respond(200, {}, "ok");
  });
  const socket = connectTls({ host: "127.0.0.1", port: server.port, ca: ca.certPem, ALPNProtocols: ["http/1.1"] });
  await once(socket, "secureConnect");
  const fetchFrom = async (path: string): Promise<string> => {
    socket.write(`GET ${path} HTTP/1.1\r\nHost: x\r\n\r\n`);
    return String((await once(socket, "data"))[0]);
  };
  assert.doesNotMatch(await fetchFrom("/a"), /connection|keep-alive/i);
  const closed = once(socket, "close");
  assert.match(await fetchFrom("/leave"), /\r\nConnection: close\r\n/);
  await closed;
});

test("a request that comes while the server closes is answered, as the last one of its connection", async (t) => {
  const ending = Promise.withResolvers<void>();
  const server = await start(
    t,
    async (exchange) => {
      if (exchange.url === "/slow") await ending.promise;
      exchange.respond(200, {}, exchange.url);
    },
    { tls: undefined },
  );
  const open = async () => {
    const socket = connectTcp(server.port, "127.0.0.1").on("error", () => {});
    t.after(() => void socket.destroy());
    await once(socket, "connect");
    let text = "";
    socket.on("data", (chunk: Buffer) => (text += chunk.toString()));
    return { socket, text: () => text, ask: (path: string) => socket.write(`GET ${path} HTTP/1.1\r\nHost: x\r\n\r\n`) };
  };
  const [slow, idle, last] = [await open(), await open(), await open()];
  last.socket.write("GET /late HTTP/1.1\r\n");
  slow.ask("/slow");
  idle.ask("/before");
  await waitFor(() => server.connections === 3 && server.active === 1 && idle.text().endsWith("/before"));
  assert.doesNotMatch(idle.text(), /Connection: close/i);
  const closing = server.close(10_000);
  await waitFor(() => idle.socket.destroyed, { what: "the end of the idle connection" });
  last.socket.write("Host: x\r\n\r\n");
  await waitFor(() => last.text().endsWith("/late"));
  assert.match(last.text(), /\r\nConnection: close\r\n/i);
  await waitFor(() => last.socket.destroyed, { what: "the end of the connection" });
  ending.resolve();
  await closing;
  assert.match(slow.text(), /^HTTP\/1\.1 200 OK\r\n(.|\r\n)*\/slow$/);
});

test("serves plain HTTP as well", async (t) => {
  const server = await start(t, echo, { tls: undefined });
  const request = httpRequest({ host: "127.0.0.1", port: server.port, agent: false, path: "/x" });
  request.end();
  const [response] = await once(request, "response");
  let body = "";
  for await (const chunk of response.setEncoding("utf8")) body += chunk;
  assert.equal(JSON.parse(body).url, "/x");
});

test("presents the certificate for the requested name, and new ones after their files changed", async (t) => {
  const directory = mkdtempSync(join(tmpdir(), "cox-serving-"));
  t.after(() => rmSync(directory, { recursive: true }));
  const file = (name: string): string => join(directory, name);
  const put = async (name: string, commonName: string): Promise<void> => {
    const pair = await newCertificate({ commonName, dnsNames: [commonName], usages: ["server"], ca });
    writeFileSync(file(`${name}.key`), pair.keyPem);
    writeFileSync(file(`${name}.crt`), pair.certPem);
  };
  await put("main", "one");
  await put("other", "special.example");
  const tls = {
    certFile: file("main.crt"),
    keyFile: file("main.key"),
    sni: [{ certFile: file("other.crt"), keyFile: file("other.key") }],
  };
  const server = await start(t, echo, { tls });
  const shown = async (servername: string): Promise<string> => {
    const socket = connectTls({ host: "127.0.0.1", port: server.port, servername, rejectUnauthorized: false });
    await once(socket, "secureConnect");
    const { commonName } = subjectOf(socket.getPeerX509Certificate() as never);
    socket.destroy();
    return commonName;
  };
  assert.equal(await shown("anything.example"), "one");
  assert.equal(await shown("special.example"), "special.example");
  await put("main", "two");
  server.reloadCertificates();
  assert.equal(await shown("anything.example"), "two");
  writeFileSync(file("main.crt"), "broken");
  assert.throws(() => server.reloadCertificates());
  assert.equal(await shown("anything.example"), "two");
});

test("servers share a port when each of them sets SO_REUSEPORT, and both get connections", async (t) => {
  const answered = new Set<string>();
  const answering =
    (name: string): ExchangeHandler =>
    (exchange) => {
      answered.add(name);
      exchange.respond(200, {}, name);
    };
  const first = await start(t, answering("first"), { reusePort: true });
  await start(t, answering("second"), { reusePort: true, port: first.port });
  await assert.rejects(start(t, answering("third"), { port: first.port }), { code: "EADDRINUSE" });
  // The kernel selects a listener by the client's port: with 64 connections the chance of hitting only one of two is 1 in 10^19.
  for (let tries = 0; tries < 64 && answered.size < 2; tries++) {
    const session = http2Session(t, first);
    const stream = session.request({ ":path": "/" });
    stream.resume();
    await once(stream, "end");
    session.close();
  }
  assert.deepEqual(answered, new Set(["first", "second"]));
});

for (const { name, more } of [
  { name: "HTTPS", more: {} },
  { name: "plain HTTP", more: { tls: undefined } },
]) {
  test(`a connection that cannot be accepted does not end a server of ${name}`, async (t) => {
    const said: string[] = [];
    const log = { ...discardLogger, error: (message: string) => void said.push(message) };
    const server = await start(t, echo, { log, ...more });
    const listener = Promise.withResolvers<NetServer>();
    const accepted = (message: unknown): void => listener.resolve((message as { socket: { server: NetServer } }).socket.server);
    subscribe("net.server.socket", accepted);
    t.after(() => unsubscribe("net.server.socket", accepted));
    const socket = connectTcp(server.port, "127.0.0.1");
    t.after(() => socket.destroy());
    (await listener.promise).emit("error", Object.assign(new Error("accept ENFILE"), { code: "ENFILE" }));
    assert.deepEqual(said, ["cannot accept a connection"]);
  });
}

for (const phase of ["in a timer", "after a read"]) {
  test(`a connection that is not accepted yet when the server closes ${phase} is accepted, not reset`, async (t) => {
    const server = await start(t, (exchange) => exchange.respond(200, {}, ""));
    const turn = (): Promise<void> =>
      new Promise(
        (resolve) => void (phase === "in a timer" ? setTimeout(resolve, 1) : stat(import.meta.filename, () => resolve())),
      );
    await turn();
    const socket = connectTcp(server.port, "127.0.0.1");
    t.after(() => socket.destroy());
    const errors: Error[] = [];
    socket.on("error", (err) => errors.push(err));
    await new Promise<void>((resolve) => process.nextTick(resolve)); // the connection is in the listener's queue now
    const closing = server.close(5_000);
    for (let pass = 0; pass < 4; pass++) await new Promise((resolve) => void setImmediate(resolve));
    assert.equal(server.connections, 1);
    assert.deepEqual(errors, []);
    socket.destroy();
    await closing;
  });
}

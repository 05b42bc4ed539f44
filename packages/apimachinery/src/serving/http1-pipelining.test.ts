/** Clients that send several HTTP/1.1 requests before they read a response (RFC 9112, section 9.3.2). */
import assert from "node:assert/strict";
import { once } from "node:events";
import { connect as connectTcp, type Socket } from "node:net";
import { before, type TestContext, test } from "node:test";
import { setImmediate as immediate } from "node:timers/promises";
import { connect as connectTls } from "node:tls";
import { discardLogger } from "../process/logging/logger.ts";
import { longestTurnOf } from "../testing/cpu-time.ts";
import { type TestPair, testPair } from "../testing/tls.ts";
import { waitFor } from "../testing/wait-for.ts";
import type { ExchangeHandler } from "./exchange.ts";
import { type HttpServer, startHttpServer } from "./https-server.ts";

let pair: TestPair;
before(async () => {
  pair = await testPair();
});

/** Together twice as long as a turn may take. */
const pipelined = 600;
/** Upper bound of an event-loop turn: 100 ms with threefold slack. */
const longestTurnMs = 300;

/** Uses about 1 ms of CPU time, like an uncached request, after some microtasks, like filters. */
function newHandler() {
  const state = { running: 0, most: 0, handled: 0 };
  const handler: ExchangeHandler = async (exchange) => {
    state.most = Math.max(state.most, ++state.running);
    for (let filter = 0; filter < 10; filter++) await undefined;
    const begin = process.threadCpuUsage();
    for (let spent = 0; spent < 1000; ) {
      const { user, system } = process.threadCpuUsage(begin);
      spent = user + system;
    }
    if (exchange.method !== "GET") await exchange.body(1000);
    state.handled++;
    state.running--;
    exchange.respond(200, {}, exchange.url);
  };
  return { state, handler };
}

async function start(t: TestContext, isPlain: boolean, handler: ExchangeHandler): Promise<HttpServer> {
  const tls = isPlain ? undefined : { cert: pair.cert, key: pair.key };
  const server = await startHttpServer({ port: 0, bindAddress: "127.0.0.1", handler, log: discardLogger, tls });
  t.after(() => server.close());
  return server;
}

async function connect(t: TestContext, { port }: HttpServer, isPlain: boolean): Promise<{ socket: Socket; text(): string }> {
  const socket = isPlain ? connectTcp(port, "127.0.0.1") : connectTls({ port, host: "127.0.0.1", ca: pair.ca });
  const pieces: string[] = [];
  socket.on("data", (chunk: Buffer) => pieces.push(chunk.toString("latin1")));
  socket.on("error", () => {});
  t.after(() => void socket.destroy());
  await once(socket, isPlain ? "connect" : "secureConnect");
  return { socket, text: () => pieces.join("") };
}

const get = (path: string): string => `GET ${path} HTTP/1.1\r\nHost: x\r\n\r\n`;
const requests = (of: string): string => Array.from({ length: pipelined }, (_, at) => get(`/${of}/${at}`)).join("");

for (const { name, isPlain, first } of [
  { name: "over TLS", isPlain: false, first: "" },
  {
    name: "over TLS, after a request with a body",
    isPlain: false,
    first: "POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\nab",
  },
  { name: "without TLS", isPlain: true, first: "" },
]) {
  test(`600 GETs in one write ${name} are served one after the other, and others between them`, async (t) => {
    const { state, handler } = newHandler();
    const server = await start(t, isPlain, handler);
    const longest = await longestTurnOf(longestTurnMs, async (round) => {
      const { socket, text } = await connect(t, server, isPlain);
      const bystander = await connect(t, server, isPlain);
      socket.write(first + requests(`round-${round}`));
      const before = state.handled;
      await waitFor(() => state.handled > before, { what: "the first of them" });
      bystander.socket.write(get("/bystander"));
      await waitFor(() => bystander.text().includes("/bystander"), { what: "the answer of another client" });
      const handled = state.handled - before;
      assert.ok(handled < pipelined / 2, `another client waited for ${handled} requests`);
      await waitFor(() => text().includes(`/round-${round}/${pipelined - 1}`), { what: "all answers", timeoutMs: 60_000 });
      const answers = [...text().matchAll(/\/round-\d+\/(\d+)/g)].map(([, at]) => Number(at));
      assert.deepEqual(
        answers,
        Array.from({ length: pipelined }, (_, at) => at),
      );
    });
    assert.ok(longest < longestTurnMs, `a turn of ${longest} ms`);
    assert.ok(state.most <= 2, `${state.most} requests at a time of two connections`);
  });
}

for (const isPlain of [false, true]) {
  test(`pipelined requests${isPlain ? " without TLS" : ""} are not read before they are served`, async (t) => {
    const release = Promise.withResolvers<void>();
    let handled = 0;
    const server = await start(t, isPlain, async (exchange) => {
      handled++;
      await release.promise;
      exchange.respond(200, {}, exchange.url);
    });
    const { socket, text } = await connect(t, server, isPlain);
    socket.write("POST /first HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n");
    await waitFor(() => handled === 1, { what: "the first request" });
    const many = 400_000;
    const ahead = get("/ahead").repeat(1000);
    // Socket buffers of both sides hold several MB; anything beyond that stays with the client.
    let sent = 0;
    const write = (): void => {
      while (sent < many && socket.write(ahead)) sent += 1000;
    };
    socket.on("drain", write);
    write();
    let before = -1;
    await waitFor(
      () => {
        const isStill = before === sent;
        before = sent;
        return isStill && socket.writableLength > 0;
      },
      { what: "the client to wait", intervalMs: 500, timeoutMs: 60_000 },
    );
    assert.ok(sent < many, `${sent} requests were read`);
    assert.equal(handled, 1);
    release.resolve();
    await waitFor(() => text().includes("/first"), { what: "the first answer" });
    socket.destroy();
    await waitFor(() => server.active === 0, { what: "the end of all requests" });
  });
}

test("an upgrade behind other requests waits for their responses, and gets its early bytes", async (t) => {
  const release = Promise.withResolvers<void>();
  const server = await start(t, false, async (exchange) => {
    if (exchange.upgrade !== undefined) {
      const { socket, head } = exchange.upgrade;
      socket.write("HTTP/1.1 101 Switching Protocols\r\n\r\n");
      socket.write(head);
      socket.pipe(socket);
      return;
    }
    await release.promise;
    exchange.respond(200, {}, "first");
  });
  const { socket, text } = await connect(t, server, false);
  const ahead = get("/ahead").repeat(5);
  socket.write(`${ahead}GET /b HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\nhead`);
  await waitFor(() => server.active === 1, { what: "the first request" });
  release.resolve();
  await waitFor(() => text().endsWith("head"), { what: "the upgrade" });
  assert.equal(text().split("200 OK").length, 6);
  assert.ok(text().lastIndexOf("first") < text().indexOf("101 Switching"));
  socket.write("more");
  await waitFor(() => text().endsWith("headmore"), { what: "what came after it" });
});

test("a malformed request is refused after the requests before it were answered", async (t) => {
  const release = Promise.withResolvers<void>();
  const server = await start(t, false, async (exchange) => {
    await release.promise;
    exchange.respond(200, {}, "first");
  });
  const { socket, text } = await connect(t, server, false);
  socket.write(`${get("/a")}\0 no request\r\n\r\n`);
  await waitFor(() => server.active === 1, { what: "the first request" });
  release.resolve();
  await waitFor(() => text().includes("400 Bad Request"), { what: "the refusal" });
  assert.match(text(), /^HTTP\/1\.1 200 OK.*firstHTTP\/1\.1 400 Bad Request/s);
});

test("a body that breaks off after an early answer gets no second one", async (t) => {
  const server = await start(t, false, async (exchange) => exchange.respond(403, {}, "no"));
  const { socket, text } = await connect(t, server, false);
  socket.write("POST /a HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n");
  await waitFor(() => text().includes("403 Forbidden"), { what: "the early answer" });
  const closed = once(socket, "close");
  socket.write("no chunk\r\n\r\n");
  await closed;
  assert.equal(text().split("HTTP/1.1 ").length, 2, text());
});

test("an unknown upgrade is ignored, and the response closes the connection", async (t) => {
  const server = await start(t, false, async (exchange) => {
    exchange.respond(200, {}, `${exchange.url} ${exchange.upgrade === undefined}`);
  });
  const { socket, text } = await connect(t, server, false);
  const closed = once(socket, "close");
  socket.write(`GET /a HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n${get("/b")}`);
  await closed;
  assert.match(text(), /^HTTP\/1\.1 200 OK.*Connection: close.*\/a true$/s);
});

test("a refused upgrade whose client does not close its side ends after 5 s", async (t) => {
  const server = await start(t, true, async (exchange) => exchange.respond(403, {}, "no"));
  t.mock.timers.enable({ apis: ["setTimeout"] });
  const socket = connectTcp({ port: server.port, host: "127.0.0.1", allowHalfOpen: true });
  t.after(() => void socket.destroy());
  let text = "";
  socket.setEncoding("latin1").on("data", (chunk: string) => (text += chunk));
  socket.write("GET /a HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\nearly");
  await once(socket, "end");
  assert.match(text, /^HTTP\/1\.1 403 .*no$/s);
  t.mock.timers.tick(4_999);
  for (let i = 0; i < 20; i++) await immediate();
  assert.deepEqual([server.connections, server.active], [1, 1]);
  t.mock.timers.tick(1);
  for (let i = 0; i < 10_000 && server.connections > 0; i++) await immediate();
  assert.deepEqual([server.connections, server.active], [0, 0]);
});

test("an upgrade behind more than 16 pipelined requests closes its connection, and no other", async (t) => {
  const served: string[] = [];
  const server = await start(t, false, async (exchange) => {
    served.push(exchange.url);
    exchange.respond(200, {}, exchange.url);
  });
  const { socket } = await connect(t, server, false);
  const upgrade = "GET /upgrade HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n";
  socket.write(`POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n${get("/before").repeat(40)}${upgrade}first bytes`);
  await waitFor(() => socket.closed, { what: "the end of the connection" });
  assert.ok(!served.includes("/upgrade"));
  await waitFor(() => server.connections === 0 && server.active === 0, { what: "nothing to be left" });
  const other = await connect(t, server, false);
  other.socket.write(get("/other"));
  await waitFor(() => other.text().endsWith("/other"), { what: "another client's answer" });
});

for (const [last, want] of [
  [400, "200 OK"],
  [401, "413 Payload Too Large"],
] as const)
  test(`a body of chunks whose last one has ${last} bytes is answered ${want}`, async (t) => {
    const read: number[] = [];
    const server = await start(t, true, async (exchange) => {
      const body = exchange.body(1000);
      await waitFor(() => exchange.bodyBytes === 600, { what: "the first chunk" });
      second();
      await body.then(
        (bytes) => {
          read.push(bytes.length);
          exchange.respond(200, {});
        },
        () => exchange.respond(413, {}),
      );
    });
    const { socket, text } = await connect(t, server, true);
    const chunk = (bytes: number): string => `${bytes.toString(16)}\r\n${"x".repeat(bytes)}\r\n`;
    const second = (): void => void socket.write(`${chunk(last)}0\r\n\r\n`);
    socket.write(`POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n${chunk(600)}`);
    await waitFor(() => text().includes("\r\n\r\n"), { what: "the answer" });
    assert.equal(text().split("\r\n")[0], `HTTP/1.1 ${want}`);
    assert.deepEqual(read, last > 400 ? [] : [1000]);
  });

test("a body that says it is too large is refused before it comes; 64 MiB of it are dropped, and more ends the connection", async (t) => {
  const server = await start(t, true, async (exchange) => {
    await exchange.body(1000).then(
      () => exchange.respond(200, {}),
      () => exchange.respond(413, {}, "too large"),
    );
  });
  const { socket, text } = await connect(t, server, true);
  const [all, chunk] = [200 << 20, Buffer.alloc(1 << 20)];
  socket.write(`POST / HTTP/1.1\r\nHost: x\r\nContent-Length: ${all}\r\n\r\n`);
  await waitFor(() => text().endsWith("too large"), { what: "the refusal" });
  let sent = 0;
  const send = (): void => {
    while (sent < all && !socket.destroyed) {
      sent += chunk.length;
      if (!socket.write(chunk)) return void socket.once("drain", send);
    }
  };
  send();
  await waitFor(() => socket.destroyed, { what: "the end of the connection", timeoutMs: 30_000 });
  assert.ok(sent >= 64 << 20 && sent < all, `${sent} bytes were taken`);
});

/** Slow clients: each is disconnected after its timeout and does not delay others. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { readdirSync } from "node:fs";
import { connect as connectHttp2 } from "node:http2";
import { Agent, request } from "node:https";
import { connect as connectTcp, type Socket } from "node:net";
import { before, type TestContext, test } from "node:test";
import { connect as connectTls } from "node:tls";
import { discardLogger } from "../process/logging/logger.ts";
import { waitFor } from "../testing/wait-for.ts";
import { type KeyPair, newCa, newCertificate } from "./certificates.ts";
import type { Exchange, ExchangeHandler } from "./exchange.ts";
import { type HttpServer, startHttpServer } from "./https-server.ts";

/** COX_TEST_LONG: five thousand clients, held long enough to be connected at the same time. */
const isLong = process.env["COX_TEST_LONG"] !== undefined;
const crowd = isLong
  ? { count: 5000, timeoutMs: 30_000, asks: 300, dripMs: 1000 }
  : { count: 300, timeoutMs: 1500, asks: 5, dripMs: 50 };

let ca: KeyPair;
let pair: KeyPair;
before(async () => {
  ca = await newCa({ commonName: "ca" });
  pair = await newCertificate({ commonName: "server", ips: ["127.0.0.1"], usages: ["server"], ca });
});

const big = Buffer.alloc(32 * 1024 * 1024, "x");

const handler: ExchangeHandler = async (exchange) => {
  if (exchange.url === "/lazy") return respondLazily(exchange);
  if (exchange.url === "/big") return exchange.respond(200, {}, big);
  if (exchange.url === "/echo") return exchange.respond(200, {}, await exchange.body(1_000_000));
  // As with the server's deadline filter: a response at the deadline, even if the body is incomplete.
  const body = exchange.body(1_000_000);
  const late = new Promise<undefined>((resolve) => setTimeout(resolve, 300, undefined).unref());
  const bytes = await Promise.race([body.catch(() => undefined), late]);
  exchange.respond(bytes === undefined ? 504 : 200, {}, bytes);
};

/** Writes with backpressure, as lists and watches do. */
async function respondLazily(exchange: Exchange): Promise<void> {
  const answer = exchange.stream(200, {});
  for (let at = 0; at < 512 && !exchange.isGone; at++) if (!answer.write(lazyPiece)) await answer.drained();
  answer.end();
}
const lazyPiece = Buffer.alloc(64 * 1024, "x");

async function start(t: TestContext, timeoutMs = crowd.timeoutMs): Promise<HttpServer> {
  const server = await startHttpServer({
    port: 0,
    bindAddress: "127.0.0.1",
    tls: { cert: pair.certPem, key: pair.keyPem },
    handler,
    log: discardLogger,
    handshakeTimeoutMs: timeoutMs,
    headersTimeoutMs: timeoutMs,
    headersCheckMs: 100,
    answerTimeoutMs: timeoutMs,
  });
  t.after(() => server.close());
  return server;
}

const head = (line: string, ...headers: string[]): string => [line, "Host: x", ...headers, "", ""].join("\r\n");

/** Sends the first part at once, then the rest byte by byte until the connection ends. */
function drip(socket: Socket, first: string, rest: string): void {
  socket.write(first);
  let sent = 0;
  const timer = setInterval(() => socket.write(rest[sent++ % rest.length] as string), crowd.dripMs);
  socket.once("close", () => clearInterval(timer));
}

const attacks: Readonly<Record<string, (port: number) => Socket>> = {
  "half a TLS handshake": (port) => {
    const socket = connectTcp(port, "127.0.0.1");
    // The start of a ClientHello record.
    drip(socket, "", "\x16\x03\x01\x02\0\x01\0\x01\xfc\x03\x03");
    return socket;
  },
  "a connection without a byte": (port) => connectTcp(port, "127.0.0.1"),
  "headers byte by byte": (port) => {
    const socket = connectTls({ port, host: "127.0.0.1", ca: ca.certPem });
    drip(socket, "GET / HTTP/1.1\r\n", "X-A: b\r\n");
    return socket;
  },
  "a body byte by byte": (port) => {
    const socket = connectTls({ port, host: "127.0.0.1", ca: ca.certPem });
    drip(socket, head("POST / HTTP/1.1", "Content-Length: 100000"), "x");
    return socket;
  },
  "chunks byte by byte": (port) => {
    const socket = connectTls({ port, host: "127.0.0.1", ca: ca.certPem });
    drip(socket, head("POST / HTTP/1.1", "Transfer-Encoding: chunked"), "1\r\nx\r\n");
    return socket;
  },
  "chunk extensions without end": (port) => {
    const socket = connectTls({ port, host: "127.0.0.1", ca: ca.certPem });
    drip(socket, head("POST / HTTP/1.1", "Transfer-Encoding: chunked") + `1;a=${"y".repeat(20_000)}`, "z");
    return socket;
  },
  "a response that is not read": (port) => {
    const socket = connectTls({ port, host: "127.0.0.1", ca: ca.certPem });
    socket.pause();
    socket.write(head("GET /big HTTP/1.1"));
    return socket;
  },
  "an HTTP/2 response that is not read": (port) => {
    const socket = connectTls({ port, host: "127.0.0.1", ca: ca.certPem, ALPNProtocols: ["h2"] });
    const session = connectHttp2(`https://127.0.0.1:${port}`, { createConnection: () => socket });
    session.on("error", () => {});
    const stream = session.request({ ":path": "/big" });
    stream.on("error", () => {});
    stream.once("close", () => socket.destroy());
    return socket;
  },
};

async function statusOf(port: number, agent: Agent | false = false): Promise<number> {
  const sent = request({ port, host: "127.0.0.1", ca: ca.certPem, agent, method: "POST", path: "/echo" });
  sent.end("hello");
  const [response] = await once(sent, "response");
  response.resume();
  await once(response, "end");
  return response.statusCode;
}

test("each slow client is disconnected after its timeout", async (t) => {
  const outcomes = Object.entries(attacks).map(async ([name, attack]) => {
    const server = await start(t);
    const socket = attack(server.port);
    t.after(() => void socket.destroy());
    socket.on("error", () => {});
    await waitFor(() => server.connections === 1 || socket.closed, { what: `the connection: ${name}` });
    await waitFor(() => server.connections === 0, { what: `its end: ${name}` });
    assert.equal(await statusOf(server.port), 200, name);
  });
  await Promise.all(outcomes);
});

for (const { name, connect } of [
  {
    name: "HTTP/1.1",
    connect(port: number) {
      const socket = connectTls({ port, host: "127.0.0.1", ca: ca.certPem });
      socket.pause();
      socket.write(head("GET /lazy HTTP/1.1"));
      return { socket, isEnded: (server: HttpServer) => server.connections === 0 };
    },
  },
  {
    name: "HTTP/2",
    connect(port: number) {
      const socket = connectTls({ port, host: "127.0.0.1", ca: ca.certPem, ALPNProtocols: ["h2"] });
      const session = connectHttp2(`https://127.0.0.1:${port}`, { createConnection: () => socket });
      session.on("error", () => {});
      const stream = session.request({ ":path": "/lazy" });
      stream.on("error", () => {});
      return { socket, isEnded: () => stream.closed };
    },
  },
]) {
  test(`a client that reads nothing for 60 s is cut off over ${name}, and not before`, async (t) => {
    let passedMs = 0;
    const now = performance.now.bind(performance);
    const clock = t.mock.method(performance, "now", () => now() + passedMs);
    const waiting: Exchange[] = [];
    const server = await startHttpServer({
      port: 0,
      bindAddress: "127.0.0.1",
      tls: { cert: pair.certPem, key: pair.keyPem },
      async handler(exchange) {
        exchange.onUnread = () => waiting.push(exchange);
        await respondLazily(exchange);
      },
      log: discardLogger,
      headersCheckMs: 10,
    });
    t.after(() => server.close());
    const { socket, isEnded } = connect(server.port);
    t.after(() => void socket.destroy());
    socket.on("error", () => {});
    await waitFor(() => waiting.length > 0, { what: "an answer that waits for its client" });
    const [exchange] = waiting as [Exchange];
    const seen = exchange.signal;
    passedMs += 55_000;
    const checks = clock.mock.callCount();
    await waitFor(() => clock.mock.callCount() > checks + 3, { what: "checks of the server" });
    assert.equal(seen.aborted, false, "cut off before 60 s");
    // Data accepted by the client's socket buffer counts as read, so the timeout may have to elapse once more.
    const cutOff = (): boolean => {
      passedMs += 6_000;
      return seen.aborted && isEnded(server);
    };
    await waitFor(cutOff, { what: "the end of the answer" });
  });
}

test("hundreds of them at once block no other client, and all file descriptors are closed", async (t) => {
  const server = await start(t);
  // Reuses an established connection: while hundreds of handshakes exceed the handshake timeout, a new one would be dropped with
  // them.
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  t.after(() => agent.destroy());
  assert.equal(await statusOf(server.port, agent), 200);
  const before = readdirSync("/proc/self/fd").length;
  const kinds = Object.values(attacks).slice(0, 6);
  const sockets: Socket[] = [];
  t.after(() => sockets.forEach((socket) => void socket.destroy()));
  for (let i = 0; i < crowd.count; i++) {
    const socket = (kinds[i % kinds.length] as (port: number) => Socket)(server.port);
    socket.on("error", () => {});
    sockets.push(socket);
    // The attackers share this process: their handshakes must not all fall into one event-loop turn.
    if (i % 50 === 49) await new Promise(setImmediate);
  }
  if (isLong) await waitFor(() => server.connections >= crowd.count / 3, { timeoutMs: 60_000, what: "the crowd" });
  const tookMs: number[] = [];
  for (let i = 0; i < crowd.asks; i++) {
    const begun = performance.now();
    assert.equal(await statusOf(server.port, agent), 200);
    tookMs.push(performance.now() - begun);
  }
  const p99 = tookMs.sort((a, b) => a - b)[Math.floor(tookMs.length * 0.99)] as number;
  if (isLong) assert.ok(p99 <= 1000, `p99 is ${p99} ms`);
  await waitFor(() => server.connections === 1, { timeoutMs: crowd.timeoutMs + 60_000, what: "the connections to end" });
  assert.equal(await statusOf(server.port), 200);
  for (const socket of sockets) socket.destroy();
  await waitFor(() => readdirSync("/proc/self/fd").length <= before + 5, { what: "the descriptors to come back" });
});

test("a server that closes does not wait for a client that does not read its response", async (t) => {
  const server = await startHttpServer({
    port: 0,
    bindAddress: "127.0.0.1",
    tls: { cert: pair.certPem, key: pair.keyPem },
    handler,
    log: discardLogger,
    headersCheckMs: 20,
    closingReadTimeoutMs: 50,
  });
  const session = connectHttp2(`https://127.0.0.1:${server.port}`, { ca: ca.certPem });
  t.after(() => session.destroy());
  session.on("error", () => {});
  const streams = ["/big", "/lazy"].map((path) => session.request({ ":path": path }));
  const ended = streams.map((stream) => {
    stream.on("error", () => {});
    return new Promise((resolve) => stream.once("close", resolve));
  });
  await Promise.all(streams.map((stream) => once(stream, "response"))); // which are not read
  const late = new Promise((resolve) => setTimeout(resolve, 30_000, "still open").unref()); // the limit is 50 ms
  assert.equal(await Promise.race([server.close(3_600_000).then(() => "closed"), late]), "closed");
  await Promise.all(ended);
});

test("a server that closes before its grace period is over leaves no timer", async (t) => {
  const timers = (): number => process.getActiveResourcesInfo().filter((name) => name === "Timeout").length;
  const reached = Promise.withResolvers<void>();
  const finished = Promise.withResolvers<void>();
  const server = await startHttpServer({
    ...{ port: 0, bindAddress: "127.0.0.1", tls: { cert: pair.certPem, key: pair.keyPem }, log: discardLogger },
    async handler(exchange) {
      reached.resolve();
      await finished.promise;
      exchange.respond(200, {});
    },
  });
  const session = connectHttp2(`https://127.0.0.1:${server.port}`, { ca: ca.certPem });
  t.after(() => session.destroy());
  session.on("error", () => {});
  const stream = session.request({ ":path": "/" });
  stream.on("error", () => {});
  await reached.promise;
  const before = timers();
  const closing = server.close(3_600_000);
  finished.resolve();
  await closing;
  assert.ok(timers() <= before, `${timers()} timers instead of ${before}`);
});

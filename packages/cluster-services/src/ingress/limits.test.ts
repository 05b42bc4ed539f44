/** Limits, the end of the server, and what is counted, with servers of their own. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, request as httpRequest, type IncomingMessage, type ServerResponse } from "node:http";
import { connect, createServer as createTcpServer, type Socket } from "node:net";
import { before, type TestContext, test } from "node:test";
import { discardLogger } from "@coxswain/apimachinery/process/logging/logger";
import { newMetricsRegistry } from "@coxswain/apimachinery/process/metrics/registry";
import { listening } from "@coxswain/apimachinery/testing/listening";
import { testPair } from "@coxswain/apimachinery/testing/tls";
import { settle, waitFor } from "@coxswain/apimachinery/testing/wait-for";
import { anEndpoint, aService, aSlice } from "../testing/objects.ts";
import { Backends } from "./backends.ts";
import { newIngressMetrics } from "./metrics.ts";
import { newRouteTable } from "./routes.ts";
import { startIngressServer } from "./server.ts";
import { anIngress } from "./testing.ts";

let certificate: { certPem: string; keyPem: string };
before(async () => {
  const { cert, key } = await testPair();
  certificate = { certPem: cert, keyPem: key };
});

const table = newRouteTable([anIngress("a", [{ host: "web.test", paths: [["Prefix", "/", "web"]] }])]);

/** An ingress for the host web.test. @param ports those of the backend's endpoints */
async function start(
  t: TestContext,
  ports: readonly number[],
  options: Partial<Record<"mostBodyBytes" | "idleTimeoutMs" | "httpPort" | "httpsPort", number>> = {},
) {
  const registry = newMetricsRegistry();
  const server = await startIngressServer({
    ...{ address: "127.0.0.1", httpPort: 0, httpsPort: 0, connectTimeoutMs: 1_000, responseTimeoutMs: 60_000 },
    ...{ idleTimeoutMs: 60_000, mostBodyBytes: 0, connectionsPerClient: 100, log: discardLogger },
    routes: () => table,
    backends: new Backends({
      services: { get: () => aService("web") } as never,
      slicesOf: () => ports.map((port) => aSlice("web", [anEndpoint("127.0.0.1", "n1")], port)),
      isRefused: () => false,
    }),
    contextOf: () => undefined,
    defaultCertificate: certificate,
    metrics: newIngressMetrics(registry),
    ...options,
  });
  t.after(() => server.close(0));
  return { server, port: server.httpPort, shown: () => registry.render() };
}

async function backend(t: TestContext, answer: (request: IncomingMessage, response: ServerResponse) => void): Promise<number> {
  return listening(t, createServer(answer));
}

/** Sends bytes on a new connection. @param options `allowHalfOpen`: it stays open when the other side has ended */
function open(t: TestContext, port: number, bytes: string, options: { readonly allowHalfOpen?: boolean } = {}) {
  const socket = connect({ port, host: "127.0.0.1", ...options }, () => socket.write(bytes));
  const state = { text: "", isClosed: false };
  socket.setEncoding("latin1").on("data", (chunk: string) => (state.text += chunk));
  socket.on("error", () => {}).on("close", () => (state.isClosed = true));
  t.after(() => void socket.destroy());
  return { socket, state };
}
const head = (line: string, ...headers: string[]): string =>
  [`${line} HTTP/1.1`, "Host: web.test", ...headers, "", ""].join("\r\n");

test("a body of the limit is sent on; a longer one gets 413, before the backend sees it where its length is announced", async (t) => {
  let begun = 0;
  const port = await backend(t, (request, response) => {
    begun++;
    let bytes = 0;
    request.on("data", (chunk: Buffer) => (bytes += chunk.length));
    request.on("end", () => response.end(`got ${bytes}`));
  });
  const ingress = await start(t, [port], { mostBodyBytes: 100 });
  const post = async (length: number, isChunked: boolean): Promise<string> => {
    const body = "x".repeat(length);
    const { state } = isChunked
      ? open(t, ingress.port, `${head("POST /", "Transfer-Encoding: chunked")}${length.toString(16)}\r\n${body}\r\n0\r\n\r\n`)
      : open(t, ingress.port, `${head("POST /", `Content-Length: ${length}`)}${body}`);
    await waitFor(() => /got|too large/.test(state.text) || state.isClosed);
    return /^HTTP\/1\.1 (\d+)/.exec(state.text)?.[1] ?? "closed";
  };
  assert.deepEqual([await post(100, false), await post(100, true), begun], ["200", "200", 2]);
  assert.deepEqual([await post(101, false), begun], ["413", 2]);
  assert.equal(await post(101, true), "413");
  const { state } = open(t, ingress.port, head("POST /", "Content-Length: 101"));
  await waitFor(() => state.text.includes("too large"), { timeoutMs: 10_000, what: "a refusal before the body" });
});

test("a refusal ends the connection of a body that nobody reads, and no other; the refusal of HEAD has no body", async (t) => {
  const ingress = await start(t, []);
  const post = open(t, ingress.port, head("POST /", "Content-Length: 5"));
  await waitFor(() => post.state.isClosed);
  assert.match(post.state.text, /^HTTP\/1\.1 503 [\s\S]*\r\nconnection: close\r\n/i);
  const { socket, state } = open(t, ingress.port, head("HEAD /"));
  await waitFor(() => state.text.endsWith("\r\n\r\n"));
  assert.match(state.text, /^HTTP\/1\.1 503 [\s\S]*content-length: [1-9]/i);
  state.text = "";
  socket.write(head("GET /"));
  await waitFor(() => state.text.includes("no endpoints for this host and path\n"));
  assert.match(state.text, /^HTTP\/1\.1 503 /, "on the same connection, directly behind the head");
});

test("requests are counted by code and by who answered; a client that has gone counts as 499", async (t) => {
  const requests: ServerResponse[] = [];
  const port = await backend(t, (request, response) => {
    if (request.url === "/slow") requests.push(response);
    else response.end("ok");
  });
  const ingress = await start(t, [port]);
  const close = ["Connection: close"];
  for (const bytes of [head("GET /", ...close), head("GET /", ...close).replace("web.test", "other.test")]) {
    const { state } = open(t, ingress.port, bytes);
    await waitFor(() => state.isClosed);
  }
  const { socket } = open(t, ingress.port, head("GET /slow"));
  await waitFor(() => requests.length === 1);
  socket.destroy();
  for (const line of ['code="200",by="backend"', 'code="404",by="ingress"', 'code="499",by="ingress"'])
    await waitFor(async () => (await ingress.shown()).includes(`coxswain_ingress_requests_total{${line}} 1\n`), {
      what: line,
      timeoutMs: 10_000,
    });
  await waitFor(async () => (await ingress.shown()).includes("coxswain_ingress_connections 0\n"));
});

test("a POST without a body is not repeated at another endpoint, a PUT is", async (t) => {
  const live = await backend(t, (_, response) => response.end("ok"));
  const closed = createServer();
  const deadPort = await listening(t, closed);
  await new Promise((resolve) => closed.close(resolve));
  const ingress = await start(t, [deadPort, live]);
  const codes = async (method: string): Promise<string[]> => {
    const found: string[] = [];
    for (let i = 0; i < 2; i++) {
      const { state } = open(t, ingress.port, head(`${method} /`, "Connection: close"));
      await waitFor(() => state.isClosed);
      found.push(/^HTTP\/1\.1 (\d+)/.exec(state.text)?.[1] ?? "");
    }
    return found.sort();
  };
  assert.deepEqual(
    [await codes("PUT"), await codes("POST"), await codes("PATCH")],
    [
      ["200", "200"],
      ["200", "502"],
      ["200", "502"],
    ],
  );
});

test("an absolute target without a path is that of the root", async (t) => {
  const port = await backend(t, (request, response) => response.end(`path ${request.url} `));
  const ingress = await start(t, [port]);
  for (const [target, want] of [
    ["http://web.test", "path / "],
    ["http://web.test?a=1", "path /?a=1 "],
    ["http://WEB.test/b", "path /b "],
  ] as const) {
    const { state } = open(t, ingress.port, head(`GET ${target}`, "Connection: close"));
    await waitFor(() => state.isClosed);
    assert.ok(state.text.includes(want), state.text);
  }
});

test("at its end the server lets requests complete for the grace, and cuts off the others", async (t) => {
  const responses: ServerResponse[] = [];
  const port = await backend(t, (_, response) => void responses.push(response));
  const ingress = await start(t, [port]);
  const { state } = open(t, ingress.port, head("GET /"));
  await waitFor(() => responses.length === 1);
  const closing = ingress.server.close(60_000);
  await settle(10);
  assert.equal(state.isClosed, false);
  responses[0]?.end("done");
  await closing;
  assert.match(state.text, /done$/);

  const other = await start(t, [port]);
  const late = open(t, other.port, head("GET /"));
  await waitFor(() => responses.length === 2);
  const cut = other.server.close(50);
  await waitFor(() => late.state.isClosed, { timeoutMs: 10_000, what: "the connection to be cut" });
  await cut;
  assert.equal(late.state.text, "");
});

test("when one port cannot be had the other is given back", async (t) => {
  const taken = createServer();
  const httpsPort = await listening(t, taken);
  const free = createServer();
  const httpPort = await listening(t, free);
  await new Promise((resolve) => free.close(resolve));
  await assert.rejects(start(t, [], { httpsPort, httpPort }), { message: `cannot listen on port ${httpsPort}` });
  const again = createServer();
  again.listen(httpPort, "127.0.0.1");
  await once(again, "listening");
  again.close();
});

const handshake = (...headers: string[]): string => head("GET /ws", "Connection: Upgrade", "Upgrade: websocket", ...headers);

/** A backend that switches protocols, and says something with its answer. */
async function switching(t: TestContext) {
  const sockets: Socket[] = [];
  const received = { text: "" };
  const server = createTcpServer((socket) => {
    sockets.push(socket);
    let isSwitched = false;
    socket.setEncoding("latin1").on("data", (chunk: string) => {
      received.text += chunk;
      if (isSwitched || !received.text.includes("\r\n\r\n")) return;
      isSwitched = true;
      socket.write("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\nfirst frame");
    });
  });
  return { port: await listening(t, server), sockets, received };
}

test("what client and backend send with the handshake arrives, and the end of one is the end of both", async (t) => {
  const { port, sockets, received } = await switching(t);
  const ingress = await start(t, [port]);
  const { state } = open(t, ingress.port, `${handshake()}early frame`);
  await waitFor(() => state.text.endsWith("\r\n\r\nfirst frame"), { timeoutMs: 10_000 });
  await waitFor(() => received.text.endsWith("\r\n\r\nearly frame"), { timeoutMs: 10_000 });
  assert.match(await ingress.shown(), /^coxswain_ingress_upgraded_connections 1$/m);
  const staying = open(t, ingress.port, handshake(), { allowHalfOpen: true });
  await waitFor(() => staying.state.text.endsWith("first frame"), { timeoutMs: 10_000 });
  for (const socket of sockets) socket.destroy();
  await waitFor(() => state.isClosed, { timeoutMs: 10_000 });
  await waitFor(async () => /^coxswain_ingress_upgraded_connections 0$/m.test(await ingress.shown()), { timeoutMs: 10_000 });
  assert.match(await ingress.shown(), /coxswain_ingress_requests_total\{code="101",by="backend"\} 2/);
});

test("a WebSocket on which nothing is sent ends after the idle time", async (t) => {
  const { port, sockets } = await switching(t);
  const ingress = await start(t, [port], { idleTimeoutMs: 300 });
  const { state } = open(t, ingress.port, handshake());
  await waitFor(() => state.text.endsWith("first frame"), { timeoutMs: 10_000 });
  await waitFor(() => state.isClosed && sockets[0]?.closed === true, { timeoutMs: 10_000 });
});

test("a chunked body before the switch is refused", async (t) => {
  const { port, sockets } = await switching(t);
  const ingress = await start(t, [port]);
  const { state } = open(t, ingress.port, `${handshake("Transfer-Encoding: chunked")}3\r\nabc\r\n0\r\n\r\n`);
  await waitFor(() => state.text.includes("\r\n\r\n"), { timeoutMs: 10_000, what: "an answer" });
  assert.match(state.text, /^HTTP\/1\.1 400 /);
  await waitFor(() => state.isClosed, { timeoutMs: 10_000 });
  assert.equal(sockets.length, 0);
});

test("an endpoint's refusal of a WebSocket reaches the client with its body", async (t) => {
  const port = await backend(t, (_, response) => response.writeHead(403).end("no"));
  const ingress = await start(t, [port]);
  const answer = await new Promise<IncomingMessage>((resolve, reject) => {
    const headers = { host: "web.test", connection: "Upgrade", upgrade: "websocket" };
    const sent = httpRequest({ port: ingress.port, host: "127.0.0.1", headers, agent: false }, resolve);
    sent.once("error", reject);
    sent.end();
  });
  let body = "";
  for await (const chunk of answer.setEncoding("utf8")) body += chunk;
  assert.deepEqual([answer.statusCode, body], [403, "no"]);
});

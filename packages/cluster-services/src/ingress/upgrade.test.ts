/** Requests for WebSockets: what passes, what is refused, and what is given back. */
import assert from "node:assert/strict";
import { createServer, request as httpRequest, type IncomingMessage } from "node:http";
import { type AddressInfo, createServer as createTcpServer, type Socket } from "node:net";
import { networkInterfaces } from "node:os";
import { Readable } from "node:stream";
import { type TestContext, test } from "node:test";
import { listening } from "@coxswain/apimachinery/testing/listening";
import { waitFor } from "@coxswain/apimachinery/testing/wait-for";
import { backend, head, open, start } from "./testing.ts";

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

test("a refusal by an endpoint that breaks off says how long it would have been, and is followed by no other answer", async (t) => {
  const begun = Promise.withResolvers<Socket>();
  const server = createTcpServer((socket) => {
    socket.on("error", () => {});
    socket.once("data", () => {
      socket.write("HTTP/1.1 403 Forbidden\r\nContent-Length: 100\r\n\r\nbegin");
      begun.resolve(socket);
    });
  });
  const ingress = await start(t, [await listening(t, server)]);
  const { state } = open(t, ingress.port, handshake());
  await waitFor(() => state.text.endsWith("begin"), { timeoutMs: 10_000 });
  (await begun.promise).resetAndDestroy();
  await waitFor(() => state.isClosed, { timeoutMs: 10_000 });
  assert.match(state.text, /^HTTP\/1\.1 403 Forbidden\r\n[\s\S]*content-length: 100\r\n[\s\S]*\r\n\r\nbegin$/i);
  assert.match(await ingress.shown(), /^coxswain_ingress_requests_total\{code="403",by="backend"\} 1$/m);
});

test("an endpoint has the time of a connection and that of an answer, and one that takes longer is left", async (t) => {
  const sockets: Socket[] = [];
  const server = createTcpServer((socket) => {
    sockets.push(socket.resume());
    const answer = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n";
    if (sockets.length === 1) socket.once("data", () => void setTimeout(() => socket.write(answer), 300));
  });
  const port = await listening(t, server);
  const patient = await start(t, [port], { connectTimeoutMs: 50, responseTimeoutMs: 60_000 });
  const { state } = open(t, patient.port, handshake());
  await waitFor(() => state.text !== "", { timeoutMs: 10_000 });
  assert.match(state.text, /^HTTP\/1\.1 101 /);
  const strict = await start(t, [port], { connectTimeoutMs: 50, responseTimeoutMs: 50 });
  const late = open(t, strict.port, handshake());
  await waitFor(() => late.state.isClosed, { timeoutMs: 10_000 });
  assert.match(late.state.text, /^HTTP\/1\.1 504 [\s\S]*the backend did not answer in time\n$/);
  await waitFor(() => sockets[1]?.closed === true, { timeoutMs: 10_000, what: "its connection to be closed" });
});

for (const [name, early] of [
  ["", ""],
  [", although it had sent something", "early frame"],
] as const) {
  test(`a client that goes before the endpoint has answered is not waited for${name}`, async (t) => {
    const sockets: Socket[] = [];
    const port = await listening(
      t,
      createTcpServer((socket) => void sockets.push(socket.resume())),
    );
    const ingress = await start(t, [port]);
    const { socket } = open(t, ingress.port, handshake());
    await waitFor(() => sockets.length === 1, { timeoutMs: 10_000, what: "the endpoint to be asked" });
    socket.end(early);
    await waitFor(() => sockets[0]?.closed === true, { timeoutMs: 10_000, what: "the end of the endpoint's connection" });
    assert.match(await ingress.shown(), /^coxswain_ingress_requests_total\{code="499",by="ingress"\} 1$/m);
  });
}

test("what a client sends before the endpoint has answered reaches it in order, and is read to a limit only", async (t) => {
  const sockets: Socket[] = [];
  const received: string[] = [];
  let bytes = 0;
  const server = createTcpServer((socket) => {
    sockets.push(socket);
    socket.setEncoding("latin1").on("data", (chunk: string) => {
      received.push(chunk);
      bytes += chunk.length;
    });
  });
  const ingress = await start(t, [await listening(t, server)]);
  const { socket, state } = open(t, ingress.port, `${handshake()}first`);
  await waitFor(() => received.join("").endsWith("\r\n\r\n"), { timeoutMs: 10_000, what: "the handshake" });
  // The buffers of sockets hold some MB.
  const many = 400;
  let sent = 0;
  const frame = "x".repeat(64 << 10);
  const frames = function* () {
    for (; sent < many; sent++) yield frame;
    yield "last";
  };
  Readable.from(frames()).pipe(socket, { end: false });
  let before = -1;
  const isStill = (): boolean => {
    const still = before === sent && sent > 0;
    before = sent;
    return still;
  };
  await waitFor(isStill, { timeoutMs: 30_000, intervalMs: 300, what: "the client to wait" });
  assert.ok(sent < many, `${sent} frames were read before the answer`);
  const asked = bytes;
  assert.ok(received.join("").endsWith("\r\n\r\n"), "nothing before the answer");
  sockets[0]?.write("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n");
  const all = asked + "first".length + many * frame.length + "last".length;
  await waitFor(() => bytes === all, { timeoutMs: 30_000, what: "all frames" });
  assert.ok(received.join("").slice(asked).startsWith("firstx"));
  assert.ok(received.at(-1)?.endsWith("last"));
  assert.match(state.text, /^HTTP\/1\.1 101 /);
});

for (const [name, request, code] of [
  ["a host without a rule", handshake().replace("web.test", "other.test"), 404],
  ["a body before the switch", `${handshake("Content-Length: 3")}abc`, 400],
  ["an endpoint that cannot be reached", handshake(), 502],
] as const) {
  test(`a refused client that does not close its side is left after the idle time: ${name}`, async (t) => {
    const ingress = await start(t, [0], { idleTimeoutMs: 300 });
    const { state } = open(t, ingress.port, request, { allowHalfOpen: true });
    await waitFor(() => state.text !== "", { timeoutMs: 10_000, what: "the refusal" });
    await waitFor(async () => /^coxswain_ingress_connections 0$/m.test(await ingress.shown()), { timeoutMs: 10_000 });
    assert.ok(state.text.startsWith(`HTTP/1.1 ${code} `), state.text);
    assert.ok((await ingress.shown()).includes(`coxswain_ingress_requests_total{code="${code}",by="ingress"} 1`));
  });
}

test("an endpoint that cannot be reached is 502", async (t) => {
  const absent = await start(t, [0]);
  const { state } = open(t, absent.port, handshake());
  await waitFor(() => state.isClosed, { timeoutMs: 10_000 });
  assert.match(state.text, /^HTTP\/1\.1 502 [\s\S]*the backend did not answer\n$/);
  assert.match(await absent.shown(), /^coxswain_ingress_requests_total\{code="502",by="ingress"\} 1$/m);
});

const hasIpv6 = Object.values(networkInterfaces()).some((all) => all?.some(({ address }) => address === "::1"));

test("an endpoint of IPv6 is reached, by requests and by WebSockets", { skip: !hasIpv6 && "no IPv6 here" }, async (t) => {
  const server = createServer((_, response) => response.end("six"));
  server.on("upgrade", (_, socket) => void socket.end("HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\r\n"));
  t.after(() => void server.close());
  const { port } = await new Promise<AddressInfo>((resolve) => {
    server.listen(0, "::1", () => resolve(server.address() as AddressInfo));
  });
  const ingress = await start(t, [["::1", port]]);
  const plain = open(t, ingress.port, head("GET /", "Connection: close"));
  const upgraded = open(t, ingress.port, handshake());
  await waitFor(() => plain.state.isClosed && upgraded.state.isClosed, { timeoutMs: 10_000 });
  assert.match(plain.state.text, /^HTTP\/1\.1 200 [\s\S]*six$/);
  assert.match(upgraded.state.text, /^HTTP\/1\.1 101 /);
});

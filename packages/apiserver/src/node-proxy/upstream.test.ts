import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, type IncomingMessage, request, type Server, type ServerResponse } from "node:http";
import { type AddressInfo, connect, createServer as createTcpServer, type Socket } from "node:net";
import { PassThrough } from "node:stream";
import { type TestContext, test } from "node:test";
import { StatusError } from "@coxswain/apimachinery/objects/errors/status-error";
import type { Exchange, ResponseStream } from "@coxswain/apimachinery/serving/exchange";
import WebSocket from "ws";
import type { ConnectTarget } from "../registry/generic/resource.ts";
import type { RequestContext } from "../request/context.ts";
import { newNodeProxy } from "./upstream.ts";

const log = { v: () => undefined } as never;
const pod = { group: "", resource: "pods", name: "web-0" };

/** A kubelet that handles requests with `handler`. */
async function kubelet(
  t: TestContext,
  handler: (req: IncomingMessage, res: ServerResponse) => void,
): Promise<Server & { port: number }> {
  const server = createServer(handler);
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(() => server.close());
  return Object.assign(server, { port: (server.address() as AddressInfo).port });
}

/** An exchange that records the response. */
function recorded(parts: Partial<Exchange> = {}) {
  const answer = { status: 0, headers: {} as Record<string, unknown>, body: "", ended: false, destroyed: false };
  const stream: ResponseStream = {
    write(chunk) {
      answer.body += chunk.toString();
      return true;
    },
    drained: async () => {},
    end() {
      answer.ended = true;
    },
  };
  const exchange = {
    method: "GET",
    url: "/api/v1/namespaces/default/pods/web-0/log",
    headers: { authorization: "Bearer secret", "x-remote-user": "root", accept: "*/*" },
    httpVersion: "1.1",
    remoteAddress: "10.1.2.3",
    tls: undefined,
    upgrade: undefined,
    stream(status: number, headers: Record<string, unknown>) {
      Object.assign(answer, { status, headers });
      return stream;
    },
    respond(status: number, headers: Record<string, unknown>, body: unknown) {
      Object.assign(answer, { status, headers, body: String(body ?? ""), ended: true });
    },
    destroy() {
      answer.destroyed = true;
    },
    bodyStream: () => new PassThrough().end(),
    ...parts,
  } as unknown as Exchange;
  const ctx = { exchange, signal: new AbortController().signal } as unknown as RequestContext;
  return { ctx, answer };
}

function target(port: number, path: string, parts: Partial<ConnectTarget> = {}): ConnectTarget {
  return { url: new URL(`http://127.0.0.1:${port}${path}`), toNode: true, as: "text", ...parts };
}

test("streams a log as text, without the client's credentials", async (t) => {
  let seen: IncomingMessage | undefined;
  const server = await kubelet(t, (req, res) => {
    seen = req;
    res.end("line 1\nline 2\n");
  });
  const { ctx, answer } = recorded();
  await newNodeProxy({ log }).forward(ctx, target(server.port, "/containerLogs/default/web-0/app?follow=true"), pod);
  assert.equal(answer.status, 200);
  assert.equal(answer.headers["content-type"], "text/plain");
  assert.equal(answer.body, "line 1\nline 2\n");
  assert.equal(answer.ended, true);
  assert.equal(seen?.url, "/containerLogs/default/web-0/app?follow=true");
  assert.equal(seen?.headers.authorization, undefined);
  assert.equal(seen?.headers["x-remote-user"], undefined);
  assert.equal(seen?.headers["accept-encoding"], "identity", "the text is passed on as it comes");
});

for (const { code, reason } of [
  { code: 400, reason: "BadRequest" },
  { code: 404, reason: "NotFound" },
  { code: 500, reason: "InternalError" },
]) {
  test(`a kubelet's ${code} becomes a Status`, async (t) => {
    const server = await kubelet(t, (_req, res) => {
      res.writeHead(code).end("container not there");
    });
    const { ctx } = recorded();
    await assert.rejects(
      newNodeProxy({ log }).forward(ctx, target(server.port, "/containerLogs/x"), pod),
      (err: unknown) =>
        err instanceof StatusError &&
        err.code === code &&
        err.reason === reason &&
        (code !== 404 || err.status.details?.name === pod.name),
    );
  });
}

test("an unreachable kubelet is 500 without a reason, and the message names the failure", async () => {
  for (const { as, want } of [
    { as: "text", want: 'Get "http://127.0.0.1:1/x": dial tcp 127.0.0.1:1: connect: connection refused' },
    { as: "tunnel", want: "error dialing backend: dial tcp 127.0.0.1:1: connect: connection refused" },
  ] as const) {
    const { ctx } = recorded({ upgrade: { socket: new PassThrough(), head: Buffer.alloc(0) } } as never);
    await assert.rejects(
      newNodeProxy({ log }).forward(ctx, target(1, "/x", { as }), pod),
      (err: unknown) => err instanceof StatusError && err.code === 500 && err.reason === "" && err.message === want,
    );
  }
});

test("a kubelet whose name does not resolve is reported with the requested name", async () => {
  const nobody = "dial tcp: lookup node.example: no such host";
  const lookup = async (): Promise<never> => Promise.reject(new Error("ENOTFOUND"));
  const upgrade = { socket: new PassThrough(), head: Buffer.alloc(0) };
  for (const { as, parts, code, want, ...rest } of [
    { as: "text", parts: {}, code: 500, want: `Get "https://node.example:10250/x": ${nobody}` },
    { as: "tunnel", parts: { upgrade }, code: 500, want: `error dialing backend: ${nobody}` },
    { as: "proxy", parts: { upgrade }, code: 500, want: `error dialing backend: ${nobody}` },
    { as: "proxy", parts: {}, code: 503, want: `error trying to reach service: ${nobody}` },
    { as: "proxy", parts: {}, toNode: false, code: 400, want: "lookup node.example: no such host" },
    { as: "tunnel", parts: {}, code: 400, want: "Upgrade request required" },
  ] as const) {
    const { ctx } = recorded(parts as never);
    const to = { url: new URL("https://node.example:10250/x"), toNode: true, as, ...rest };
    await assert.rejects(newNodeProxy({ log, lookup }).forward(ctx, to, pod), { code, message: want });
  }
});

test("--kubelet-timeout ends the set-up of a connection to a kubelet that does not answer", async (t) => {
  const silent = createTcpServer(() => {}).listen(0, "127.0.0.1");
  await once(silent, "listening");
  t.after(() => silent.close());
  const { port } = silent.address() as AddressInfo;
  for (const as of ["text", "tunnel"] as const) {
    const { ctx } = recorded({ upgrade: { socket: new PassThrough(), head: Buffer.alloc(0) } } as never);
    const url = new URL(`https://127.0.0.1:${port}/x`);
    await assert.rejects(newNodeProxy({ log, dialTimeoutMs: 50 }).forward(ctx, { url, toNode: true, as }, pod), /i\/o timeout/);
  }
});

test("refuses to exec without an upgrade", async () => {
  const { ctx } = recorded();
  await assert.rejects(newNodeProxy({ log }).forward(ctx, target(1, "/exec", { as: "tunnel" }), pod), /Upgrade request required/);
});

test("refuses to proxy to this machine", async () => {
  const { ctx } = recorded();
  await assert.rejects(
    newNodeProxy({ log }).forward(ctx, target(10250, "/", { as: "proxy", toNode: false }), pod),
    /address not allowed/,
  );
});

/** An upgraded connection through the proxy to an echo server. @returns the client's side and its first bytes */
async function splicedEcho(t: TestContext, bytesPerSecond: number): Promise<{ socket: Socket; first: Buffer }> {
  const backend = createTcpServer((socket) => {
    socket.once("data", (head) => {
      assert.match(head.toString(), /^POST \/exec\/a\/b\/c\?command=sh HTTP\/1\.1\r\n/);
      assert.match(head.toString(), /upgrade: SPDY\/3\.1/i);
      assert.match(head.toString(), /\r\nconnection: Upgrade\r\n/);
      assert.doesNotMatch(head.toString(), /authorization/i);
      socket.write("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n\r\nhello");
      socket.pipe(socket);
    });
  }).listen(0, "127.0.0.1");
  await once(backend, "listening");
  t.after(() => backend.close());
  const front = createServer();
  front.on("upgrade", (req: IncomingMessage, socket: Socket, head: Buffer) => {
    const { ctx } = recorded({ method: "POST", headers: req.headers, upgrade: { socket, head } });
    void newNodeProxy({ log, bytesPerSecond }).forward(
      ctx,
      target((backend.address() as AddressInfo).port, "/exec/a/b/c?command=sh", { as: "tunnel" }),
      pod,
    );
  });
  front.listen(0, "127.0.0.1");
  await once(front, "listening");
  t.after(() => front.close());

  const client = request({
    port: (front.address() as AddressInfo).port,
    method: "POST",
    headers: { connection: "Upgrade, X-Forwarded-For", upgrade: "SPDY/3.1", authorization: "Bearer secret" },
  });
  client.end();
  const [response, socket, first] = (await once(client, "upgrade")) as [IncomingMessage, Socket, Buffer];
  assert.equal(response.statusCode, 101);
  t.after(() => socket.destroy());
  return { socket, first };
}

test("splices an upgraded connection both ways, with what came before it", async (t) => {
  const { socket, first } = await splicedEcho(t, 0);
  let received = first.toString();
  socket.on("data", (chunk: Buffer) => {
    received += chunk.toString();
  });
  socket.write("echo");
  while (!received.includes("echo")) await once(socket, "data");
  assert.equal(received, "helloecho");
});

test("--max-connection-bytes-per-sec holds an upgraded connection back", async (t) => {
  const { socket } = await splicedEcho(t, 2_000);
  const sent = Buffer.alloc(800, "x");
  const started = performance.now();
  socket.write(sent);
  let received = 0;
  while (received < sent.length) received += ((await once(socket, "data"))[0] as Buffer).length;
  assert.equal(received, sent.length);
  // The first portion of 200 bytes passes at once, each other one after 100 ms, which counts from the beginning of the event-loop turn.
  assert.ok(performance.now() - started >= 200, `${performance.now() - started} ms`);
});

/** Responses of a kubelet that rejects an upgrade. */
const refusals = [
  { name: "with a length", bytes: "HTTP/1.1 404 Not Found\r\nContent-Length: 4\r\n\r\nnone", ends: false },
  { name: "in lines that end with LF alone", bytes: "HTTP/1.1 403 Forbidden\nContent-Length: 4\n\nnone", ends: false },
  { name: "in chunks", bytes: "HTTP/1.1 403 Forbidden\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nno\r\n0\r\n\r\n", ends: true },
  { name: "without a body", bytes: "HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n", ends: false },
  {
    name: "and says more",
    bytes: "HTTP/1.1 404 Not Found\r\nContent-Length: 4\r\n\r\nnone",
    more: "HTTP/1.1 200 OK",
    ends: false,
  },
];

for (const { name, bytes, more = "", ends } of refusals) {
  test(`passes a refused upgrade on as the kubelet wrote it, ${name}, and forwards no more data to it`, async (t) => {
    let heard = "";
    const ended = Promise.withResolvers<void>();
    const backend = createTcpServer((socket) => {
      socket.on("data", (chunk) => {
        if (heard === "") {
          socket.write(bytes + more);
          if (ends) socket.end();
        }
        heard += chunk.toString();
      });
      socket.on("close", () => ended.resolve());
      socket.on("error", () => {});
    }).listen(0, "127.0.0.1");
    await once(backend, "listening");
    t.after(() => backend.close());
    const front = createServer();
    const done = Promise.withResolvers<void>();
    front.on("upgrade", (req: IncomingMessage, socket: Socket, head: Buffer) => {
      const { ctx } = recorded({ method: "POST", headers: req.headers, upgrade: { socket, head } });
      const { port } = backend.address() as AddressInfo;
      done.resolve(newNodeProxy({ log }).forward(ctx, target(port, "/exec/x", { as: "tunnel" }), pod));
    });
    front.listen(0, "127.0.0.1");
    await once(front, "listening");
    t.after(() => front.close());
    const socket = connect((front.address() as AddressInfo).port, "127.0.0.1");
    const second = "GET /second HTTP/1.1\r\nHost: x\r\n\r\n";
    socket.write(`POST / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n\r\n${second}`);
    let answer = "";
    socket.on("data", (chunk) => {
      if (answer === "") socket.write(second);
      answer += chunk.toString();
    });
    await once(socket, "close");
    assert.equal(answer, bytes);
    await done.promise;
    await ended.promise;
    assert.match(heard, /^POST \/exec\/x HTTP\/1\.1\r\n/);
    assert.doesNotMatch(heard, /second/);
  });
}

for (const { protocols, sent, binary } of [
  { protocols: [], sent: "line 1\n", binary: true },
  { protocols: ["binary.k8s.io"], sent: "line 1\n", binary: true },
  { protocols: ["base64.binary.k8s.io"], sent: "bGluZSAxCg==", binary: false },
]) {
  test(`sends a log over a WebSocket: ${protocols[0] ?? "no protocol"}`, async (t) => {
    const server = await kubelet(t, (_req, res) => res.end("line 1\n"));
    const url = await upgrading(t, target(server.port, "/containerLogs/default/web-0/app"));
    const client = new WebSocket(url, protocols);
    const closed = once(client, "close");
    const [message, isBinary] = (await once(client, "message")) as [Buffer, boolean];
    assert.deepEqual([message.toString(), isBinary], [sent, binary]);
    assert.deepEqual((await closed)[0], 1000);
  });
}

test("a log is not sent in an unknown protocol", async (t) => {
  const server = await kubelet(t, (_req, res) => res.end("line 1\n"));
  const client = new WebSocket(await upgrading(t, target(server.port, "/containerLogs/default/web-0/app")), [
    "v4.channel.k8s.io",
  ]);
  const [, answer] = (await once(client, "unexpected-response")) as [unknown, IncomingMessage];
  assert.equal(answer.statusCode, 403);
  client.on("error", () => {}).terminate();
});

/** @returns a URL; WebSockets opened there are forwarded to the target. */
async function upgrading(t: TestContext, to: ConnectTarget): Promise<string> {
  const front = createServer();
  front.on("upgrade", (req: IncomingMessage, socket: Socket, head: Buffer) => {
    const respond = (code: number): void => void socket.end(`HTTP/1.1 ${code} Refused\r\ncontent-length: 0\r\n\r\n`);
    const { ctx } = recorded({ headers: req.headers, upgrade: { socket, head }, respond });
    void newNodeProxy({ log }).forward(ctx, to, pod);
  });
  front.listen(0, "127.0.0.1");
  await once(front, "listening");
  t.after(() => front.close());
  return `ws://127.0.0.1:${(front.address() as AddressInfo).port}/`;
}

test("a four-digit status is not accepted as an upgrade response", async (t) => {
  const backend = createTcpServer((socket) => {
    socket.on("error", () => {});
    socket.once("data", () => socket.write("HTTP/1.1 1011 Switching\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n\r\n"));
  }).listen(0, "127.0.0.1");
  await once(backend, "listening");
  t.after(() => backend.close());
  const front = createServer();
  const done = Promise.withResolvers<unknown>();
  front.on("upgrade", (req: IncomingMessage, socket: Socket, head: Buffer) => {
    const { ctx } = recorded({ method: "POST", headers: req.headers, upgrade: { socket, head } });
    const { port } = backend.address() as AddressInfo;
    newNodeProxy({ log })
      .forward(ctx, target(port, "/exec/x", { as: "tunnel" }), pod)
      .then(done.resolve, done.resolve);
    t.after(() => void socket.destroy());
  });
  front.listen(0, "127.0.0.1");
  await once(front, "listening");
  t.after(() => front.close());
  const client = connect((front.address() as AddressInfo).port, "127.0.0.1");
  t.after(() => void client.destroy());
  client.write("POST / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n\r\n");
  assert.match(String(await done.promise), /invalid upgrade response: status code 0/);
});

/** Relayed responses, of logs and of proxied servers: backpressure, and what is closed when one side disconnects. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, type IncomingMessage, type RequestListener, type ServerResponse } from "node:http";
import { connect, type Socket } from "node:net";
import { PassThrough, type Readable } from "node:stream";
import { type TestContext, test } from "node:test";
import { Turns } from "@coxswain/apimachinery/process/event-loop/turns";
import type { Exchange } from "@coxswain/apimachinery/serving/exchange";
import { listening } from "@coxswain/apimachinery/testing/listening";
import { settle, waitFor } from "@coxswain/apimachinery/testing/wait-for";
import WebSocket from "ws";
import type { ConnectTarget } from "../registry/generic/resource.ts";
import type { RequestContext } from "../request/context.ts";
import { resolveTarget } from "./dial.ts";
import { streamLog } from "./log.ts";
import { pipe } from "./pipe.ts";
import { newNodeProxy } from "./upstream.ts";

const log = { v: () => undefined, warn: () => undefined } as never;
const pod = { group: "", resource: "pods", name: "web-0" };

/** A server behind the proxy; `requests` are those that have begun, `gone` those whose client has left. */
async function behind(t: TestContext, handler: RequestListener) {
  const seen = { requests: 0, gone: 0, port: 0 };
  const server = createServer((req, res) => {
    seen.requests++;
    res.once("close", () => {
      if (!res.writableFinished) seen.gone++;
    });
    handler(req, res);
  });
  seen.port = await listening(t, server);
  t.after(() => server.closeAllConnections());
  return seen;
}

/** A request whose client reads only while `room` is true. */
function aClient(parts: Partial<Exchange> = {}) {
  const abort = new AbortController();
  const answer = { status: 0, headers: {} as Record<string, unknown>, chunks: [] as Buffer[], how: "open", room: true };
  let drained = Promise.withResolvers<void>();
  const over = (how: string): void => {
    answer.how = how;
  };
  const exchange = {
    method: "GET",
    url: "/proxied",
    headers: { host: "api.example" },
    httpVersion: "1.1",
    remoteAddress: "10.1.2.3",
    stream(status: number, headers: Record<string, unknown>) {
      Object.assign(answer, { status, headers });
      return {
        write(chunk: Buffer): boolean {
          answer.chunks.push(chunk);
          return answer.room;
        },
        drained: () => drained.promise,
        end: () => over("ended"),
      };
    },
    respond(status: number) {
      answer.status = status;
      over("ended");
    },
    destroy: () => over("broken off"),
    ...parts,
  } as unknown as Exchange;
  const started: number[] = [];
  const audit = { started: (code: number) => void started.push(code) };
  const drain = (): void => {
    answer.room = true;
    drained.resolve();
    drained = Promise.withResolvers();
  };
  return { ctx: { exchange, audit, signal: abort.signal } as unknown as RequestContext, answer, abort, drain, started };
}

type Relay = (ctx: RequestContext, port: number) => Promise<void>;

async function relayed(ctx: RequestContext, port: number, as: "text" | "proxy"): Promise<void> {
  const target: ConnectTarget = { url: new URL(`http://127.0.0.1:${port}/x`), toNode: as === "text", as };
  const dial = await resolveTarget({ ...target, as: "text" }, { log });
  return as === "text" ? streamLog(ctx, target, dial, pod) : pipe(ctx, target, dial, new Turns());
}
const relays: readonly [string, Relay][] = [
  ["a log", (ctx, port) => relayed(ctx, port, "text")],
  ["a proxied answer", (ctx, port) => relayed(ctx, port, "proxy")],
];

for (const [what, relay] of relays) {
  test(`${what} is read no faster than its client reads`, async (t) => {
    const pieces = ["one", "two", "three"].map(Buffer.from);
    const { port } = await behind(t, (_req, res) => {
      let at = 0;
      const next = (): void => {
        if (at < pieces.length) res.write(pieces[at++], () => setImmediate(next));
        else res.end();
      };
      next();
    });
    const { ctx, answer, drain } = aClient();
    answer.room = false;
    const done = relay(ctx, port);
    await waitFor(() => answer.chunks.length === 1, { what: "the first piece" });
    await settle(50);
    assert.deepEqual([answer.chunks.length, answer.how], [1, "open"]);
    drain();
    await done;
    assert.deepEqual([Buffer.concat(answer.chunks).toString(), answer.how], ["onetwothree", "ended"]);
  });

  test(`${what} that is broken off behind is broken off for its client`, async (t) => {
    const { port } = await behind(t, (_req, res) => {
      res.writeHead(200, { "content-length": 100 }).write("begin", () => setImmediate(() => res.destroy()));
    });
    const { ctx, answer } = aClient();
    await relay(ctx, port);
    assert.deepEqual([String(answer.chunks[0]), answer.how], ["begin", "broken off"]);
  });

  test(`${what} whose client has left is no longer requested, before and after its first byte`, async (t) => {
    for (const begins of [false, true]) {
      const seen = await behind(t, (_req, res) => {
        if (begins) res.write("begin");
      });
      const { ctx, answer, abort } = aClient();
      const done = relay(ctx, seen.port);
      await waitFor(() => (begins ? answer.chunks.length === 1 : seen.requests === 1), { what: "the request" });
      abort.abort();
      await (begins ? done : assert.rejects(done));
      await waitFor(() => seen.gone === 1, { what: "the end of the request" });
    }
  });
}

test("a kubelet's refusal is read to its 50,000th byte, even if it has no end", async (t) => {
  const seen = await behind(t, (_req, res) => void res.writeHead(500).write("x".repeat(60_000)));
  const { ctx } = aClient();
  await assert.rejects(
    relayed(ctx, seen.port, "text"),
    ({ message }: Error) => /x+$/.exec(message)?.[0].length === 50_000 && message.length < 50_100,
  );
  await waitFor(() => seen.gone === 1, { what: "the end of the request" });
});

test("a part of a log is a log", async (t) => {
  const { port } = await behind(t, (_req, res) => void res.writeHead(206).end("part"));
  const { ctx, answer } = aClient();
  await relayed(ctx, port, "text");
  assert.deepEqual([answer.status, String(answer.chunks[0])], [200, "part"]);
});

test("a body that breaks off does not reach the backend as a complete request", async (t) => {
  const heard = Promise.withResolvers<IncomingMessage>();
  const seen = await behind(t, (req) => heard.resolve(req));
  const body = new PassThrough();
  const { ctx } = aClient({ method: "PUT", headers: { "content-length": "10" }, bodyStream: () => body as Readable });
  const done = relayed(ctx, seen.port, "proxy");
  done.catch(() => {}); // observed below
  body.write("begin");
  const req = await heard.promise;
  const closed = new Promise((resolve) => req.on("error", () => {}).once("close", resolve));
  req.resume();
  body.destroy(new Error("ECONNRESET"));
  await assert.rejects(done, /ECONNRESET/);
  await closed;
  assert.equal(req.complete, false);
});

test("HEAD of a page keeps the length of the page", async (t) => {
  const html = { "content-type": "text/html", "content-length": "20" };
  const { port } = await behind(t, (_req, res) => void res.writeHead(200, html).end());
  const { ctx, answer } = aClient({ method: "HEAD" });
  await relayed(ctx, port, "proxy");
  assert.deepEqual([answer.headers["content-length"], answer.chunks], ["20", []]);
});

test("fields that the client names in Connection stay on its connection", async (t) => {
  let headers: IncomingMessage["headers"] = {};
  const { port } = await behind(t, (req, res) => {
    headers = req.headers;
    res.end();
  });
  const { ctx } = aClient({ headers: { connection: "close, X-Hop", "x-hop": "1", "x-own": "2" } });
  await relayed(ctx, port, "proxy");
  assert.deepEqual([headers["x-hop"], headers["x-own"]], [undefined, "2"]);
});

/** The log of the server on `port` over WebSockets. @returns its URL, and the codes that were audited */
async function overWebSocket(t: TestContext, port: number) {
  const front = createServer();
  const audited: number[] = [];
  front.on("upgrade", (req: IncomingMessage, socket: Socket, head: Buffer) => {
    const respond = (code: number): void => void socket.end(`HTTP/1.1 ${code} Refused\r\ncontent-length: 0\r\n\r\n`);
    const { ctx } = aClient({ headers: req.headers, upgrade: { socket, head }, respond });
    Object.assign(ctx, { audit: { started: (code: number) => void audited.push(code) } });
    void relayed(ctx, port, "text");
  });
  return { url: `ws://127.0.0.1:${await listening(t, front)}/`, audited };
}

test("a log over a WebSocket is audited as an upgrade, and breaks off where the kubelet's does", async (t) => {
  const cut = Promise.withResolvers<ServerResponse>();
  const { port } = await behind(t, (_req, res) => {
    res.write("begin");
    cut.resolve(res);
  });
  const { url, audited } = await overWebSocket(t, port);
  const client = new WebSocket(url);
  const closed = once(client, "close");
  const [message] = (await once(client, "message")) as [Buffer];
  assert.deepEqual([String(message), audited], ["begin", [101]]);
  (await cut.promise).destroy();
  assert.equal((await closed)[0], 1006, "abnormal, not 1000");
});

for (const leave of ["end", "resetAndDestroy"] as const) {
  test(`an upgrade that its server has not answered is broken off by the client's ${leave}`, async (t) => {
    const seen = await behind(t, () => {});
    const front = createServer();
    const errors: string[] = [];
    front.on("upgrade", (req: IncomingMessage, socket: Socket, head: Buffer) => {
      socket.on("error", () => {});
      const { ctx } = aClient({ headers: req.headers, upgrade: { socket, head } });
      const target = { url: new URL(`http://127.0.0.1:${seen.port}/exec`), toNode: true, as: "tunnel" } as const;
      newNodeProxy({ log })
        .forward(ctx, target, pod)
        .catch((err: Error) => {
          errors.push(err.message);
          socket.destroy();
        });
    });
    const client = connect(await listening(t, front), "127.0.0.1");
    client.write("POST / HTTP/1.1\r\nHost: api\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n\r\n");
    await waitFor(() => seen.requests === 1, { what: "the request at the kubelet" });
    client[leave]();
    await waitFor(() => seen.gone === 1, { what: "the end of the request" });
    assert.deepEqual(errors, ["the client has disconnected"]);
  });
}

test("a log whose WebSocket is refused is not read any further", async (t) => {
  const seen = await behind(t, (_req, res) => void res.write("begin"));
  const client = new WebSocket((await overWebSocket(t, seen.port)).url, ["v4.channel.k8s.io"]);
  await once(client, "unexpected-response");
  await waitFor(() => seen.gone === 1, { what: "the end of the request" });
  client.on("error", () => {}).terminate();
});

test("a log over a WebSocket that is not read does not make the server read from the kubelet without end", async (t) => {
  const chunk = Buffer.alloc(1024 * 1024);
  const most = 64;
  let written = 0;
  let isFull = false;
  const { port } = await behind(t, (_req, res) => {
    const fill = (): void => {
      while (written < most && !res.destroyed) {
        written++;
        if (!res.write(chunk)) return void res.once("drain", fill);
      }
      isFull = true;
    };
    fill();
  });
  const { hostname, port: front } = new URL((await overWebSocket(t, port)).url);
  const client = connect(Number(front), hostname);
  t.after(() => client.destroy());
  const key = Buffer.alloc(16).toString("base64");
  client.write(
    `GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: ${key}\r\n\r\n`,
  );
  client.pause();
  let last = -1;
  await waitFor(
    () => {
      const isStill = written === last && written > 1;
      last = written;
      return isStill || isFull;
    },
    { what: "the kubelet to be held back", intervalMs: 100 },
  );
  assert.ok(written < most, `${written} MiB`);
});

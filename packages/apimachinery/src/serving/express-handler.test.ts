import assert from "node:assert/strict";
import { EventEmitter, once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { connect as connectHttp2 } from "node:http2";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { before, mock, type TestContext, test } from "node:test";
import { connect as connectTls } from "node:tls";
import express, { type Express, type Response } from "express";
import { discardLogger } from "../process/logging/logger.ts";
import { openAnswer, type RequestSettings, requestOver } from "../testing/https-client.ts";
import { type TestPair, testPair } from "../testing/tls.ts";
import { waitFor } from "../testing/wait-for.ts";
import type { Exchange } from "./exchange.ts";
import { expressHandler } from "./express-handler.ts";
import { startHttpServer } from "./https-server.ts";

let tls: TestPair;
before(async () => {
  tls = await testPair();
  mock.method(console, "error", () => {}); // Express prints errors there
});

interface Served {
  /** The server's port and CA. */
  readonly to: Pick<RequestSettings, "port" | "ca">;
  /** Emits `done` when the application has finished a request. */
  readonly events: EventEmitter;
}

/** @param filter runs before the application */
async function serve(t: TestContext, app: Express, filter?: (exchange: Exchange) => unknown): Promise<Served> {
  const pages = expressHandler(app);
  const events = new EventEmitter();
  const server = await startHttpServer({
    port: 0,
    bindAddress: "127.0.0.1",
    tls,
    log: discardLogger,
    async handler(exchange) {
      await filter?.(exchange);
      await pages(exchange);
      events.emit("done", exchange);
    },
  });
  t.after(() => server.close());
  return { to: { port: server.port, ca: tls.ca }, events };
}

function newApp(): Express {
  const app = express();
  app.disable("x-powered-by");
  return app;
}

for (const protocol of ["HTTP/1.1", "HTTP/2"] as const) {
  test(`${protocol}: serves an Express application with what filters set before; the application's own headers win`, async (t) => {
    const app = newApp();
    app.get("/hello/:name", (request, response) => {
      response
        .status(202)
        .append("Vary", "Accept")
        .json({
          name: request.params["name"],
          query: request.query["q"],
          version: request.httpVersion,
          protocol: request.protocol,
          ip: request.ip,
          agent: request.get("User-Agent"),
          raw: request.rawHeaders.includes("tester"),
        });
    });
    const { to } = await serve(t, app, (exchange) => {
      exchange.setHeader("audit-id", "7");
      exchange.setHeader("content-type", "text/plain");
    });
    const { status, headers, names, body } = await requestOver(protocol, {
      ...to,
      path: "/hello/bob?q=1",
      headers: { "user-agent": "tester" },
    });
    assert.deepEqual([status, headers["audit-id"], headers["vary"]], [202, "7", "Accept"]);
    assert.deepEqual([headers["content-type"], headers["content-length"]], ["application/json; charset=utf-8", `${body.length}`]);
    const version = protocol === "HTTP/2" ? "2.0" : "1.1";
    const own = { version, protocol: "https", ip: "127.0.0.1", agent: "tester", raw: true };
    assert.deepEqual(JSON.parse(body), { name: "bob", query: "1", ...own });
    assert.ok(names.includes(protocol === "HTTP/2" ? "audit-id" : "Audit-Id"));
    const nowhere = await requestOver(protocol, { ...to, path: "/nowhere" });
    assert.equal(nowhere.status, 404);
    assert.match(nowhere.body, /Cannot GET \/nowhere/);
  });

  test(`${protocol}: answers HEAD with the length of what GET has`, async (t) => {
    const app = newApp();
    app.get("/sent", (_request, response) => void response.send("abc"));
    app.get("/written", (_request, response) => {
      response.write("ab");
      response.end("c");
    });
    const { to } = await serve(t, app);
    const sent = await requestOver(protocol, { ...to, method: "HEAD", path: "/sent" });
    assert.deepEqual([sent.status, sent.headers["content-length"], sent.body], [200, "3", ""]);
    const written = await requestOver(protocol, { ...to, method: "HEAD", path: "/written" });
    assert.deepEqual([written.status, written.body], [200, ""]);
  });

  test(`${protocol}: answers a matching If-None-Match with 304`, async (t) => {
    const app = newApp();
    app.get("/", (_request, response) => void response.send("abc"));
    const { to } = await serve(t, app);
    const { etag } = (await requestOver(protocol, to)).headers as { etag: string };
    const again = await requestOver(protocol, { ...to, headers: { "if-none-match": etag } });
    assert.deepEqual([again.status, again.headers["etag"], again.body], [304, etag, ""]);
    assert.deepEqual([again.headers["content-type"], again.headers["content-length"]], [undefined, undefined]);
    assert.equal((await requestOver(protocol, { ...to, headers: { "if-none-match": '"other"' } })).status, 200);
  });

  test(`${protocol}: an error response has only its status`, async (t) => {
    const app = newApp();
    app.get("/throws", () => {
      throw new Error("secret detail");
    });
    app.get("/rejects", () => Promise.reject(new Error("secret detail")));
    app.get("/forbids", () => Promise.reject(Object.assign(new Error("secret detail"), { status: 403 })));
    app.get("/splits", (_request, response) => void response.setHeader("x-a", "b\r\nx-secret: c").end());
    const { to } = await serve(t, app, (exchange) => exchange.setHeader("audit-id", "7"));
    for (const [path, code, text] of [
      ["/throws", 500, "Internal Server Error"],
      ["/rejects", 500, "Internal Server Error"],
      ["/forbids", 403, "Forbidden"],
      ["/splits", 500, "Internal Server Error"],
    ] as const) {
      const { status, headers, body } = await requestOver(protocol, { ...to, path });
      assert.deepEqual([status, headers["content-type"], headers["audit-id"]], [code, "text/html; charset=utf-8", "7"], path);
      assert.match(body, new RegExp(`<pre>${text}</pre>`));
      assert.doesNotMatch(JSON.stringify(headers) + body, /secret|at /);
    }
  });

  test(`${protocol}: a response has the older names of Node's, and takes text and bytes only`, async (t) => {
    const app = newApp();
    const seen: unknown[] = [];
    app.get("/", (request, response) => {
      response.setHeader("X-A", "1").appendHeader("x-a", "2").setHeader("x-b", 3).removeHeader("X-B");
      seen.push(response.getHeaderNames(), response.getHeader("X-a"), response.hasHeader("x-b"));
      seen.push(response.connection === request.socket, response.finished, response.headersSent);
      response.flushHeaders();
      seen.push(response.headersSent);
      assert.throws(() => response.end(5), { name: "TypeError", message: "a body is text or bytes, not number" });
      response.end(new Uint8Array([97, 98]).subarray(1), () => seen.push("ended"));
      seen.push(response.finished);
      response.flushHeaders();
    });
    const { to } = await serve(t, app);
    const { status, headers, body } = await requestOver(protocol, to);
    assert.deepEqual([status, headers["x-a"], body], [200, protocol === "HTTP/2" ? "1, 2" : "1, 2", "b"]);
    assert.deepEqual(seen, [["x-a"], ["1", "2"], false, true, false, false, true, true, "ended"]);
  });

  test(`${protocol}: headers that are flushed after the end of a whole response change nothing`, async (t) => {
    const app = newApp();
    const failed: unknown[] = [];
    app.get("/", (_request, response) => {
      response.end("whole");
      try {
        response.flushHeaders();
      } catch (err) {
        failed.push(err);
      }
    });
    const { to } = await serve(t, app);
    const { status, body } = await requestOver(protocol, to);
    assert.deepEqual([status, body, failed], [200, "whole", []]);
  });

  test(`${protocol}: reads a request's body, once`, async (t) => {
    const app = newApp();
    app.post("/json", express.json({ limit: 1000, type: () => true }), (request, response) => {
      response.json({ body: request.body ?? "none", complete: request.complete });
    });
    app.post("/unread", (_request, response) => void response.send("ok"));
    const { to } = await serve(t, app, (exchange) => (exchange.headers["x-read"] ? exchange.body(1000) : undefined));
    const post = (path: string, body: string, headers: Record<string, string> = {}) =>
      requestOver(protocol, { ...to, method: "POST", path, body, headers: { "content-length": `${body.length}`, ...headers } });
    assert.deepEqual(JSON.parse((await post("/json", '{"a":[1]}')).body), { body: { a: [1] }, complete: true });
    assert.equal((await post("/json", '{"a":')).status, 400);
    assert.equal((await post("/json", `"${"x".repeat(2000)}"`)).status, 413);
    assert.equal((await post("/unread", "x".repeat(2000))).body, "ok");
    assert.equal((await post("/nowhere", "x".repeat(2000))).status, 404);
    assert.equal((await post("/json", '{"a":1}', { "x-read": "before" })).status, 400);
  });

  test(`${protocol}: streams chunks no faster than the client reads`, async (t) => {
    const total = 64 * 1024 * 1024;
    const part = Buffer.alloc(64 * 1024, "y");
    let made = 0;
    const app = newApp();
    app.get("/", (_request, response) => {
      const source = new Readable({
        read() {
          made += part.length;
          this.push(made <= total ? part : null);
        },
      });
      source.pipe(response);
    });
    const { to, events } = await serve(t, app);
    const done = once(events, "done");
    const answer = await openAnswer(protocol, to);
    assert.equal(answer.headers["content-length"], undefined);
    // Buffers hold less than this, so the source stops until the client reads.
    let last = -1;
    const isStill = (): boolean => {
      const still = made === last;
      last = made;
      return still;
    };
    await waitFor(isStill, { what: "the source to be held up", intervalMs: 50 });
    assert.ok(made < total / 2, `${made} bytes`);
    let size = 0;
    for await (const chunk of answer.body) size += (chunk as Buffer).length;
    assert.equal(size, total);
    const [exchange] = (await done) as [Exchange];
    assert.deepEqual([exchange.status, exchange.bytesWritten], [200, total]);
  });

  test(`${protocol}: ends the application's stream when the client leaves`, async (t) => {
    const seen: string[] = [];
    const app = newApp();
    app.get("/", async (request, response) => {
      for (const event of ["aborted", "close"]) request.on(event, () => seen.push(`request ${event}`));
      for (const event of ["finish", "close"]) response.on(event, () => seen.push(`response ${event}`));
      const source = new Readable({ read() {} });
      source.push("x");
      await pipeline(source, response).catch((err) => seen.push(err.code));
    });
    const { to, events } = await serve(t, app);
    const done = once(events, "done");
    const answer = await openAnswer(protocol, to);
    await once(answer.body, "data");
    answer.leave();
    const [exchange] = (await done) as [Exchange];
    assert.ok(exchange.isGone);
    await waitFor(() => seen.length === 4, { what: "the application to hear of it" });
    assert.deepEqual(seen.toSorted(), ["ERR_STREAM_PREMATURE_CLOSE", "request aborted", "request close", "response close"]);
  });

  test(`${protocol}: cuts off responses that fail after their start, and those that the application destroys`, {
    timeout: 120_000,
  }, async (t) => {
    const app = newApp();
    app.get("/throws", (_request, response) => {
      response.write("x");
      throw new Error("secret detail");
    });
    app.get("/source-fails", async (_request, response) => {
      const source = new Readable({ read: () => void setImmediate(() => source.destroy(new Error("no more"))) });
      source.push("x");
      await pipeline(source, response).catch(() => {});
    });
    app.get("/gives-up", (_request, response) => void response.destroy());
    const { to, events } = await serve(t, app);
    for (const path of ["/throws", "/source-fails", "/gives-up"]) {
      const done = once(events, "done");
      await assert.rejects(requestOver(protocol, { ...to, path }), path);
      await done;
    }
  });

  test(`${protocol}: keeps a response that was sent before the application's`, async (t) => {
    const app = newApp();
    app.get("/whole", (_request, response) => void response.send("late"));
    app.get("/parts", (_request, response) => void response.write("late"));
    const { to, events } = await serve(t, app, (exchange) => exchange.respond(504, {}, "early"));
    for (const path of ["/whole", "/parts"]) {
      const done = once(events, "done");
      const { status, body } = await requestOver(protocol, { ...to, path });
      assert.deepEqual([status, body], [504, "early"], path);
      await done;
    }
  });

  test(`${protocol}: serves files, ranges of them, and 304 for unchanged ones`, async (t) => {
    const directory = mkdtempSync(join(tmpdir(), "cox-serving-"));
    t.after(() => rmSync(directory, { recursive: true }));
    writeFileSync(join(directory, "page.txt"), "0123456789");
    const app = newApp();
    app.use("/files", express.static(directory));
    const { to } = await serve(t, app);
    const get = (headers: Record<string, string>, path = "/files/page.txt") => requestOver(protocol, { ...to, path, headers });
    const whole = await get({});
    assert.deepEqual([whole.status, whole.headers["content-length"], whole.body], [200, "10", "0123456789"]);
    const part = await get({ range: "bytes=2-4" });
    assert.deepEqual([part.status, part.headers["content-range"], part.body], [206, "bytes 2-4/10", "234"]);
    const unchanged = await get({ "if-none-match": String(whole.headers["etag"]) });
    assert.deepEqual([unchanged.status, unchanged.body], [304, ""]);
    assert.equal((await get({}, "/files/none.txt")).status, 404);
  });

  test(`${protocol}: serves applications below the application, mounted before or after it is served`, async (t) => {
    const app = newApp();
    const below = (name: string): Express =>
      newApp().get("/page", ({ baseUrl, path }, response) => void response.send(`${name} ${baseUrl} ${path}`));
    app.use("/early", below("early"));
    const { to } = await serve(t, app);
    app.use("/late", below("late"));
    app.get("/own", (_request, response) => void response.send("own"));
    for (const [path, text] of [
      ["/early/page", "early /early /page"],
      ["/late/page", "late /late /page"],
      ["/own", "own"],
    ] as const) {
      assert.equal((await requestOver(protocol, { ...to, path })).body, text);
    }
  });

  for (const { name, write, want } of [
    { name: "an object", write: (response) => response.writeHead(201, { "X-A": "1", "x-b": ["2", "3"] }) },
    { name: "a reason and an object", write: (response) => response.writeHead(201, "Fine", { "x-a": "1", "x-b": ["2", "3"] }) },
    { name: "a flat list", write: (response) => response.writeHead(201, ["x-a", "1", "X-B", "2", "x-b", "3"] as never) },
    {
      name: "pairs",
      write: (response) =>
        response.writeHead(201, [
          ["x-a", "1"],
          ["x-b", "2"],
          ["X-B", "3"],
        ] as never),
    },
    { name: "nothing", write: (response) => response.writeHead(201), want: ["old", undefined] },
  ] as { name: string; write: (response: Response) => Response; want?: unknown[] }[]) {
    test(`${protocol}: accepts headers of writeHead as ${name}`, async (t) => {
      const app = newApp();
      app.get("/", (_request, response) => {
        response.setHeader("X-A", "old");
        assert.equal(response.headersSent, false);
        write(response);
        assert.equal(response.headersSent, true);
        assert.throws(() => response.setHeader("x-c", "late"), { code: "ERR_HTTP_HEADERS_SENT" });
        response.end("done");
      });
      const { to } = await serve(t, app);
      const { status, headers, body } = await requestOver(protocol, to);
      assert.deepEqual([status, body, headers["content-length"]], [201, "done", "4"]);
      assert.deepEqual([headers["x-a"], headers["x-b"]], want ?? ["1", "2, 3"]);
    });
  }
}

test("serves both protocols at the same time", async (t) => {
  const app = newApp();
  app.get("/:name", async ({ params }, response) => {
    await new Promise(setImmediate);
    response.send(params["name"]);
  });
  const { to } = await serve(t, app);
  const requested = Array.from({ length: 10 }, (_, i) =>
    requestOver(i % 2 === 0 ? "HTTP/2" : "HTTP/1.1", { ...to, path: `/${i}` }),
  );
  assert.deepEqual(
    (await Promise.all(requested)).map(({ body }) => Number(body)),
    requested.map((_, i) => i),
  );
});

test("a destroyed request does not affect the others of its connection", async (t) => {
  const app = newApp();
  app.get("/gives-up", (request) => void request.socket.destroy());
  app.get("/fine", (_request, response) => void response.send("fine"));
  const { to } = await serve(t, app);
  const session = connectHttp2(`https://127.0.0.1:${to.port}`, { ca: to.ca });
  t.after(() => session.destroy());
  const broken = session.request({ ":path": "/gives-up" });
  await assert.rejects(once(broken, "response"));
  const fine = session.request({ ":path": "/fine" });
  assert.equal(String(Buffer.concat(await fine.toArray())), "fine");
});

test("answers an upgrade request of a page like a plain request", async (t) => {
  const app = newApp();
  app.get("/", (_request, response) => void response.send("a page"));
  const { to } = await serve(t, app);
  const socket = connectTls({ host: "127.0.0.1", port: to.port, ca: to.ca, ALPNProtocols: ["http/1.1"] });
  socket.write("GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n");
  const answer = String(Buffer.concat(await socket.toArray()));
  assert.match(answer, /^HTTP\/1\.1 200 OK\r\n/);
  assert.match(answer, /\r\n\r\na page$/);
});

/**
 * Requests that bypass Node's HTTP/1.1 server, and those on the same connection that do not. Without TLS, Node's server handles
 * all of them; the responses must be the same.
 */
import assert from "node:assert/strict";
import { once } from "node:events";
import { connect as connectTcp, type Socket } from "node:net";
import { Duplex } from "node:stream";
import { before, type TestContext, test } from "node:test";
import { connect as connectTls, type TLSSocket } from "node:tls";
import { discardLogger } from "../process/logging/logger.ts";
import fc from "../testing/fast-check.ts";
import { waitFor } from "../testing/wait-for.ts";
import { type KeyPair, newCa, newCertificate } from "./certificates.ts";
import type { Exchange, ExchangeHandler } from "./exchange.ts";
import { type HttpServer, type HttpServerOptions, startHttpServer } from "./https-server.ts";
import { SimpleConnection } from "./simple-connection.ts";
import { SimpleExchange } from "./simple-exchange.ts";
import { SimpleOutput } from "./simple-output.ts";

let ca: KeyPair;
let pair: KeyPair;
before(async () => {
  ca = await newCa({ commonName: "ca" });
  pair = await newCertificate({ commonName: "server", ips: ["127.0.0.1"], usages: ["server"], ca });
});

async function start(
  t: TestContext,
  handler: ExchangeHandler,
  { isPlain = false, ...more }: Partial<HttpServerOptions> & { isPlain?: boolean } = {},
): Promise<HttpServer> {
  const tls = isPlain ? undefined : { cert: pair.certPem, key: pair.keyPem };
  const server = await startHttpServer({ port: 0, bindAddress: "127.0.0.1", handler, log: discardLogger, tls, ...more });
  t.after(() => server.close());
  return server;
}

interface Client {
  readonly socket: Socket;
  /** All received text. */
  text(): string;
}

async function connect(t: TestContext, { port }: HttpServer, isPlain = false): Promise<Client> {
  const socket = isPlain ? connectTcp(port, "127.0.0.1") : connectTls({ port, host: "127.0.0.1", ca: ca.certPem });
  let text = "";
  socket.on("data", (chunk: Buffer) => {
    text += chunk.toString("latin1");
  });
  socket.on("error", () => {});
  t.after(() => void socket.destroy());
  await once(socket, isPlain ? "connect" : "secureConnect");
  return { socket, text: () => text };
}

const lines = (...all: string[]): string => [...all, "", ""].join("\r\n");
const get = (path: string, ...fields: string[]): string => lines(`GET ${path} HTTP/1.1`, "Host: x", ...fields);
const comparable = (text: string): string =>
  text.replaceAll(/^Date: .*$/gm, "Date:").replaceAll(/y{100,}/g, ({ length }) => `${length} y`);
const chunk = Buffer.alloc(300_000, "y");

/** Responds in every form an exchange offers. @param seen collects the exchanges */
function answers(seen: Exchange[] = []): ExchangeHandler {
  return async (exchange) => {
    seen.push(exchange);
    exchange.setHeader("audit-id", "42");
    exchange.appendHeader("warning", "one");
    exchange.appendHeader("warning", "two");
    const [path = ""] = exchange.url.split("?");
    const body = path === "/unread" ? "" : await exchange.body(100_000);
    switch (path) {
      case "/stream": {
        const response = exchange.stream(200, { "content-type": "text/plain" });
        response.write("some ä");
        response.write("");
        await new Promise(setImmediate); // Node coalesces writes of one tick
        response.write(Buffer.from("more"));
        await new Promise(setImmediate);
        response.end("end");
        return;
      }
      case "/sized": {
        const response = exchange.stream(200, { "content-length": 4 });
        response.write("ab");
        response.end("cd");
        return;
      }
      case "/unread": {
        const chunks: unknown[] = [];
        for await (const chunk of exchange.bodyStream()) chunks.push(chunk);
        return exchange.respond(200, {}, `${chunks.length} chunks, ${exchange.bodyBytes} bytes`);
      }
      case "/ended": {
        const response = exchange.stream(200, {});
        response.end("b");
        response.end();
        response.write("c");
        response.end("d");
        return;
      }
      case "/empty-stream":
        return exchange.stream(200, {}).end();
      case "/big":
        return exchange.respond(200, {}, chunk);
      case "/none":
        return exchange.respond(204, {}, "x");
      case "/same":
        return exchange.respond(304, { etag: '"x"' });
      case "/none-stream":
        return exchange.stream(204, {}).end("x");
      case "/bye":
        exchange.goAway();
        return exchange.respond(200, {}, "bye");
      case "/split":
        return exchange.respond(200, { "x-a": "b\r\nSet-Cookie: c" }, "split");
      case "/split-name":
        return exchange.respond(200, { "x-a: b\r\nc": "d" }, "split");
      case "/twice":
        exchange.respond(200, {}, "one");
        return exchange.respond(200, {}, "two");
      case "/dated":
        return exchange.respond(200, { date: "now", "content-length": 7 }, "dated");
      default:
        exchange.respond(
          201,
          {},
          JSON.stringify([exchange.method, exchange.url, exchange.headers, exchange.rawHeaders, String(body)]),
        );
    }
  };
}
const paths = [
  ..."/a /b?c=%20 /stream /sized /unread /ended /empty-stream /big /none /same /none-stream /split /split-name /twice /dated /bad%zz".split(
    " ",
  ),
];

test("every response equals that of Node's HTTP/1.1 server", async (t) => {
  const seen: Exchange[] = [];
  const ours = await start(t, answers(seen));
  const theirs = await start(t, answers(), { isPlain: true });
  const [one, two] = [await connect(t, ours), await connect(t, theirs, true)];
  for (const path of paths) {
    const marker = get("/last", "X-Marker: yes");
    const reported = [one, two].map(async ({ socket, text }) => {
      const from = text().length;
      socket.write(get(path, "Accept: a", "Authorization: Bearer b"));
      await waitFor(() => text().length > from, { what: `the answer for ${path}` });
      const answered = text().length;
      socket.write(marker);
      await waitFor(() => text().includes('"X-Marker"', answered === from ? from : from + 1), { what: `what follows ${path}` });
      return comparable(text().slice(from));
    });
    assert.equal(await reported[0], await reported[1], path);
  }
  const handled = seen.filter((exchange) => !exchange.url.includes("%zz"));
  assert.ok(handled.every((exchange) => exchange instanceof SimpleExchange));
});

test("from the first request that is not simple Node parses the connection, after earlier responses", async (t) => {
  const seen: Exchange[] = [];
  const server = await start(t, answers(seen));
  const { socket, text } = await connect(t, server);
  socket.write(get("/1") + get("/2"));
  await waitFor(() => text().includes('"/2"'), { what: "both answers" });
  socket.write(get("/3"));
  await waitFor(() => text().includes('"/3"'), { what: "the third" });
  assert.deepEqual(
    seen.map((exchange) => [exchange.url, exchange instanceof SimpleExchange]),
    [
      ["/1", false],
      ["/2", false],
      ["/3", false],
    ],
  );
  assert.deepEqual(text().match(/"\/\d"/g), ['"/1"', '"/2"', '"/3"']);
});

test("a body after simple requests arrives completely", async (t) => {
  const seen: Exchange[] = [];
  const server = await start(t, answers(seen));
  const { socket, text } = await connect(t, server);
  socket.write(get("/1"));
  await waitFor(() => text().includes('"/1"'), { what: "the first answer" });
  const body = "z".repeat(50_000);
  socket.write(`${lines("POST /2 HTTP/1.1", "Host: x", `Content-Length: ${body.length}`)}${body}`);
  await waitFor(() => text().includes(`"${body}"`), { what: "the second answer" });
  assert.deepEqual(
    seen.map((exchange) => exchange instanceof SimpleExchange),
    [true, false],
  );
  assert.equal(server.active, 0);
});

// No large responses: of requests pipelined behind unread ones, Node's server loses some over TLS ("Parse Error: Paused").
const pieces = fc.constantFrom(
  ...[get("/a"), get("/empty-stream"), get("/b", "A: b", "C:"), get("/none"), get("/same", "Accept: c")],
  ...[get("/a", "Content-Length: 0"), get("/a", "A: b", "a: c"), lines("HEAD /a HTTP/1.1", "Host: x")],
  `${lines("POST /p HTTP/1.1", "Host: x", "Content-Length: 5")}hello`,
  `${lines("PUT /p HTTP/1.1", "Host: x", "Transfer-Encoding: chunked")}5\r\nhello\r\n0\r\n\r\n`,
  ...[get("/a", "X: \xe4"), lines("GET http://x/abs HTTP/1.1", "Host: x"), lines("GET /c HTTP/1.1", "Host:   y  ")],
);
const ends = fc.constantFrom(get("/end", "Connection: close"), get("/bye"), lines("GET /old HTTP/1.0"));

test("requests of all kinds, cut anywhere, get the responses of Node's server", async (t) => {
  const [ours, theirs] = [await start(t, answers()), await start(t, answers(), { isPlain: true })];
  const reported = async (isPlain: boolean, parts: readonly string[]): Promise<string> => {
    const { socket, text } = await connect(t, isPlain ? theirs : ours, isPlain);
    for (const part of parts) {
      if (socket.destroyed) break;
      socket.write(part, "latin1");
      await new Promise(setImmediate);
    }
    if (!socket.destroyed) await once(socket, "close");
    return comparable(text());
  };
  const sent = fc.tuple(fc.array(pieces, { maxLength: 6 }), ends, fc.array(fc.nat(400), { maxLength: 6 }), fc.boolean());
  await fc.assert(
    fc.asyncProperty(sent, async ([requests, end, cuts, together]) => {
      const parts = together ? [[...requests, end].join("")] : [...requests, end];
      for (const [index, cut] of cuts.entries()) {
        const part = parts[index] ?? "";
        if (cut < part.length) parts.splice(index, 1, part.slice(0, cut), part.slice(cut));
      }
      assert.equal(await reported(false, parts), await reported(true, parts));
    }),
    { numRuns: 60 },
  );
});

const unreadable = [
  lines("GET / HTTP/1.1"),
  lines("GET / HTTP/1.1", "Host: x", "A : b"),
  lines("GET /\x01 HTTP/1.1", "Host: x"),
  lines("GET / HTTP/1.1", "Host: x", `A: ${"b".repeat(300_000)}`),
  "nonsense\r\n\r\n",
];
for (const request of unreadable) {
  test(`${JSON.stringify(request.slice(0, 40))} after a simple request is refused as by Node's server`, async (t) => {
    const reported = async (isPlain: boolean): Promise<string> => {
      const server = await start(t, answers(), { isPlain });
      const { socket, text } = await connect(t, server, isPlain);
      socket.write(get("/first"));
      await waitFor(() => text().endsWith("]"), { what: "the first answer" });
      await waitFor(() => server.active === 0, { what: "its end" });
      socket.write(request);
      await once(socket, "close");
      return comparable(text());
    };
    const ours = await reported(false);
    assert.match(ours, /HTTP\/1\.1 4/);
    assert.equal(ours, await reported(true));
  });
}

test("a late response is not sent for the next request", async (t) => {
  const next = Promise.withResolvers<void>();
  let refused: unknown;
  const server = await start(t, async (exchange) => {
    if (exchange.url === "/next") return next.promise.then(() => exchange.respond(200, {}, "for the next"));
    exchange.respond(504, {}, "too late");
    await waitFor(() => late.text().endsWith("too late"), { what: "the answer" });
    late.socket.write(get("/next"));
    await waitFor(() => server.active === 1, { what: "the next request" });
    exchange.respond(200, {}, "twice");
    try {
      exchange.stream(200, {}).end("twice");
    } catch (err) {
      refused = err;
    }
    next.resolve();
  });
  const late = await connect(t, server);
  late.socket.write(get("/"));
  await waitFor(() => late.text().endsWith("for the next"), { what: "the next answer" });
  assert.doesNotMatch(late.text(), /twice/);
  assert.match(String(refused), /already sent/);
});

test("the handler's signal is aborted when the client disconnects", async (t) => {
  const handled = Promise.withResolvers<Exchange>();
  const server = await start(t, async (exchange) => {
    const { signal } = exchange;
    handled.resolve(exchange);
    const response = exchange.stream(200, {});
    response.write("a");
    await once(signal, "abort");
    assert.equal(response.write("b"), false);
    await assert.rejects(response.drained());
    response.end();
  });
  const { socket, text } = await connect(t, server);
  socket.write(get("/"));
  await waitFor(() => text().endsWith("1\r\na\r\n"), { what: "the first bytes" });
  const exchange = await handled.promise;
  assert.deepEqual([server.active, exchange.isGone, exchange.signal.aborted], [1, false, false]);
  socket.destroy();
  await waitFor(() => exchange.signal.aborted && server.active === 0, { what: "the abort" });
  await waitFor(() => server.connections === 0, { what: "the connection to end" });
});

test("a response is sent to a client that closed only its own side", async (t) => {
  const size = 8 << 20;
  const server = await start(t, (exchange) => exchange.respond(200, {}, Buffer.alloc(size, "x")));
  const { socket, text } = await connect(t, server);
  socket.pause();
  socket.write(get("/"));
  await waitFor(() => server.active === 1, { what: "the request" });
  socket.end();
  socket.resume();
  await once(socket, "close");
  assert.equal(text().split("\r\n\r\n")[1]?.length, size);
});

test("a client that sends requests without reading is answered one request at a time", async (t) => {
  let handled = 0;
  const server = await start(t, (exchange) => {
    handled++;
    exchange.respond(200, {}, Buffer.alloc(16 << 20));
  });
  const { socket } = await connect(t, server);
  socket.pause();
  for (let i = 0; i < 2000; i++) socket.write(get(`/${i}`, `A: ${"b".repeat(1000)}`));
  await waitFor(() => handled > 0, { what: "the first request" });
  for (let i = 0; i < 20; i++) await new Promise(setImmediate);
  assert.ok(handled <= 2, `${handled} answers wait`);
});

test("backpressure: a writer waits for a client that does not read", async (t) => {
  let written = 0;
  const server = await start(t, async (exchange) => {
    const response = exchange.stream(200, {});
    for (let i = 0; i < 400; i++) {
      written++;
      if (!response.write(chunk)) await response.drained();
    }
    response.end();
  });
  const { socket, text } = await connect(t, server);
  socket.pause();
  socket.write(get("/"));
  let before = -1;
  await waitFor(
    () => {
      const stands = written === before && written > 0;
      before = written;
      return stands;
    },
    { what: "the writer to stand still" },
  );
  assert.ok(written < 100, `${written} chunks of 300 kB were taken`);
  socket.resume();
  await waitFor(() => text().endsWith("0\r\n\r\n"), { what: "the end" });
  assert.equal(written, 400);
});

for (const { name, first, times } of [
  { name: "a first request that does not come", first: "", times: { headersTimeoutMs: 100, idleTimeoutMs: 600_000 } },
  { name: "a next request that does not come", first: get("/a"), times: { headersTimeoutMs: 600_000, idleTimeoutMs: 100 } },
]) {
  test(`${name} ends the connection`, async (t) => {
    const server = await start(t, answers(), { ...times, headersCheckMs: 20 });
    const { socket } = await connect(t, server);
    if (first !== "") socket.write(first);
    await once(socket, "close");
    await waitFor(() => server.connections === 0, { what: "the connection to end" });
  });
}

test("a connection with a running response is not idle", async (t) => {
  const go = Promise.withResolvers<void>();
  const server = await start(
    t,
    async (exchange) => {
      await go.promise;
      exchange.respond(200, {}, "late");
    },
    { headersTimeoutMs: 50, idleTimeoutMs: 50, headersCheckMs: 10 },
  );
  const { socket, text } = await connect(t, server);
  socket.write(get("/"));
  await waitFor(() => server.active === 1, { what: "the request" });
  setTimeout(go.resolve, 200);
  await waitFor(() => text().endsWith("late"), { what: "the answer" });
});

test("a closing server completes running requests and closes idle connections at once", async (t) => {
  const go = Promise.withResolvers<void>();
  const server = await start(t, async (exchange) => {
    if (exchange.url === "/slow") await go.promise;
    exchange.respond(200, {}, "done");
  });
  const [idle, slow] = [await connect(t, server), await connect(t, server)];
  idle.socket.write(get("/"));
  await waitFor(() => idle.text().endsWith("done"), { what: "the first answer" });
  slow.socket.write(get("/slow"));
  await waitFor(() => server.active === 1, { what: "the slow request" });
  const closed = server.close(60_000);
  await once(idle.socket, "close");
  assert.equal(slow.socket.closed, false);
  go.resolve();
  await once(slow.socket, "close");
  assert.match(slow.text(), /done$/);
  await closed;
});

test("a waiting write ends when the client disconnects, and a later one at once", async () => {
  const never = new Duplex({ read() {}, write() {} });
  const output = new SimpleOutput(never);
  output.push(Buffer.alloc(1 << 20));
  const waiting = output.drained();
  output.close();
  await assert.rejects(waiting, /the client disconnected/);
  await assert.rejects(output.drained(), /the client disconnected/);
});

/** A connection over a socket that the test drives. */
function drive() {
  const ended: string[] = [];
  const socket = Object.assign(new Duplex({ read() {}, write: (_chunk, _encoding, written) => written() }), {
    destroySoon: () => void ended.push("destroyed"),
  });
  const requests: SimpleExchange[] = [];
  const handedOver: string[] = [];
  const connection = new SimpleConnection(
    socket as unknown as TLSSocket, // cast: of a TLS socket only this is used
    { headersTimeoutMs: 10_000, idleTimeoutMs: 20_000, log: discardLogger },
    {
      request: (exchange) => void requests.push(exchange),
      done() {},
      handOver: (bytes) => void handedOver.push(String(bytes)),
      closed() {},
    },
  );
  const settled = () => new Promise((resolve) => setImmediate(resolve));
  const send = async (text: string): Promise<void> => {
    socket.push(text);
    await settled();
  };
  const respond = async (): Promise<void> => {
    requests.at(-1)?.respond(200, {}, "ok");
    await settled();
  };
  return { socket, connection, requests, handedOver, ended, send, respond };
}

test("while a request is answered 16 kB are held, then the socket is paused until the answer", async () => {
  const { socket, requests, send, respond } = drive();
  await send(get("/a"));
  await send(get("/b"));
  assert.deepEqual([requests.length, socket.isPaused()], [1, false]);
  await send(get("/c").padEnd(16 * 1024, " "));
  assert.equal(socket.isPaused(), true);
  await respond();
  assert.equal(socket.isPaused(), false);
});

test("a connection that is handed over no longer hears of its socket's end", async () => {
  const { socket, handedOver, send } = drive();
  await send("POST / HTTP/1.1\r\n");
  assert.deepEqual(handedOver, ["POST / HTTP/1.1\r\n"]);
  assert.deepEqual(
    ["data", "end", "close"].map((event) => socket.listenerCount(event)),
    [0, 0, 0],
  );
});

test("a connection that is left during a request ends after its answer, and serves no held one", async () => {
  const { connection, requests, ended, send, respond } = drive();
  await send(get("/a"));
  await send(get("/held"));
  connection.leave();
  assert.deepEqual(ended, []);
  await respond();
  assert.deepEqual([requests.length, ended], [1, ["destroyed"]]);
});

test("a request that comes after the connection was left is not served", async () => {
  const { connection, requests, ended, send } = drive();
  connection.leave();
  await send(get("/late"));
  assert.deepEqual([requests.length, ended], [0, ["destroyed"]]);
});

test("a connection has the first limit until it has sent a request, then the second, from the last look at which it was busy", async () => {
  for (const [requested, limit] of [
    [false, 10_000],
    [true, 20_000],
  ] as const) {
    const { socket, connection, send, respond } = drive();
    if (requested) {
      await send(get("/a"));
      await respond();
    }
    connection.check(1_000);
    connection.check(1_000 + limit - 1);
    assert.equal(socket.destroyed, false);
    connection.check(1_000 + limit);
    assert.equal(socket.destroyed, true);
  }
});

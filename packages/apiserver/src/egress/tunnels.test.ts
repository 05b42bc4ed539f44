import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer as createHttpServer, request as httpRequest, type IncomingMessage } from "node:http";
import { createServer, type Server, Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { after, type TestContext, test } from "node:test";
import { createServer as createTlsServer, connect as tlsConnect } from "node:tls";
import { newClient } from "@coxswain/apimachinery/client/client";
import { dialErrorText } from "@coxswain/apimachinery/objects/errors/dial-error";
import { newFakeClock } from "@coxswain/apimachinery/process/clock/fake-clock";
import { newMetricsRegistry } from "@coxswain/apimachinery/process/metrics/registry";
import { newCa, newCertificate } from "@coxswain/apimachinery/serving/certificates";
import { listening } from "@coxswain/apimachinery/testing/listening";
import { settle, waitFor } from "@coxswain/apimachinery/testing/wait-for";
import { startConnectProxy, startKonnectivityServer } from "../testing/egress-proxies.ts";
import { tunnelledPlainAgent } from "./agents.ts";
import { proxyServerOf } from "./proxy-server.ts";
import type { Connection } from "./selections.ts";
import { newTunnels } from "./tunnels.ts";

const directory = mkdtempSync(join(tmpdir(), "cox-tunnels-"));
after(() => rmSync(directory, { recursive: true, force: true }));
let files = 0;
const newPath = (): string => join(directory, String(++files));
function file(text: string): string {
  const path = newPath();
  writeFileSync(path, text);
  return path;
}

const ca = await newCa({ commonName: "ca" });
const pair = await newCertificate({
  commonName: "x",
  dnsNames: ["behind.example.com"],
  ips: ["127.0.0.1"],
  usages: ["server", "client"],
  ca,
});
const tls = { cert: pair.certPem, key: pair.keyPem };

/** Port encoded in the target: proxies connect to it on this machine whatever the host is. `closed:1` is refused. */
const portOf = (target: string): number | undefined => (target.startsWith("closed") ? undefined : Number(target.split(":")[1]));

/** By kind: starts a proxy and returns it with the `connection` of a selection that uses it. */
const kinds = {
  "HTTP CONNECT over a unix socket": async () => {
    const at = newPath();
    const proxy = await startConnectProxy({ at, portOf });
    return { proxy, connection: { proxyProtocol: "HTTPConnect", transport: { uds: { udsName: at } } } };
  },
  "HTTP CONNECT over TCP": async () => {
    const proxy = await startConnectProxy({ at: 0, portOf });
    return { proxy, connection: { proxyProtocol: "HTTPConnect", transport: { tcp: { url: `http://127.0.0.1:${proxy.port}` } } } };
  },
  "HTTP CONNECT over TLS": async () => {
    const proxy = await startConnectProxy(
      { at: 0, portOf },
      { ...tls, ca: ca.certPem, requestCert: true, rejectUnauthorized: true },
    );
    const tlsConfig = { caBundle: file(ca.certPem), clientCert: file(pair.certPem), clientKey: file(pair.keyPem) };
    const tcp = { url: `https://127.0.0.1:${proxy.port}`, tlsConfig };
    return { proxy, connection: { proxyProtocol: "HTTPConnect", transport: { tcp } } };
  },
  GRPC: async () => {
    const at = newPath();
    const proxy = await startKonnectivityServer({ at, portOf });
    return { proxy, connection: overGrpc(at) };
  },
};
const overGrpc = (at: string): Connection => ({ proxyProtocol: "GRPC", transport: { uds: { udsName: at } } });
type Kind = keyof typeof kinds;
const everyKind = Object.keys(kinds) as Kind[];

function tunnelOf(connection: Connection) {
  const metrics = newMetricsRegistry();
  const clock = newFakeClock();
  const { etcd: connect } = newTunnels({ etcd: proxyServerOf(connection) }, clock, metrics);
  assert.ok(connect);
  return { connect, metrics, clock };
}

async function over(t: TestContext, kind: Kind) {
  const { proxy, connection } = await kinds[kind]();
  t.after(() => proxy.stop());
  return { proxy, ...tunnelOf(connection) };
}

const echo = (): Server => createServer((socket) => void socket.pipe(socket));

const chunk = Buffer.alloc(1024 * 1024, "0123456789abcde");
/** `count` distinct chunks of 1 MiB. @param given called for each chunk consumed */
function* chunks(count: number, given?: () => void): Generator<Buffer> {
  for (let i = 0; i < count; i++) {
    const one = Buffer.from(chunk);
    one.writeUInt32BE(i);
    given?.();
    yield one;
  }
}
function hashOf(count: number): string {
  const hash = createHash("sha256");
  for (const one of chunks(count)) hash.update(one);
  return hash.digest("hex");
}

async function hashOfRead(socket: Readable, bytes: number): Promise<string> {
  const hash = createHash("sha256");
  let left = bytes;
  for await (const part of socket) {
    hash.update(part as Buffer);
    left -= (part as Buffer).length;
    if (left <= 0) break;
  }
  return hash.digest("hex");
}

for (const kind of everyKind) {
  test(`${kind}: a client that keeps its connections asks one server more than once`, async (t) => {
    const { connect } = await over(t, kind);
    const port = await listening(
      t,
      createHttpServer((_request, response) => void response.end("{}")),
    );
    const client = newClient({ host: `http://127.0.0.1:${port}`, qps: -1 }, { connect });
    t.after(() => client.close());
    for (let i = 0; i < 3; i++) {
      assert.equal((await client.raw("POST", "/", { body: "{}" })).status, 200);
      await settle();
    }
  });

  test(`${kind}: bytes pass both ways, whole and in order`, async (t) => {
    const { connect, proxy } = await over(t, kind);
    const port = await listening(t, echo());
    const socket = await connect("127.0.0.1", port);
    const sent = pipeline(Readable.from(chunks(8)), socket, { end: false });
    assert.equal(await hashOfRead(socket, 8 * chunk.length), hashOf(8));
    await sent;
    assert.deepEqual(proxy.requested, [`127.0.0.1:${port}`]);
  });

  test(`${kind}: TLS is spoken with the server behind, whose certificate is its own`, async (t) => {
    const { connect } = await over(t, kind);
    const port = await listening(
      t,
      createTlsServer(tls, (socket) => void socket.end("hello")),
    );
    const secure = tlsConnect({ socket: await connect("127.0.0.1", port), servername: "behind.example.com", ca: ca.certPem });
    assert.equal(String(Buffer.concat(await secure.toArray())), "hello");
    const wrong = tlsConnect({ socket: await connect("127.0.0.1", port), servername: "other.example.com", ca: ca.certPem });
    const [err] = await once(wrong, "error");
    assert.equal(err.code, "ERR_TLS_CERT_ALTNAME_INVALID");
  });

  test(`${kind}: HTTP without TLS, one request after the other`, async (t) => {
    const { connect } = await over(t, kind);
    const port = await listening(
      t,
      createHttpServer((request, response) => void request.pipe(response)),
    );
    for (const body of ["one", "two"]) {
      const request = httpRequest({ host: "127.0.0.1", port, method: "POST", agent: tunnelledPlainAgent(connect) });
      request.end(body);
      const [response] = (await once(request, "response")) as [IncomingMessage];
      assert.equal(String(Buffer.concat(await response.toArray())), body);
    }
  });

  test(`${kind}: a server that speaks first is heard, and its end is the connection's`, async (t) => {
    const { connect } = await over(t, kind);
    const port = await listening(
      t,
      createServer((socket) => void socket.end("first")),
    );
    const socket = await connect("127.0.0.1", port);
    assert.equal(String(Buffer.concat(await socket.toArray())), "first");
    await waitFor(() => socket.destroyed, { what: "the connection to be over" });
  });

  for (const how of ["end", "destroy"] as const) {
    test(`${kind}: the server behind sees that we ${how} it`, async (t) => {
      const { connect } = await over(t, kind);
      let isGone = false;
      const server = createServer((socket) => void socket.resume().once("close", () => (isGone = true)));
      const socket = await connect("127.0.0.1", await listening(t, server));
      socket.write("x");
      socket[how]();
      await waitFor(() => isGone && socket.destroyed, { what: "the far end to close" });
    });
  }

  test(`${kind}: a proxy that ends breaks its connections, and its successor serves new ones`, async (t) => {
    const { proxy, connection } = await kinds[kind]();
    t.after(() => proxy.stop());
    const { connect } = tunnelOf(connection);
    const port = await listening(t, echo());
    const socket = await connect("127.0.0.1", port);
    const through = await connect("127.0.0.1", await listening(t, createTlsServer(tls)));
    const secure = tlsConnect({ socket: through, servername: "behind.example.com", ca: ca.certPem });
    await once(secure, "secureConnect");
    const broken = [socket, secure].map((one) => new Promise((resolve) => one.once("close", resolve).once("error", () => {})));
    socket.write("x");
    await once(socket, "data");
    await proxy.stop();
    secure.resume();
    await Promise.all(broken);
    await assert.rejects(connect("127.0.0.1", port));
    const { uds } = connection.transport as Connection["transport"] & object;
    if (uds?.udsName === undefined) return; // the TCP port may be in use by another process now
    rmSync(uds.udsName, { force: true });
    const start = kind === "GRPC" ? startKonnectivityServer : startConnectProxy;
    const successor = await start({ at: uds.udsName, portOf });
    t.after(() => successor.stop());
    const again = await connect("127.0.0.1", port);
    again.end("y");
    assert.equal(String(await again.toArray()), "y");
  });
}

/** One kind per protocol only, because the test is slow. */
for (const kind of ["HTTP CONNECT over TLS", "GRPC"] as const) {
  test(`${kind}: a client that does not read makes the server wait, and little is buffered for it`, async (t) => {
    const { connect } = await over(t, kind);
    let given = 0;
    const server = createServer((socket) => {
      void pipeline(Readable.from(chunks(64, () => given++)), socket).catch(() => {});
    });
    const socket = await connect("127.0.0.1", await listening(t, server));
    await once(socket, "readable");
    const before = await settled(() => given);
    assert.ok(before < 48, `the server sent ${before} MiB without a reader`);
    assert.ok(socket.readableLength < 2 * 1024 * 1024, `${socket.readableLength} bytes are kept`);
    assert.equal(await hashOfRead(socket, 64 * chunk.length), hashOf(64));
  });

  test(`${kind}: a server that does not read holds up who writes`, async (t) => {
    const { connect } = await over(t, kind);
    let held: Socket | undefined;
    const server = createServer({ pauseOnConnect: true }, (socket) => {
      held = socket;
    });
    const socket = await connect("127.0.0.1", await listening(t, server));
    let given = 0;
    const sent = pipeline(Readable.from(chunks(64, () => given++)), socket, { end: false });
    const before = await settled(() => given);
    assert.ok(before < 48, `${before} MiB were read without a reader`);
    assert.ok(held);
    assert.equal(await hashOfRead(held, 64 * chunk.length), hashOf(64));
    await sent;
  });
}

/** Waits until the value is stable; fails by timeout when it grows without bound. */
async function settled(read: () => number): Promise<number> {
  let last = -1;
  let since = performance.now();
  await waitFor(
    () => {
      const now = read();
      if (now !== last) since = performance.now();
      last = now;
      return now > 0 && performance.now() - since > 200;
    },
    { what: "it to stand still" },
  );
  return last;
}

const failed = (labels: string, count = 1): RegExp =>
  new RegExp(`^apiserver_egress_dialer_dial_failure_count\\{${labels}\\} ${count}$`, "m");

const noSocket = "dial unix /nowhere/proxy.sock: connect: no such file or directory";
for (const { proxyProtocol, protocol, message } of [
  { proxyProtocol: "HTTPConnect", protocol: "http_connect", message: noSocket },
  {
    proxyProtocol: "GRPC",
    protocol: "grpc",
    message: `rpc error: code = Unavailable desc = connection error: desc = "transport: Error while dialing ${noSocket}"`,
  },
]) {
  test(`a proxy that is not there, queried by ${proxyProtocol}, counts as a failure to connect`, async () => {
    const { connect, metrics } = tunnelOf({ proxyProtocol, transport: { uds: { udsName: "/nowhere/proxy.sock" } } });
    await assert.rejects(connect("127.0.0.1", 1), (err: Error) => dialErrorText(err) === message);
    assert.match(await metrics.render(), failed(`protocol="${protocol}",transport="uds",stage="connect"`));
  });
}

test("a proxy without TLS, or with a certificate of another CA, is a connection failure", async (t) => {
  const tlsConfig = { clientCert: file(pair.certPem), clientKey: file(pair.keyPem) };
  for (const server of [undefined, tls]) {
    const proxy = await startConnectProxy({ at: 0, portOf }, server);
    t.after(() => proxy.stop());
    const tcp = { url: `https://127.0.0.1:${proxy.port}`, tlsConfig };
    const { connect, metrics } = tunnelOf({ proxyProtocol: "HTTPConnect", transport: { tcp } });
    await assert.rejects(connect("127.0.0.1", 1), server ? { code: "UNABLE_TO_VERIFY_LEAF_SIGNATURE" } : /SSL/);
    assert.match(await metrics.render(), failed('protocol="http_connect",transport="tcp",stage="connect"'));
    assert.deepEqual(proxy.requested, []);
  }
});

for (const kind of everyKind) {
  test(`${kind}: a target that the proxy cannot reach is an error with the proxy's text, and counted`, async (t) => {
    const { connect, metrics, proxy } = await over(t, kind);
    const isGrpc = kind === "GRPC";
    await assert.rejects(connect("closed", 1), {
      message: isGrpc
        ? "dial tcp closed:1: connect: connection refused"
        : /^proxy error from \S+ while dialing closed:1, code 502: 502 Bad Gateway$/,
    });
    const text = await metrics.render();
    assert.match(
      text,
      failed(`protocol="${isGrpc ? "grpc" : "http_connect"}",transport="${proxy.port > 0 ? "tcp" : "uds"}",stage="proxy"`),
    );
    assert.doesNotMatch(text, /dial_duration_seconds_count/);
  });
}

test("a dial that succeeds is measured", async (t) => {
  const { connect, metrics } = await over(t, "GRPC");
  (await connect("127.0.0.1", await listening(t, echo()))).destroy();
  assert.match(
    await metrics.render(),
    /^apiserver_egress_dialer_dial_duration_seconds_count\{protocol="grpc",transport="uds"\} 1$/m,
  );
});

/** A proxy that handles each connection with `onSocket`. */
async function odd(t: TestContext, onSocket: (socket: Socket) => void, proxyProtocol: string) {
  const at = newPath();
  const server = createServer((socket) => {
    socket.on("error", () => {});
    onSocket(socket);
  });
  server.listen(at);
  await once(server, "listening");
  t.after(() => void server.close());
  return tunnelOf({ proxyProtocol, transport: { uds: { udsName: at } } });
}

for (const { proxyProtocol, message } of [
  { proxyProtocol: "HTTPConnect", message: /^reading HTTP response from CONNECT to a:1 via proxy \S+ failed: i\/o timeout$/ },
  { proxyProtocol: "GRPC", message: "dial timeout, backstop" },
]) {
  test(`a proxy queried by ${proxyProtocol} that never answers is given up after 30 s`, async (t) => {
    const sockets: Socket[] = [];
    const { connect, clock } = await odd(t, (socket) => void sockets.push(socket.resume()), proxyProtocol);
    const dialled = connect("a", 1).catch((err: Error) => err);
    await waitFor(() => (sockets[0]?.bytesRead ?? 0) > 0, { what: "the proxy to be queried" });
    await clock.advance(30_000);
    assert.match(((await dialled) as Error).message, new RegExp(message));
    await waitFor(() => sockets[0]?.destroyed, { what: "the connection to the proxy to end" });
  });
}

for (const { name, answer, message } of [
  { name: "ends at once", answer: "", message: "unexpected EOF" },
  { name: "answers no HTTP", answer: "hello\r\n\r\n", message: "Parse Error: Expected HTTP/" },
]) {
  test(`a proxy that ${name} is no proxy`, async (t) => {
    const { connect } = await odd(t, (socket) => socket.once("data", () => socket.end(answer)), "HTTPConnect");
    await assert.rejects(
      connect("a", 1),
      (err: Error) =>
        err.message.startsWith("reading HTTP response from CONNECT to a:1 via proxy") &&
        err.message.includes(`failed: ${message}`),
    );
  });
}

const never = new AbortController().signal;

test("a proxy's address may be a name, which its certificate is for, and may be without a port", async (t) => {
  const named = await newCertificate({ commonName: "x", dnsNames: ["localhost"], usages: ["server", "client"], ca });
  const names: string[] = [];
  const SNICallback = (name: string, done: (err: Error | null) => void): void => {
    names.push(name);
    done(null);
  };
  const server = createTlsServer(
    { cert: named.certPem, key: named.keyPem, SNICallback },
    (socket) => void socket.on("error", () => {}),
  );
  const tlsConfig = { caBundle: file(ca.certPem), clientCert: file(named.certPem), clientKey: file(named.keyPem) };
  const at = (url: string) => proxyServerOf({ proxyProtocol: "HTTPConnect", transport: { tcp: { url, tlsConfig } } });
  (await at(`https://localhost:${await listening(t, server)}`).connect(never)).destroy();
  assert.deepEqual(names, ["localhost"]);
  for (const [url, address, port] of [
    ["https://127.255.255.253", "127.255.255.253", 443],
    ["http://127.255.255.253", "127.255.255.253", 80],
    ["http://[::1]:1", "::1", 1],
  ] as const)
    await assert.rejects(at(url).connect(never), { address, port });
});

test("a connection to a proxy outlives the attempt to make it", async (t) => {
  const proxy = await startConnectProxy({ at: 0, portOf });
  t.after(() => proxy.stop());
  const dial = new AbortController();
  const tcp = { url: `http://127.0.0.1:${proxy.port}` };
  const socket = await proxyServerOf({ proxyProtocol: "HTTPConnect", transport: { tcp } }).connect(dial.signal);
  dial.abort();
  assert.equal(socket.destroyed, false);
  socket.destroy();
});

test("a proxy that accepts a connection and says nothing of TLS is given up after 30 s, as one that cannot be reached", async (t) => {
  const sockets: Socket[] = [];
  const port = await listening(
    t,
    createServer((socket) => void sockets.push(socket.on("error", () => {}).resume())),
  );
  const tlsConfig = { clientCert: file(pair.certPem), clientKey: file(pair.keyPem) };
  const tcp = { url: `https://127.0.0.1:${port}`, tlsConfig };
  const { connect, clock, metrics } = tunnelOf({ proxyProtocol: "HTTPConnect", transport: { tcp } });
  const dialled = connect("a", 1).catch((err: Error) => err.message);
  await waitFor(() => (sockets[0]?.bytesRead ?? 0) > 0, { what: "the proxy to be queried" });
  await clock.advance(29_999);
  assert.equal(clock.waiting, 1);
  await clock.advance(1);
  assert.equal(await dialled, "i/o timeout");
  assert.match(await metrics.render(), failed('protocol="http_connect",transport="tcp",stage="connect"'));
});

test("an address of IPv6 is in brackets for the proxy, and no timer is left behind a dial, good or bad", async (t) => {
  const port = await listening(t, echo());
  const proxy = await startConnectProxy({ at: 0, portOf: (target) => (target.includes("closed") ? undefined : port) });
  t.after(() => proxy.stop());
  const tcp = { url: `http://127.0.0.1:${proxy.port}` };
  const { connect, clock } = tunnelOf({ proxyProtocol: "HTTPConnect", transport: { tcp } });
  (await connect("2001:db8::7", 443)).destroy();
  await assert.rejects(connect("closed", 1));
  assert.deepEqual([proxy.requested, clock.waiting], [["[2001:db8::7]:443", "closed:1"], 0]);
});

test("a proxy opens a tunnel with 200 alone; a connection with another answer is closed", async (t) => {
  const sockets: Socket[] = [];
  const answer = "HTTP/1.1 204 No Content\r\n\r\n";
  const { connect } = await odd(
    t,
    (socket) => {
      sockets.push(socket);
      socket.once("data", () => socket.write(answer));
    },
    "HTTPConnect",
  );
  await assert.rejects(connect("a", 1), /while dialing a:1, code 204: 204 No Content$/);
  await waitFor(() => sockets[0]?.destroyed, { what: "the connection to be closed", timeoutMs: 10_000 });
});

for (const kind of ["HTTP CONNECT over TCP", "HTTP CONNECT over TLS"] as const) {
  test(`${kind}: small writes are not held back`, async (t) => {
    const { proxy, connection } = await kinds[kind]();
    t.after(() => proxy.stop());
    const noDelay = t.mock.method(Socket.prototype, "setNoDelay");
    const socket = await proxyServerOf(connection).connect(new AbortController().signal);
    t.after(() => socket.destroy());
    const ofSocket = noDelay.mock.calls.filter((call) => call.this === socket);
    assert.deepEqual(ofSocket.at(-1)?.arguments, [true]);
  });
}

/** Two connections joined: which side is closed when the other one ends or fails, resources released on each failure, and timeouts. */
import assert from "node:assert/strict";
import { getEventListeners } from "node:events";
import type { Socket } from "node:net";
import { Duplex } from "node:stream";
import { type TestContext, test } from "node:test";
import { newFakeClock } from "@coxswain/apimachinery/process/clock/fake-clock";
import { settle } from "@coxswain/apimachinery/testing/wait-for";
import type { Connection } from "@coxswain/apimachinery/transport/connect";
import type { ConnectTarget } from "../registry/generic/resource.ts";
import type { RequestContext } from "../request/context.ts";
import type { Dial } from "./dial.ts";
import type { Redirects } from "./redirects.ts";
import { type SpliceOptions, splice } from "./splice.ts";
import { newNodeProxy } from "./upstream.ts";

/** This server's end of a connection in memory. */
class End extends Duplex implements Connection {
  /** What was sent to the peer. */
  sent = "";
  /** While held, the peer reads nothing more. */
  isHeld = false;
  #release: (() => void) | undefined;

  override _read(): void {}

  override _write(chunk: Buffer, _encoding: string, done: () => void): void {
    if (this.isHeld) this.#release = () => this._write(chunk, _encoding, done);
    else {
      this.sent += chunk.toString();
      done();
    }
  }

  release(): void {
    this.isHeld = false;
    this.#release?.();
  }

  destroySoon(): void {
    this.end();
    if (this.writableFinished) this.destroy();
    else this.once("finish", () => this.destroy());
  }
}

const upgraded = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n\r\n";
const log = { v: () => undefined, warn: () => undefined } as never;
const target: ConnectTarget = { url: new URL("http://10.0.0.7:10250/exec"), toNode: true, as: "tunnel" };

function dialOf(backend: End): Dial {
  const tls = { rejectUnauthorized: false, servername: "" };
  return { address: "10.0.0.7", port: 10250, secure: false, tls, timeoutMs: 5_000, tunnel: async () => backend };
}

/** An upgrade request to a backend that has not responded yet. */
function upgrading(options: Partial<SpliceOptions> = {}, headers: Record<string, string> = {}, head = "") {
  const [client, backend] = [new End(), new End()];
  const codes: number[] = [];
  const ctx = {
    exchange: { method: "POST", headers: { upgrade: "SPDY/3.1", ...headers }, remoteAddress: "10.1.2.3" },
    audit: { started: (code: number) => void codes.push(code) },
  } as unknown as RequestContext;
  const upgrade = { socket: client as unknown as Socket, head: Buffer.from(head) };
  const done = splice(ctx, upgrade, target, dialOf(backend), { log, ...options });
  done.catch(() => {}); // also observed by the tests that await it
  let isDone = false;
  const finished = (): void => {
    isDone = true;
  };
  done.then(finished, finished);
  return { client, backend, codes, done, isDone: () => isDone };
}

/** As `upgrading`, with a backend that has accepted the upgrade. */
async function spliced(options: Partial<SpliceOptions> = {}, head = "") {
  const both = upgrading(options, {}, head);
  await settle();
  both.backend.push(upgraded);
  await settle();
  return both;
}

test("bytes that the client sent ahead are forwarded first, and the upgrade is audited", async () => {
  const { client, backend, codes } = await spliced({}, "early ");
  client.push("late");
  backend.push("hello");
  await settle();
  assert.equal(backend.sent.split("\r\n\r\n")[1], "early late");
  assert.deepEqual([client.sent, codes], [`${upgraded}hello`, [101]]);
});

for (const [from, to] of [
  ["client", "backend"],
  ["backend", "client"],
] as const) {
  test(`after the ${from} ends, pending bytes are delivered to the ${to} before it is closed`, async () => {
    const both = await spliced();
    both[to].isHeld = true;
    both[from].push("last");
    both[from].push(null);
    await settle();
    both[from].destroy();
    await settle();
    assert.deepEqual([both[to].destroyed, both.isDone()], [false, false]);
    both[to].release();
    await both.done;
    assert.match(both[to].sent, /last$/);
    assert.equal(both[to].destroyed, true);
  });

  test(`when the ${from} breaks off, the ${to} is not waited for`, async () => {
    const both = await spliced();
    both[to].isHeld = true;
    both[from].push("last");
    await settle();
    both[from].destroy(new Error("ECONNRESET"));
    await both.done;
    assert.equal(both[to].destroyed, true);
  });
}

test("headers that this server sets go in place of the client's, once", async () => {
  const { backend } = upgrading({}, { host: "api.example", connection: "Upgrade, X", "x-forwarded-for": "10.9.9.9" });
  await settle();
  const ofConnection = backend.sent.split("\r\n").filter((line) => /^(host|connection|x-forwarded-for):/i.test(line));
  assert.deepEqual(ofConnection, ["host: api.example", "connection: Upgrade", "x-forwarded-for: 10.9.9.9, 10.1.2.3"]);
  backend.destroy();
});

test("a backend that accepts the upgrade and closes at once closes the client's connection", async () => {
  const { client, backend, done } = upgrading();
  await settle();
  backend.once("data", () => backend.destroy());
  setImmediate(() => backend.push(upgraded)); // in a separate turn, as with sockets: the connection closes before the response is read
  await done;
  assert.equal(client.destroyed, true);
});

test("--max-connection-bytes-per-sec holds for each direction by itself", async () => {
  const clock = newFakeClock();
  const { client, backend } = await spliced({ bytesPerSecond: 1_000, clock });
  const counts = (): number[] => [client.sent.length - upgraded.length, (backend.sent.split("\r\n\r\n")[1] ?? "").length];
  client.push("x".repeat(300));
  backend.push("y".repeat(400));
  await settle();
  assert.deepEqual(counts(), [100, 100]);
  await clock.advance(200);
  await settle();
  assert.deepEqual(counts(), [300, 300]);
  await clock.advance(100);
  await settle();
  assert.deepEqual(counts(), [400, 300]);
});

test("a token that came as a subprotocol stays here; the other protocols and headers go on", async () => {
  const token = "base64url.bearer.authorization.k8s.io.c2VjcmV0";
  const { backend } = upgrading(
    {},
    { "sec-websocket-protocol": `${token}, v4.channel.k8s.io,${token}`, "x-kept": `${token}, 1` },
  );
  await settle();
  assert.match(backend.sent, /\r\nsec-websocket-protocol: v4\.channel\.k8s\.io\r\n/);
  assert.ok(backend.sent.includes(`\r\nx-kept: ${token}, 1\r\n`));
  backend.destroy();
});

for (const { name, answer, message } of [
  { name: "that is not HTTP", answer: "SSH-2.0-OpenSSH\r\n\r\n", message: "invalid upgrade response: status code 0" },
  { name: "that does not upgrade", answer: "HTTP/1.1 200 OK\r\n\r\n", message: "invalid upgrade response: status code 200" },
  { name: "that ends early", answer: "HTTP/1.1 1", message: "unexpected EOF" },
]) {
  test(`an answer ${name} is an error, and closes the backend's connection alone`, async () => {
    const { client, backend, done } = upgrading();
    await settle();
    backend.push(answer);
    await settle();
    if (message === "unexpected EOF") backend.destroy();
    await assert.rejects(done, { code: 500, message });
    assert.deepEqual([backend.destroyed, client.destroyed, client.sent], [true, false, ""]);
  });
}

for (const { name, leave } of [
  { name: "breaks off", leave: (client: End) => void client.destroy() },
  { name: "sends its end", leave: (client: End) => void client.push(null) },
]) {
  test(`a client that ${name} before the backend has answered takes the backend's connection along`, async () => {
    const { client, backend, done } = upgrading();
    await settle();
    backend.push("HTTP/1.1 101 Switching");
    await settle();
    assert.equal(backend.destroyed, false);
    client.resume(); // reads without being asked, as a socket does
    leave(client);
    await assert.rejects(done, { code: 500, message: "the client has disconnected" });
    assert.equal(backend.destroyed, true);
  });

  test(`a client that ${name} while the backend is dialled leaves no connection behind`, async () => {
    const backend = new End();
    const dialled = Promise.withResolvers<Connection>();
    const dial = { ...dialOf(backend), tunnel: () => dialled.promise };
    const client = new End();
    const exchange = { method: "POST", headers: {}, remoteAddress: "10.1.2.3" };
    const upgrade = { socket: client as unknown as Socket, head: Buffer.of() };
    const done = splice({ exchange } as unknown as RequestContext, upgrade, target, dial, { log });
    client.resume();
    leave(client);
    await settle();
    dialled.resolve(backend);
    await assert.rejects(done, { message: "the client has disconnected" });
    assert.equal(backend.destroyed, true);
  });
}

test("a backend that does not answer within 30 s is left", async (t) => {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  const { backend, done, isDone } = upgrading();
  await settle();
  backend.push("HTTP/1.1 101 Switching");
  await settle();
  t.mock.timers.tick(29_999);
  await settle();
  assert.equal(isDone(), false);
  t.mock.timers.tick(1);
  await assert.rejects(done, { code: 500, message: "i/o timeout" });
  assert.equal(backend.destroyed, true);
});

test("an answer in many pieces leaves nothing at the connection", async () => {
  const whole = await spliced();
  const inPieces = upgrading();
  await settle();
  for (const piece of upgraded.match(/.{1,8}/gs) ?? []) {
    inPieces.backend.push(piece);
    await settle();
  }
  assert.equal(inPieces.client.sent, upgraded);
  const listeners = (end: End): number[] => ["data", "end", "error", "close"].map((name) => getEventListeners(end, name).length);
  assert.deepEqual(
    [listeners(inPieces.backend), listeners(inPieces.client)],
    [listeners(whole.backend), listeners(whole.client)],
  );
});

const refused = "HTTP/1.1 403 Forbidden\r\nContent-Length: 4\r\n\r\n";

test("after the last byte of a refusal both connections are closed, and data from the client is dropped", async () => {
  const { client, backend, done, codes } = upgrading();
  await settle();
  backend.push(`${refused}no`);
  await settle();
  client.push("GET /second HTTP/1.1\r\n\r\n");
  await settle();
  assert.deepEqual([client.readableLength, backend.sent.includes("second")], [0, false]);
  backend.push("ne, and more");
  await done;
  assert.deepEqual([client.sent, codes], [`${refused}none`, [403]]);
  assert.deepEqual([client.destroyed, backend.destroyed], [true, true]);
});

test("a refusal that has arrived in one piece is not waited for", async () => {
  const { client, backend, done } = upgrading();
  await settle();
  backend.push(`${refused}none`);
  await done;
  assert.equal(client.sent, `${refused}none`);
});

for (const how of ["does not end within 10 s", "is broken off", "is not read any more"]) {
  test(`a refusal that ${how} closes both connections`, async (t: TestContext) => {
    t.mock.timers.enable({ apis: ["setTimeout"] });
    const { client, backend, done, isDone } = upgrading();
    await settle();
    backend.push(`${refused}no`);
    await settle();
    assert.equal(isDone(), false);
    if (how === "is broken off") backend.destroy(new Error("ECONNRESET"));
    else if (how === "is not read any more") client.destroy();
    else t.mock.timers.tick(10_000);
    await done;
    assert.deepEqual([client.destroyed, backend.destroyed], [true, true]);
  });
}

test("a redirect is followed over a new connection to its target; the previous one is closed", async () => {
  const second = new End();
  const dialled: string[] = [];
  const redirects: Redirects = {
    sameHost: false,
    async dial(to) {
      dialled.push(to.url.href);
      return dialOf(second);
    },
  };
  const { client, backend, done, isDone } = upgrading({ redirects });
  await settle();
  backend.push("HTTP/1.1 302 Found\r\nLocation: http://10.0.0.8:10010/exec/token\r\n\r\n");
  await settle();
  assert.deepEqual([backend.destroyed, dialled], [true, ["http://10.0.0.8:10010/exec/token"]]);
  assert.match(second.sent, /^GET \/exec\/token HTTP\/1\.1\r\n/);
  assert.match(second.sent, /\r\nhost: 10\.0\.0\.8:10010\r\n/);
  second.push(upgraded);
  await settle();
  assert.deepEqual([client.sent, isDone()], [upgraded, false]);
  client.destroy();
  await done;
});

test("a redirect that cannot be followed closes the connection that it came over", async () => {
  const redirects: Redirects = { sameHost: true, dial: () => assert.fail("it is not dialled") };
  const { backend, done } = upgrading({ redirects });
  await settle();
  backend.push("HTTP/1.1 302 Found\r\nLocation: http://10.0.0.8/\r\n\r\n");
  await assert.rejects(done, /hostname mismatch/);
  assert.equal(backend.destroyed, true);
});

test("a redirect of a proxied server is never followed, whatever holds for kubelets", async () => {
  const dialled: string[] = [];
  const backend = new End();
  const tunnel = async (host: string): Promise<Connection> => {
    dialled.push(host);
    return backend;
  };
  const exchange = { method: "GET", headers: {}, remoteAddress: "10.1.2.3", upgrade: { socket: new End(), head: Buffer.of() } };
  const proxy = newNodeProxy({ log, tunnel, redirects: { sameHost: false } });
  const done = proxy.forward({ exchange } as never, { ...target, toNode: false, as: "proxy" }, {} as never);
  done.catch(() => {});
  await settle();
  backend.push("HTTP/1.1 302 Found\r\nLocation: http://10.0.0.8/\r\n\r\n");
  await assert.rejects(done, /invalid upgrade response: status code 302/);
  assert.deepEqual(dialled, ["10.0.0.7"]);
});

test("headers that this server adds are all sent, each value on a line of its own, and never a line break in one", async () => {
  const send = (own: Record<string, string | string[]>) => {
    const [client, backend] = [new End(), new End()];
    const exchange = { method: "GET", headers: { "x-remote-group": "forged" }, remoteAddress: "10.1.2.3" };
    const upgrade = { socket: client as unknown as Socket, head: Buffer.of() };
    const done = splice({ exchange } as unknown as RequestContext, upgrade, target, dialOf(backend), { log }, own);
    done.catch(() => {}); // observed below, or ended
    return { backend, done };
  };
  const { backend } = send({ "x-remote-group": ["a", "b"], "x-remote-user": "jane" });
  await settle();
  const lines = backend.sent.split("\r\n").filter((line) => line.startsWith("x-remote-"));
  assert.deepEqual(lines, ["x-remote-group: a", "x-remote-group: b", "x-remote-user: jane"]);
  backend.destroy();
  const split = send({ "x-remote-user": "jane\r\nx-remote-group: system:masters" });
  await assert.rejects(split.done, { code: "ERR_INVALID_CHAR" });
  assert.equal(split.backend.sent, "");
});

for (const code of [300, 304, 399]) {
  test(`an answer with ${code} is neither an upgrade nor a refusal`, async () => {
    const { client, backend, done } = upgrading();
    await settle();
    backend.push(`HTTP/1.1 ${code} x\r\nContent-Length: 0\r\n\r\n`);
    await assert.rejects(done, { code: 500, message: `invalid upgrade response: status code ${code}` });
    assert.deepEqual([client.sent, backend.destroyed], ["", true]);
  });
}

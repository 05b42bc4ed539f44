import assert from "node:assert/strict";
import { createSecureServer, type Http2SecureServer, type ServerHttp2Session } from "node:http2";
import { type AddressInfo, createServer, type Socket } from "node:net";
import { before, type TestContext, test } from "node:test";
import { listening } from "@coxswain/apimachinery/testing/listening";
import { type TestPair, testPair } from "@coxswain/apimachinery/testing/tls";
import { settle, waitFor } from "@coxswain/apimachinery/testing/wait-for";
import { Probe } from "./probe.ts";

let pair: TestPair;
before(async () => {
  pair = await testPair();
});

/** A server that counts the pings it has answered, and a probe that ticks when the test says so. */
async function start(t: TestContext) {
  const state = { pings: 0, readyz: 200, asked: 0 };
  const sessions = new Set<ServerHttp2Session>();
  const sockets = new Set<Socket>();
  let server: Http2SecureServer | undefined;
  const listen = async (port: number): Promise<number> => {
    server = createSecureServer({ cert: pair.cert, key: pair.key }, (_request, response) => {
      state.asked++;
      response.statusCode = state.readyz;
      response.end();
    });
    server.on("connection", (socket: Socket) => {
      sockets.add(socket.on("error", () => {}));
      socket.once("close", () => sockets.delete(socket));
    });
    server.on("session", (session) => {
      sessions.add(session);
      session.on("close", () => sessions.delete(session));
      session.on("error", () => {});
      session.on("ping", () => state.pings++);
    });
    await new Promise<void>((resolve) => server?.listen(port, "127.0.0.1", resolve));
    return (server.address() as AddressInfo).port;
  };
  const port = await listen(0);
  const changes: string[] = [];
  const probe: Probe = new Probe({
    ...{ address: `127.0.0.1:${port}`, host: "127.0.0.1", port },
    tls: async () => ({ ca: pair.ca, servername: "kubernetes" }),
    changed: () => void changes.push(probe.state),
  });
  /** Ends the server as one that is shut down does: GOAWAY, then the connections. */
  const end = async (): Promise<void> => {
    const closed = new Promise((resolve) => server?.close(resolve));
    for (const session of sessions) session.close();
    await closed;
  };
  /** Ends the server as one that is killed does. */
  const kill = async (): Promise<void> => {
    const closed = new Promise((resolve) => server?.close(resolve));
    for (const socket of sockets) socket.destroy();
    await closed;
  };
  t.after(async () => {
    probe.close();
    for (const session of sessions) session.destroy();
    server?.close();
  });
  /** One tick whose ping the server has seen. */
  const ping = async (): Promise<void> => {
    const before = state.pings;
    await waitFor(() => {
      if (state.pings === before) probe.tick();
      return settle(3).then(() => state.pings > before);
    });
    await settle();
  };
  return { state, changes, probe, listen: () => listen(port), end, kill, ping };
}

test("a server that ended and is started again is used after five answers, not after the first", async (t) => {
  const { changes, probe, listen, end, kill, ping } = await start(t);
  await waitFor(() => probe.state === "ready");
  await end();
  await waitFor(() => probe.state === "leaving");
  await listen();
  await ping();
  assert.deepEqual(changes, ["ready", "leaving"], "at most two answers: the settings and one ping");
  for (let pings = 0; pings < 4; pings++) await ping();
  await waitFor(() => probe.state === "ready");
  assert.deepEqual(changes, ["ready", "leaving", "ready"]);
  await kill();
  await waitFor(() => probe.state === "dead", { timeoutMs: 5_000, what: "the server that was killed to be dead" });
});

test("a server that missed four pings is trusted again after five answers, counted from then on", async (t) => {
  const { changes, probe, ping } = await start(t);
  await waitFor(() => probe.state === "ready");
  for (let pings = 0; pings < 6; pings++) await ping();
  for (let ticks = 0; ticks < 4; ticks++) probe.tick();
  assert.deepEqual([probe.state, probe.reason], ["dead", "it does not answer"]);
  await settle(30);
  assert.deepEqual(changes, ["ready", "dead"], "four answers");
  await ping();
  await waitFor(() => probe.state === "ready");
});

test("an attempt to connect is given up after 15 ticks, and made again", async (t) => {
  const sockets: Socket[] = [];
  const server = createServer((socket) => void sockets.push(socket.on("error", () => {}).resume()));
  const port = await listening(t, server);
  const probe = new Probe({
    ...{ address: `127.0.0.1:${port}`, host: "127.0.0.1", port, changed() {} },
    tls: async () => ({ ca: pair.ca, servername: "kubernetes" }),
  });
  t.after(() => probe.close());
  await waitFor(() => sockets.length === 1);
  for (let ticks = 0; ticks < 14; ticks++) probe.tick();
  await settle(20);
  assert.equal(sockets[0]?.closed, false);
  probe.tick();
  await waitFor(() => sockets[0]?.closed, { timeoutMs: 5_000, what: "the connection to be given up" });
  await waitFor(() => probe.reason === "it does not accept a connection");
  probe.tick();
  await waitFor(() => sockets.length === 2);
});

test("a server whose TLS settings cannot be read now is connected at a later tick", async (t) => {
  const sockets: Socket[] = [];
  const server = createServer((socket) => void sockets.push(socket.on("error", () => {}).resume()));
  const port = await listening(t, server);
  let failures = 1;
  const probe = new Probe({
    ...{ address: `127.0.0.1:${port}`, host: "127.0.0.1", port, changed() {} },
    async tls() {
      if (failures-- > 0) throw new Error("no such file");
      return { ca: pair.ca, servername: "kubernetes" };
    },
  });
  t.after(() => probe.close());
  await settle();
  assert.deepEqual([probe.state, probe.reason], ["dead", "no such file"]);
  probe.tick();
  await waitFor(() => sockets.length === 1, { timeoutMs: 5_000, what: "another attempt" });
});

test("a server is unready after its first refusal, dead after the third, and used again when it is ready", async (t) => {
  const { state, changes, probe, ping } = await start(t);
  await waitFor(() => probe.state === "ready");
  state.readyz = 500;
  const refused = async (): Promise<void> => {
    const asked = state.asked;
    while (state.asked === asked) await ping();
    await settle(20);
  };
  await refused();
  await waitFor(() => probe.state === "unready");
  assert.equal(probe.reason, "/readyz answers 500");
  await refused();
  assert.equal(probe.state, "unready", "the second one in a row");
  await refused();
  await waitFor(() => probe.state === "dead");
  state.readyz = 403;
  await refused();
  await ping();
  await waitFor(() => probe.state === "ready");
  assert.deepEqual(changes, ["ready", "unready", "dead", "ready"]);
});

test("settings of TLS that cannot be used make a server dead, with the reason, and are read again at the next tick", async (t) => {
  const { ca } = pair;
  const server = createSecureServer({ cert: pair.cert, key: pair.key });
  const port = await listening(t, server);
  let [cert, reads]: [string | undefined, number] = ["garbage", 0];
  const probe: Probe = new Probe({
    ...{ address: `127.0.0.1:${port}`, host: "127.0.0.1", port, changed: () => {} },
    async tls() {
      reads++;
      if (reads === 2) throw new Error("the file is gone");
      return { ca, servername: "kubernetes", ...(cert !== undefined && { cert, key: cert }) };
    },
  });
  t.after(() => probe.close());
  await settle();
  assert.equal(probe.state, "dead");
  assert.match(probe.reason, /PEM|no start line/);
  cert = undefined;
  probe.tick();
  await settle();
  assert.deepEqual([probe.state, probe.reason, reads], ["dead", "the file is gone", 2]);
  await waitFor(async () => {
    probe.tick();
    await settle(3);
    return probe.state === "ready";
  });
});

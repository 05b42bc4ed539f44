import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { type ClientHttp2Session, connect } from "node:http2";
import { connect as connectTo, createServer, type Socket } from "node:net";
import { join } from "node:path";
import { before, describe, type TestContext, test } from "node:test";
import { realClock } from "@coxswain/apimachinery/process/clock/clock";
import { newFakeClock } from "@coxswain/apimachinery/process/clock/fake-clock";
import { discardLogger } from "@coxswain/apimachinery/process/logging/logger";
import { newMetricsRegistry } from "@coxswain/apimachinery/process/metrics/registry";
import { listening } from "@coxswain/apimachinery/testing/listening";
import { pauseProcess } from "@coxswain/apimachinery/testing/pause-process";
import { type TestPair, testPair } from "@coxswain/apimachinery/testing/tls";
import { settle, waitFor } from "@coxswain/apimachinery/testing/wait-for";
import { newApiProxyMetrics } from "./metrics.ts";
import { ApiProxy } from "./proxy.ts";

interface SmallServer {
  readonly address: string;
  readonly process: ChildProcess;
}

let pair: TestPair;
before(async () => {
  pair = await testPair();
});

/** @param host an address of the loopback network, which is also what the server answers */
async function startServer(t: TestContext, host: string, { cert, key } = pair): Promise<SmallServer> {
  const script = join(import.meta.dirname, "testing", "small-server.ts");
  const child = spawn(process.execPath, ["-C", "cox-source", script, cert, key, host], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  t.after(() => void child.kill("SIGKILL"));
  const [line] = (await once(child.stdout, "data")) as [Buffer];
  return { address: `${host}:${line.toString().trim()}`, process: child };
}

async function startProxy(t: TestContext, servers: readonly SmallServer[]) {
  const registry = newMetricsRegistry();
  const proxy = new ApiProxy({
    port: 0,
    servers: servers.map(({ address }) => address),
    tls: async () => ({ ca: pair.ca, servername: "kubernetes" }),
    shuffle: (all) => [...all],
    metrics: newApiProxyMetrics(registry),
    ...{ clock: realClock, log: discardLogger },
  });
  t.after(() => proxy.close());
  const port = await proxy.start();
  return { proxy, client: newClient(t, port), port, shown: () => registry.render() };
}

/** Keeps one connection, and opens another one when it is closed, as the daemons' client does. */
function newClient(t: TestContext, port: number) {
  let session: ClientHttp2Session | undefined;
  t.after(() => session?.destroy());
  const open = (): ClientHttp2Session => {
    if (session === undefined || session.closed || session.destroyed) {
      session = connect(`https://127.0.0.1:${port}`, { ca: pair.ca, servername: "kubernetes" });
      session.on("error", () => {});
    }
    return session;
  };
  const get = (path = "/"): Promise<string> =>
    new Promise((resolve, reject) => {
      const request = open().request({ ":path": path });
      let body = "";
      request.setEncoding("utf8");
      request.on("data", (text: string) => (body += text));
      request.once("error", reject);
      request.once("close", () => (body === "" ? reject(new Error("lost")) : resolve(body)));
    });
  /** Asks until somebody else answers. @returns how long that took, in milliseconds */
  const untilAnsweredBy = async (host: string): Promise<number> => {
    const begin = performance.now();
    await waitFor(async () => (await get()) === host, { retry: () => true, what: `${host} to answer` });
    return performance.now() - begin;
  };
  return { get, untilAnsweredBy };
}

// They wait most of their time.
describe("the proxy", { concurrency: true }, () => {
  test("a server that is killed, and one that stands still, are left within the time of the pings", async (t) => {
    const servers = [await startServer(t, "127.0.0.1"), await startServer(t, "127.0.0.2"), await startServer(t, "127.0.0.3")];
    const { proxy, client } = await startProxy(t, servers);
    assert.equal(await client.get(), "127.0.0.1");
    const [first, second] = servers as [SmallServer, SmallServer];
    await waitFor(() => readyOf(proxy, 3));

    first.process.kill("SIGKILL");
    t.diagnostic(`killed: ${Math.round(await client.untilAnsweredBy("127.0.0.2"))} ms`);

    // Its kernel still accepts connections; they get no response, and none is closed.
    await pauseProcess(second.process.pid as number);
    t.diagnostic(`stopped: ${Math.round(await client.untilAnsweredBy("127.0.0.3"))} ms`);

    // Back, it is not used before it has proved itself, and then not either: connections stay together.
    second.process.kill("SIGCONT");
    await waitFor(() => readyOf(proxy, 2));
    assert.equal(await client.get(), "127.0.0.3");
  });

  test("connections stay when no other server is ready, and are used again when the server continues", async (t) => {
    const only = await startServer(t, "127.0.0.1");
    const { proxy, client } = await startProxy(t, [only]);
    assert.equal(await client.get(), "127.0.0.1");
    await pauseProcess(only.process.pid as number);
    await waitFor(() => readyOf(proxy, 0));
    assert.throws(() => proxy.check(), /no API server is available: 127\.0\.0\.1:\d+: it does not answer/);
    const waiting = client.get();
    only.process.kill("SIGCONT");
    assert.equal(await waiting, "127.0.0.1");
  });

  test("a server that says it is not ready gets no new connections, and later loses those it has", async (t) => {
    const servers = [await startServer(t, "127.0.0.1"), await startServer(t, "127.0.0.2")];
    const { proxy, client, port, shown } = await startProxy(t, servers);
    assert.equal(await client.get(), "127.0.0.1");
    await waitFor(() => readyOf(proxy, 2));
    servers[0]?.process.kill("SIGUSR1");
    await waitFor(() => readyOf(proxy, 1));
    assert.match(await shown(), /^coxswain_services_api_proxy_ready_servers 1$/m);
    assert.equal(await newClient(t, port).get(), "127.0.0.2");
    assert.equal(await client.get(), "127.0.0.1");
    await client.untilAnsweredBy("127.0.0.2");
  });

  test("a server that ends finishes what it was asked", async (t) => {
    const servers = [await startServer(t, "127.0.0.1"), await startServer(t, "127.0.0.2")];
    const { proxy, client } = await startProxy(t, servers);
    assert.equal(await client.get(), "127.0.0.1");
    await waitFor(() => readyOf(proxy, 2));
    const slow = client.get("/slow");
    const begun = client.get(); // the server has read both
    assert.equal(await begun, "127.0.0.1");
    servers[0]?.process.kill("SIGUSR2");
    await waitFor(() => readyOf(proxy, 1));
    assert.equal(await slow, "127.0.0.1");
    await client.untilAnsweredBy("127.0.0.2");
  });

  test("servers that are new in the list are used, and one that left it keeps its connections until it fails", async (t) => {
    const [first, second] = [await startServer(t, "127.0.0.1"), await startServer(t, "127.0.0.2")];
    const { proxy, client, port } = await startProxy(t, [first]);
    assert.equal(await client.get(), "127.0.0.1");
    proxy.setServers([second.address]);
    assert.equal(await newClient(t, port).get(), "127.0.0.2");
    assert.equal(await client.get(), "127.0.0.1");
    await waitFor(() => readyOf(proxy, 1));
    await pauseProcess(first.process.pid as number);
    await client.untilAnsweredBy("127.0.0.2");
  });

  test("a server with another certificate at an API server's address is not used", async (t) => {
    const right = await startServer(t, "127.0.0.2");
    const stranger = await startServer(t, "127.0.0.1", await testPair());
    const { proxy, client } = await startProxy(t, [stranger, right]);
    await waitFor(() => readyOf(proxy, 1));
    assert.equal(await client.get(), "127.0.0.2");
  });
});

function anIdleProxy(t: TestContext, servers: readonly string[], clock = newFakeClock()) {
  const registry = newMetricsRegistry();
  const proxy = new ApiProxy({
    port: 0,
    servers,
    tls: async () => ({}),
    shuffle: (all) => [...all],
    metrics: newApiProxyMetrics(registry),
    ...{ clock, log: discardLogger },
  });
  t.after(() => proxy.close());
  return { proxy, clock, shown: () => registry.render() };
}

test("servers that stay in the list keep their order, and new ones follow", (t) => {
  const { proxy } = anIdleProxy(t, ["127.0.0.1:1", "127.0.0.1:2", "127.0.0.1:3"]);
  proxy.setServers(["127.0.0.1:4", "127.0.0.1:3", "127.0.0.1:1"]);
  assert.deepEqual(proxy.servers, ["127.0.0.1:1", "127.0.0.1:3", "127.0.0.1:4"]);
});

test("a server that left the list is not probed after its last connection", async (t) => {
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.resume().once("close", () => sockets.delete(socket));
  });
  const address = `127.0.0.1:${await listening(t, server)}`;
  const { proxy, clock } = anIdleProxy(t, [address]);
  const client = connectTo(await proxy.start(), "127.0.0.1");
  await waitFor(() => sockets.size === 2, { what: "the probe and the client to be connected" });
  proxy.setServers(["127.0.0.1:1"]);
  client.destroy();
  await waitFor(() => sockets.size === 1, { what: "the client's connection to be closed" });
  const isEnded = async (): Promise<boolean> => {
    await clock.advance(200); // the proxy may learn of the end after the server does
    return sockets.size === 0;
  };
  await waitFor(isEnded, { what: "the probe to be closed" });
});

/** A server that answers each connection's first bytes with its name; TLS clients wait in vain. */
async function named(t: TestContext, name: string) {
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket.on("error", () => {}));
    socket.once("close", () => sockets.delete(socket));
    socket.on("data", (bytes: Buffer) => bytes.toString() === "?" && socket.write(name));
  });
  const address = `127.0.0.1:${await listening(t, server)}`;
  const stop = (): void => {
    server.close();
    for (const socket of sockets) socket.destroy();
  };
  return { address, sockets, stop };
}

/** A connection through a proxy. @returns who answered it; "closed" when nobody did */
function through(t: TestContext, port: number): { socket: Socket; answer: Promise<string> } {
  const socket = connectTo(port, "127.0.0.1", () => socket.write("?"));
  socket.on("error", () => {});
  t.after(() => void socket.destroy());
  const answer = new Promise<string>((resolve) => {
    socket.once("data", (bytes: Buffer) => resolve(bytes.toString()));
    socket.once("close", () => resolve("closed"));
  });
  return { socket, answer };
}

test("connections are counted by server, changes of the server only, and connections that no server takes", async (t) => {
  const [a, b] = [await named(t, "a"), await named(t, "b")];
  const { proxy, shown, clock } = anIdleProxy(t, [a.address, b.address]);
  proxy.check(); // nothing is known yet
  const port = await proxy.start();
  for (let i = 0; i < 2; i++) assert.equal(await through(t, port).answer, "a");
  const metric = async (name: string): Promise<string | undefined> =>
    (await shown())
      .split("\n")
      .find(
        (line) =>
          line.startsWith(`coxswain_services_api_proxy_${name} `) || line.startsWith(`coxswain_services_api_proxy_${name}{`),
      );
  const counted = async (server: string): Promise<string> =>
    new RegExp(`connections_total\\{server="${server}"\\} (\\d+)`).exec(await shown())?.[1] ?? "0";
  assert.deepEqual([await counted(a.address), (await metric("switches_total"))?.endsWith(" 0") ?? true], ["2", true]);
  a.stop();
  assert.equal(await through(t, port).answer, "b");
  assert.deepEqual([await counted(b.address), (await metric("switches_total"))?.split(" ")[1]], ["1", "1"]);
  b.stop();
  assert.equal(await through(t, port).answer, "closed");
  assert.equal(await counted("refused"), "1");
  assert.equal(clock.waiting, 1, "the ticks: no attempt leaves its deadline behind");
});

test("a server is probed while it has one of several connections left, although it left the list", async (t) => {
  const a = await named(t, "a");
  const { proxy, clock } = anIdleProxy(t, [a.address]);
  const port = await proxy.start();
  const [one, two] = [through(t, port), through(t, port)];
  assert.deepEqual([await one.answer, await two.answer], ["a", "a"]);
  await waitFor(() => a.sockets.size === 3, { what: "the probe's connection beside the two" });
  proxy.setServers(["127.0.0.1:1"]);
  one.socket.destroy();
  await waitFor(() => a.sockets.size === 2);
  await clock.advance(200);
  await settle(20);
  assert.equal(a.sockets.size, 2, "the second one and the probe");
});

test("a client that resets its connection leaves none at the server", async (t) => {
  const a = await named(t, "a");
  const { proxy } = anIdleProxy(t, [a.address]);
  const { socket, answer } = through(t, await proxy.start());
  assert.equal(await answer, "a");
  await waitFor(() => a.sockets.size === 2, { what: "the probe's connection beside the client's" });
  socket.resetAndDestroy();
  await waitFor(() => a.sockets.size === 1, { timeoutMs: 10_000, what: "the server's connection to end" });
});

test("a server that does not accept a connection within a second is passed over", async (t) => {
  const live = await named(t, "live");
  // A process that stands still and whose queue of connections is full.
  const script =
    "const s = require('net').createServer().listen({ port: 0, host: '127.0.0.1', backlog: 1 }, () => console.log(s.address().port))";
  const child = spawn(process.execPath, ["-e", script], { stdio: ["ignore", "pipe", "inherit"] });
  t.after(() => void child.kill("SIGKILL"));
  const [line] = (await once(child.stdout, "data")) as [Buffer];
  const stuck = Number(line.toString());
  await pauseProcess(child.pid as number);
  for (let i = 0; i < 4; i++) {
    const filler = connectTo(stuck, "127.0.0.1").on("error", () => {});
    t.after(() => void filler.destroy());
  }
  await settle(50);
  const { proxy, clock } = anIdleProxy(t, [`127.0.0.1:${stuck}`, live.address]);
  const port = await proxy.start();
  const { answer } = through(t, port);
  await settle(50);
  const first = await Promise.race([answer, Promise.resolve("waiting")]);
  assert.equal(first, "waiting");
  await clock.advance(1_000);
  assert.equal(await answer, "live");
});

test("the end of the proxy ends its probes and its clock", async (t) => {
  const a = await named(t, "a");
  const { proxy, clock } = anIdleProxy(t, [a.address]);
  await proxy.start();
  await waitFor(() => a.sockets.size === 1);
  proxy.close();
  assert.equal(clock.waiting, 0);
  await waitFor(() => a.sockets.size === 0);
});

const readyOf = (proxy: ApiProxy, wanted: number): boolean =>
  proxy.states().filter(({ state }) => state === "ready").length === wanted;

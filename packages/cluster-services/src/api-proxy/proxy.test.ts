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
import { waitFor } from "@coxswain/apimachinery/testing/wait-for";
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
  const proxy = new ApiProxy({
    port: 0,
    servers: servers.map(({ address }) => address),
    tls: async () => ({ ca: pair.ca, servername: "kubernetes" }),
    shuffle: (all) => [...all],
    metrics: newApiProxyMetrics(newMetricsRegistry()),
    ...{ clock: realClock, log: discardLogger },
  });
  t.after(() => proxy.close());
  const port = await proxy.start();
  return { proxy, client: newClient(t, port), port };
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
    const { proxy, client, port } = await startProxy(t, servers);
    assert.equal(await client.get(), "127.0.0.1");
    await waitFor(() => readyOf(proxy, 2));
    servers[0]?.process.kill("SIGUSR1");
    await waitFor(() => readyOf(proxy, 1));
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
  const proxy = new ApiProxy({
    port: 0,
    servers,
    tls: async () => ({}),
    shuffle: (all) => [...all],
    metrics: newApiProxyMetrics(newMetricsRegistry()),
    ...{ clock, log: discardLogger },
  });
  t.after(() => proxy.close());
  return { proxy, clock };
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
  await clock.advance(200);
  await waitFor(() => sockets.size === 0, { what: "the probe to be closed" });
});

const readyOf = (proxy: ApiProxy, wanted: number): boolean =>
  proxy.states().filter(({ state }) => state === "ready").length === wanted;

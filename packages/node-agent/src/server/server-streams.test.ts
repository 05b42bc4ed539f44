import assert from "node:assert/strict";
import { once } from "node:events";
import { request } from "node:http";
import { syncBuiltinESMExports } from "node:module";
import net, { connect, createServer, type Socket } from "node:net";
import { type TestContext, test } from "node:test";
import { connect as secureConnect } from "node:tls";
import { newCa } from "@coxswain/apimachinery/serving/certificates";
import { hasFields } from "@coxswain/apimachinery/testing/has-fields";
import { waitFor } from "@coxswain/apimachinery/testing/wait-for";
import { serveKubelet } from "./testing.ts";

test("an upgrade passes through to the runtime's streaming server, without the client's credentials", async (t) => {
  let head = "";
  const backend = createServer((socket) => {
    socket.once("data", (data) => {
      head = data.toString("latin1");
      socket.write("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n\r\n");
      socket.on("data", (more) => socket.write(`echo ${more}`));
      socket.on("end", () => socket.end());
    });
  });
  await new Promise<void>((resolve) => backend.listen(0, "127.0.0.1", resolve));
  t.after(() => void backend.close());
  const { port, runtime } = await serveKubelet(t);
  const requested: unknown[] = [];
  runtime.exec = async (connectClient) => {
    requested.push(connectClient);
    return `http://127.0.0.1:${(backend.address() as { port: number }).port}/exec/token1`;
  };
  const got = await new Promise<string>((resolve, reject) => {
    const sent = request({
      host: "127.0.0.1",
      port,
      method: "POST",
      path: "/exec/default/web/main?command=sh&command=-c&input=1&output=1&error=1&tty=1",
      headers: {
        authorization: "Bearer admin",
        cookie: "session=secret",
        connection: "Upgrade",
        upgrade: "SPDY/3.1",
        "x-stream-protocol-version": ["v4.channel.k8s.io", "v3.channel.k8s.io"],
      },
    });
    sent.on("upgrade", (response, socket) => {
      assert.equal(response.statusCode, 101);
      socket.once("data", (data: Buffer) => {
        socket.end();
        resolve(data.toString());
      });
      socket.write("bytes");
    });
    sent.on("error", reject);
    sent.end();
  });
  assert.equal(got, "echo bytes");
  assert.match(head, /^POST \/exec\/token1 HTTP\/1\.1\r\n/);
  assert.match(head, /x-stream-protocol-version: v4\.channel\.k8s\.io\r\nx-stream-protocol-version: v3\.channel\.k8s\.io\r\n/i);
  assert.doesNotMatch(head, /authorization|cookie/i);
  hasFields(requested, [{ cmd: ["sh", "-c"], stdin: true, stdout: true, stderr: false, tty: true }]);
});

for (const { name, host, path, query } of [
  { name: "at an IPv4 address", host: "127.0.0.2", path: "/attach/token1", query: "" },
  { name: "at an IPv6 address, with a query", host: "::1", path: "/attach", query: "?token=1" },
]) {
  test(`a client is attached by the runtime's streaming server ${name}, and may end its input before it has the output`, async (t) => {
    let head = "";
    const backend = createServer({ allowHalfOpen: true }, (socket) => {
      socket.once("data", (data) => {
        head = data.toString("latin1");
        socket.write("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n\r\n");
        socket.once("end", () => socket.end("the output"));
        socket.resume();
      });
    });
    const listening = await new Promise<boolean>((resolve) => {
      backend.once("error", () => resolve(false));
      backend.listen(0, host, () => resolve(true));
    });
    if (!listening) return t.skip(`no address ${host} here`);
    t.after(() => void backend.close());
    const { port, runtime } = await serveKubelet(t);
    const requested: unknown[] = [];
    runtime.attach = async (asked) => {
      requested.push(asked);
      const at = host.includes(":") ? `[${host}]` : host;
      return `http://${at}:${(backend.address() as { port: number }).port}${path}${query}`;
    };
    const client = connect(port, "127.0.0.1");
    t.after(() => void client.destroy());
    client.write("POST /attach/default/web/main?input=true&output=1 HTTP/1.1\r\nHost: node1\r\nAuthorization: Bearer admin\r\n");
    client.write("Connection: Upgrade\r\nUpgrade: SPDY/3.1\r\n\r\n");
    let received = "";
    client.setEncoding("latin1").on("data", (text: string) => {
      received += text;
    });
    await waitFor(() => received.includes("\r\n\r\n"), { what: "an answer" });
    assert.match(received, /^HTTP\/1\.1 101 /);
    client.end();
    await once(client, "close");
    assert.match(received, /the output$/);
    assert.ok(head.startsWith(`POST ${path}${query} HTTP/1.1\r\n`), head);
    const containerId = runtime.find("main")?.id;
    assert.deepEqual(requested, [{ containerId, stdin: true, stdout: true, stderr: false, tty: false }]);
  });
}

/** Asks for a stream; resolves to the status of the answer. */
const requestStream = (port: number) =>
  new Promise<number>((resolve, reject) => {
    const headers = { authorization: "Bearer admin", connection: "Upgrade", upgrade: "SPDY/3.1" };
    const path = "/exec/default/web/main?command=sh&output=1";
    request({ host: "127.0.0.1", port, method: "POST", path, headers, agent: false }, (response) => {
      response.resume();
      response.on("end", () => resolve(response.statusCode ?? 0));
    })
      .on("error", reject)
      .end();
  });

test("a streaming server that refuses is answered with 500, and no timer stays behind", async (t) => {
  const gone = createServer();
  await new Promise<void>((resolve) => gone.listen(0, "127.0.0.1", resolve));
  const { port: closed } = gone.address() as { port: number };
  await new Promise((resolve) => gone.close(resolve));
  const { port, runtime } = await serveKubelet(t);
  runtime.exec = async () => `http://127.0.0.1:${closed}/exec/token1`;
  const timers = () => process.getActiveResourcesInfo().filter((resource) => resource === "Timeout").length;
  const before = timers();
  for (let i = 0; i < 5; i++) assert.equal(await requestStream(port), 500);
  assert.ok(timers() < before + 5, `${before} timers before, ${timers()} after`);
});

/** A streaming server that upgrades every connection; the request of a client to it; and how many connections are open. */
async function streaming(t: TestContext) {
  const sockets = new Set<Socket>();
  let connections = 0;
  const backend = createServer((socket) => {
    connections++;
    sockets.add(socket);
    socket.on("error", () => {});
    socket.once("close", () => sockets.delete(socket));
    socket.once("data", () =>
      socket.write("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n\r\n"),
    );
  });
  await new Promise<void>((resolve) => backend.listen(0, "127.0.0.1", resolve));
  t.after(() => {
    for (const socket of sockets) socket.destroy();
    backend.close();
  });
  const { port, runtime, close } = await serveKubelet(t);
  const url = `http://127.0.0.1:${(backend.address() as { port: number }).port}/exec/token1`;
  const connectClient = (early = ""): Socket => {
    const client = connect(port, "127.0.0.1");
    client.on("error", () => {});
    client.write("POST /exec/default/web/main?command=sh&output=1 HTTP/1.1\r\nHost: node1\r\nAuthorization: Bearer admin\r\n");
    client.write(`Connection: Upgrade\r\nUpgrade: SPDY/3.1\r\n\r\n${early}`);
    return client;
  };
  return { runtime, url, connectClient, sockets, connections: () => connections, close };
}

test("what a client sends together with its request reaches the runtime", async (t) => {
  const { runtime, connectClient } = await streaming(t);
  const received: Buffer[] = [];
  const backend = createServer((socket) => void socket.on("data", (chunk: Buffer) => received.push(chunk)));
  await new Promise<void>((resolve) => backend.listen(0, "127.0.0.1", resolve));
  t.after(() => void backend.close());
  runtime.exec = async () => `http://127.0.0.1:${(backend.address() as { port: number }).port}/exec/token1`;
  const client = connectClient("early bytes");
  t.after(() => void client.destroy());
  await waitFor(() => Buffer.concat(received).toString("latin1").endsWith("\r\n\r\nearly bytes"), { what: "the bytes" });
});

test("a client that disconnects before its stream is connected leaves no connection to the runtime open", async (t) => {
  const { runtime, url, connectClient, sockets, connections } = await streaming(t);
  const requested = Promise.withResolvers<void>();
  const located = Promise.withResolvers<string>();
  runtime.exec = () => {
    requested.resolve();
    return located.promise;
  };
  const client = connectClient();
  await requested.promise;
  const open = () => process.getActiveResourcesInfo().filter((resource) => resource === "TCPSocketWrap").length;
  const before = open();
  client.resetAndDestroy();
  await waitFor(() => open() <= before - 2, { what: "both ends to be closed" });
  located.resolve(url);
  await waitFor(() => connections() === 1 && sockets.size === 0);
});

test("a proxied stream is closed on both sides when one side fails, and never for being idle", async (t) => {
  const { runtime, url, connectClient, sockets } = await streaming(t);
  runtime.exec = async () => url;
  const dialled: Socket[] = [];
  const dial = net.connect;
  net.connect = ((...args: Parameters<typeof dial>) => {
    const socket = dial(...args);
    if (typeof args[0] === "object" && url.includes(`:${(args[0] as { port?: number }).port}/`)) dialled.push(socket);
    return socket;
  }) as typeof dial;
  syncBuiltinESMExports();
  t.after(() => {
    net.connect = dial;
    syncBuiltinESMExports();
  });
  for (const breaks of ["client", "runtime"] as const) {
    const client = connectClient();
    assert.match(String((await once(client, "data"))[0]), /^HTTP\/1\.1 101 /);
    assert.equal(dialled.at(-1)?.timeout, 0, "the time limit of connecting is over");
    const closed = once(client, "close");
    if (breaks === "client") client.resetAndDestroy();
    else for (const socket of sockets) socket.resetAndDestroy();
    await closed;
    await waitFor(() => sockets.size === 0);
  }
});

test("a server that closes ends its streams at the runtime, too", async (t) => {
  const { runtime, url, connectClient, sockets, close } = await streaming(t);
  runtime.exec = async () => url;
  await once(connectClient(), "data");
  await close();
  await waitFor(() => sockets.size === 0, { what: "the runtime's connection to be closed" });
});

const mb = 1024 * 1024;

for (const name of ["with TLS", "without TLS"]) {
  test(`what the runtime sends arrives unchanged ${name}, and is not read ahead of a slow client`, async (t) => {
    const sizes = [1, 16 * 1024, 16 * 1024 + 1, 256 * 1024, 256 * 1024 + 1, 3, ...Array.from({ length: 63 }, () => mb), 7];
    const sent = Buffer.concat(sizes.map((size, index) => Buffer.alloc(size, `${index} of ${size};`)));
    let written = 0;
    const backend = createServer((socket) => {
      const next = (): void => {
        const size = sizes.shift();
        if (size === undefined) return void socket.end();
        socket.write(sent.subarray(written, written + size), () => setImmediate(next));
        written += size;
      };
      socket.once("data", () => {
        socket.write("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n\r\n");
        next();
      });
    });
    await new Promise<void>((resolve) => backend.listen(0, "127.0.0.1", resolve));
    t.after(() => void backend.close());
    const pair = name === "with TLS" ? await newCa({ commonName: "node1" }) : undefined;
    const { port, runtime } = await serveKubelet(t, pair ? { tls: { cert: pair.certPem, key: pair.keyPem } } : {});
    runtime.exec = async () => `http://127.0.0.1:${(backend.address() as { port: number }).port}/exec/token1`;
    const to = { host: "127.0.0.1", port };
    const client = pair === undefined ? connect(to) : secureConnect({ ...to, rejectUnauthorized: false });
    t.after(() => void client.destroy());
    client.write("POST /exec/default/web/main?command=sh&output=1 HTTP/1.1\r\nHost: node1\r\nAuthorization: Bearer admin\r\n");
    client.write("Connection: Upgrade\r\nUpgrade: SPDY/3.1\r\n\r\n");
    let before = -1;
    const isHeldBack = (): boolean => {
      const isStill = written === before && written > mb;
      before = written;
      return isStill;
    };
    await waitFor(isHeldBack, { what: "the runtime to be held back", intervalMs: 100 });
    assert.ok(written < 48 * mb, `${written} bytes`);
    const received = Buffer.concat(await Array.fromAsync(client as AsyncIterable<Buffer>));
    assert.ok(received.subarray(received.indexOf("\r\n\r\n") + 4).equals(sent));
  });
}

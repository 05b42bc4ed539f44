import assert from "node:assert/strict";
import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { connect as connectHttp2 } from "node:http2";
import { type AddressInfo, connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { promisify } from "node:util";
import type { Service } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import type { Ingress } from "@coxswain/apimachinery/objects/schema/kinds/networking/v1";
import { discardLogger } from "@coxswain/apimachinery/process/logging/logger";
import { newMetricsRegistry } from "@coxswain/apimachinery/process/metrics/registry";
import { newCa, newCertificate } from "@coxswain/apimachinery/serving/certificates";
import { waitFor } from "@coxswain/apimachinery/testing/wait-for";
import { WebSocket, WebSocketServer } from "ws";
import { anEndpoint, aService, aSlice } from "../testing/objects.ts";
import { Backends } from "./backends.ts";
import { Certificates } from "./certificates.ts";
import { newIngressMetrics } from "./metrics.ts";
import { newRouteTable } from "./routes.ts";
import { type IngressServer, startIngressServer } from "./server.ts";
import { anIngress } from "./testing.ts";

const folder = mkdtempSync(join(tmpdir(), "cox-ingress-"));
const caFile = join(folder, "ca.crt");
const registry = newMetricsRegistry();
const servers: Server[] = [];
const signal = AbortSignal.timeout(600_000);
let server: IngressServer;
let certificates: Certificates;
/** What `certificates` reads, by name. */
const secrets = new Map<string, { cert: string; key: string; version: number }>();
/** Endpoints by Service. */
const endpoints = new Map<string, readonly { address: string; port: number }[]>();
let newSecret: (name: string, host: string, version?: number) => Promise<void>;

async function serve(answer: (request: IncomingMessage, response: ServerResponse) => void): Promise<number> {
  const backend = createServer(answer);
  servers.push(backend);
  await new Promise<void>((resolve) => backend.listen(0, "127.0.0.1", resolve));
  return (backend.address() as AddressInfo).port;
}

const local = (port: number) => [{ address: "127.0.0.1", port }];
/** A closed port: that of a server that has ended. */
async function closedPort(): Promise<number> {
  const port = await serve(() => {});
  servers.pop()?.close();
  return port;
}

const rules: readonly [host: string, service: string][] = [
  ["web.test", "web"],
  ["*.wild.test", "web"],
  ["empty.test", "empty"],
  ["absent.test", "absent"],
  ["dead.test", "dead"],
  ["half.test", "half"],
  ["slow.test", "slow"],
  ["broken.test", "broken"],
  ["sink.test", "sink"],
  ["flood.test", "flood"],
  ["ws.test", "ws"],
];
const ingress: Ingress = anIngress(
  "a",
  rules.map(([host, service]) => ({ host, paths: [["Prefix", "/", service]] })),
  {
    spec: {
      tls: [
        { hosts: ["web.test"], secretName: "web" },
        { hosts: ["*.wild.test"], secretName: "wild" },
      ],
    },
  },
);

let sunk = 0;
let flooded = 0;
let requests = 0;

before(async () => {
  const ca = await newCa({ commonName: "test" });
  writeFileSync(caFile, ca.certPem);
  newSecret = async (name, host, version = 1) => {
    const { certPem, keyPem } = await newCertificate({
      commonName: `${host} ${version}`,
      dnsNames: [host],
      usages: ["server"],
      ca,
    });
    secrets.set(name, { cert: certPem, key: keyPem, version });
  };
  await newSecret("web", "web.test");
  await newSecret("wild", "*.wild.test");
  const echo = await serve((request, response) => {
    requests++;
    response.setHeader("set-cookie", ["a=1", "b=2"]);
    response.end(JSON.stringify({ method: request.method, url: request.url, headers: request.headers }));
  });
  endpoints.set("web", local(echo));
  endpoints.set("empty", []);
  const dead = await closedPort();
  endpoints.set("dead", local(dead));
  endpoints.set("half", [...local(dead), ...local(echo)]);
  endpoints.set("slow", local(await serve(() => {})));
  const broken = (_: IncomingMessage, response: ServerResponse): void => {
    response.writeHead(200, { "content-length": 100 });
    response.write("half", () => response.destroy());
  };
  endpoints.set("broken", local(await serve(broken)));
  const sink = (request: IncomingMessage, response: ServerResponse): void => {
    request.on("data", (chunk: Buffer) => (sunk += chunk.length));
    request.on("end", () => response.end(String(sunk)));
  };
  endpoints.set("sink", local(await serve(sink)));
  const flood = (_: IncomingMessage, response: ServerResponse): void => {
    const chunk = Buffer.alloc(64 << 10);
    const more = (): void => {
      for (;;) {
        flooded += chunk.length;
        if (!response.write(chunk)) return void response.once("drain", more);
      }
    };
    more();
  };
  endpoints.set("flood", local(await serve(flood)));
  const ws = await serve((_, response) => response.writeHead(403).end("no"));
  const sockets = new WebSocketServer({ noServer: true });
  servers.at(-1)?.on("upgrade", (request: IncomingMessage, socket, head) => {
    if (request.url === "/no") return void socket.end("HTTP/1.1 403 Forbidden\r\ncontent-length: 2\r\n\r\nno");
    sockets.handleUpgrade(request, socket, head, (client) => client.on("message", (data) => client.send(`echo ${data}`)));
  });
  endpoints.set("ws", local(ws));

  const client = {
    get: async (_: unknown, { name }: { name: string }) => {
      const { cert = "", key = "", version = 0 } = secrets.get(name) ?? {};
      const base64 = (text: string): string => Buffer.from(text).toString("base64");
      return { metadata: { resourceVersion: String(version) }, data: { "tls.crt": base64(cert), "tls.key": base64(key) } };
    },
  };
  certificates = new Certificates({ client: client as never, log: discardLogger });
  assert.equal(certificates.want([ingress]), true);
  await certificates.load(signal);
  const other = await newCertificate({ commonName: "other", dnsNames: ["other.invalid"], usages: ["server"], ca });
  const routes = newRouteTable([ingress]);
  server = await startIngressServer({
    address: "127.0.0.1",
    httpPort: 0,
    httpsPort: 0,
    routes: () => routes,
    backends: new Backends({
      services: {
        get: (key: string): Service | undefined => (endpoints.has(key.slice(8)) ? aService(key.slice(8)) : undefined),
      } as never,
      slicesOf: (key) =>
        (endpoints.get(key.slice(8)) ?? []).map(({ address, port }) => aSlice(key.slice(8), [anEndpoint(address, "n1")], port)),
      isRefused: () => false,
    }),
    contextOf: (name) => certificates.contextOf(name),
    defaultCertificate: other,
    connectTimeoutMs: 1_000,
    responseTimeoutMs: 500,
    idleTimeoutMs: 60_000,
    mostBodyBytes: 0,
    connectionsPerClient: 20,
    metrics: newIngressMetrics(registry),
    log: discardLogger,
  });
});
after(async () => {
  await server.close(0);
  for (const one of servers) {
    one.closeAllConnections();
    one.close();
  }
  rmSync(folder, { recursive: true });
});

/** Runs curl. @returns body, and status and protocol version as `code/version` */
async function curl(url: string, ...args: string[]): Promise<{ body: string; code: number; version: string }> {
  const { hostname, protocol } = new URL(url);
  const port = protocol === "https:" ? server.httpsPort : server.httpPort;
  const target = ["--connect-to", `${hostname}::127.0.0.1:${port}`, "--cacert", caFile];
  const format = "\n%{http_code} %{http_version}";
  const { stdout } = await promisify(execFile)("curl", ["-sS", "-m", "20", "-w", format, ...target, ...args, url]);
  const at = stdout.lastIndexOf("\n");
  const [code = "", version = ""] = stdout.slice(at + 1).split(" ");
  return { body: stdout.slice(0, at), code: Number(code), version };
}

/** Sends bytes. @returns what comes back until the connection ends */
function raw(bytes: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect(server.httpPort, "127.0.0.1", () => socket.write(bytes));
    let text = "";
    socket.setEncoding("latin1").on("data", (chunk: string) => (text += chunk));
    socket.on("close", () => resolve(text)).on("error", reject);
    socket.setTimeout(20_000, () => socket.destroy(new Error(`no end; ${text}`)));
  });
}

describe("requests", () => {
  test("HTTP/1.1 and HTTP/2 reach the backend with the client's address and host", async () => {
    for (const [url, version, args] of [
      ["http://web.test/a?b=%20c", "1.1", ["-H", "X-Forwarded-For: 1.2.3.4"]],
      ["https://web.test/a?b=%20c", "2", ["-H", "X-Forwarded-For: 1.2.3.4"]],
      ["https://x.wild.test/a?b=%20c", "1.1", ["--http1.1"]],
    ] as const) {
      const answer = await curl(url, ...args);
      assert.equal(answer.version, version);
      const { method, url: path, headers } = JSON.parse(answer.body);
      assert.deepEqual({ method, path }, { method: "GET", path: "/a?b=%20c" });
      const protocol = new URL(url).protocol.slice(0, -1);
      assert.partialDeepStrictEqual(headers, {
        host: new URL(url).host,
        "x-forwarded-for": "127.0.0.1",
        "x-forwarded-proto": protocol,
        "x-forwarded-port": String(protocol === "https" ? server.httpsPort : server.httpPort),
      });
    }
  });

  test("a request that offers HTTP/2 without TLS is answered in HTTP/1.1", async () => {
    assert.equal((await curl("http://web.test/", "--http2")).code, 200);
  });

  test("each cookie of a response arrives, and HEAD has no body", async () => {
    assert.match((await curl("https://web.test/", "-i")).body, /set-cookie: a=1\r\nset-cookie: b=2/);
    assert.equal((await curl("http://web.test/", "-I")).code, 200);
  });

  for (const [host, code] of [
    ["other.test", 404],
    ["empty.test", 503],
    ["absent.test", 503],
    ["dead.test", 502],
    ["slow.test", 504],
  ] as const)
    test(`${host} gets ${code}, over both protocols`, async () => {
      assert.equal((await curl(`http://${host}/`)).code, code);
      assert.equal((await curl(`https://${host}/`, "-k")).code, code);
    });

  test("a GET is sent to another endpoint when the connection to one fails, a POST is not", async () => {
    const codes = [];
    for (let i = 0; i < 4; i++) codes.push((await curl("http://half.test/")).code);
    assert.deepEqual(codes, [200, 200, 200, 200]);
    const posts = [];
    for (let i = 0; i < 4; i++) posts.push((await curl("http://half.test/", "-d", "x")).code);
    assert.deepEqual(posts.sort(), [200, 200, 502, 502]);
    assert.match(await registry.render(), /coxswain_ingress_retries_total [1-9]/);
  });

  test("a truncated response is not treated as complete", async () => {
    await assert.rejects(curl("http://broken.test/"), { code: 18 });
    await assert.rejects(curl("https://broken.test/", "-k"), { code: 92 });
  });
});

describe("streams", () => {
  test("a large body, with and without Content-Length, arrives complete", async () => {
    const file = join(folder, "large");
    writeFileSync(file, Buffer.alloc(20 << 20));
    for (const args of [[], ["-H", "Transfer-Encoding: chunked"], ["-H", "Expect: 100-continue"]]) {
      sunk = 0;
      assert.equal((await curl("http://sink.test/", "-T", file, ...args)).body, String(20 << 20));
    }
    sunk = 0;
    assert.equal((await curl("https://sink.test/", "-k", "-T", file)).body, String(20 << 20));
  });

  test("a client of HTTP/2 may send 1 MiB of a body, and 4 MiB in all, before the backend has taken them", async () => {
    const client = connectHttp2(`https://127.0.0.1:${server.httpsPort}`, { rejectUnauthorized: false });
    try {
      await once(client, "remoteSettings");
      assert.equal(client.remoteSettings.initialWindowSize, 1 << 20);
      await waitFor(() => client.state.remoteWindowSize === 4 << 20, { timeoutMs: 10_000, what: "the connection's window" });
    } finally {
      client.destroy();
    }
  });

  test("a backend waits for a client that does not read, and ends with it", async () => {
    flooded = 0;
    const socket = connect(server.httpPort, "127.0.0.1");
    socket.pause();
    socket.write("GET / HTTP/1.1\r\nHost: flood.test\r\n\r\n");
    // What sockets and streams hold.
    let before = -1;
    await waitFor(
      async () => {
        const isStill = flooded > 0 && flooded === before;
        before = flooded;
        return isStill;
      },
      { intervalMs: 500, timeoutMs: 30_000, what: "the backend to wait" },
    );
    assert.ok(flooded < 64 << 20, `${flooded} bytes`);
    socket.destroy();
  });
});

describe("TLS", () => {
  const subject = (name: string): Promise<string> =>
    new Promise((resolve, reject) => {
      const args = [
        "s_client",
        "-connect",
        `127.0.0.1:${server.httpsPort}`,
        ...(name === "" ? ["-noservername"] : ["-servername", name]),
      ];
      const child = spawn("openssl", args, { stdio: ["pipe", "pipe", "ignore"] });
      let text = "";
      child.stdout.on("data", (chunk: Buffer) => (text += chunk.toString()));
      child.on("close", () => resolve(/^subject=CN = (.*)$/m.exec(text)?.[1] ?? text)).on("error", reject);
      child.stdin.end();
    });

  test("the certificate is the one for the name that the client asks for", async () => {
    assert.equal(await subject("web.test"), "web.test 1");
    assert.equal(await subject("WEB.test"), "web.test 1");
    assert.equal(await subject("x.wild.test"), "*.wild.test 1");
    assert.equal(await subject("x.y.wild.test"), "other");
    assert.equal(await subject(""), "other");
  });

  test("a renewed certificate is used for new connections, and those that are open go on", async () => {
    const socket = new WebSocket(`wss://127.0.0.1:${server.httpsPort}/`, {
      headers: { host: "ws.test" },
      rejectUnauthorized: false,
    });
    await new Promise((resolve, reject) => socket.once("open", resolve).once("error", reject));
    await newSecret("web", "web.test", 2);
    await certificates.load(signal);
    assert.equal(await subject("web.test"), "web.test 2");
    socket.send("still here");
    const [data] = await new Promise<unknown[]>((resolve) => socket.once("message", (...all) => resolve(all)));
    assert.equal(String(data), "echo still here");
    socket.close();
  });

  test("a Secret without a usable certificate is reported, and the other certificates stay in use", async () => {
    secrets.set("wild", { cert: "x", key: "y", version: 9 });
    await certificates.load(signal);
    assert.match(certificates.problemOf("default/wild") ?? "", /^the Secret default\/wild has no usable certificate: /);
    assert.equal(await subject("x.wild.test"), "other");
    assert.equal(await subject("web.test"), "web.test 2");
  });
});

describe("WebSockets", () => {
  test("messages go both ways, over plain connections too", async () => {
    const socket = new WebSocket(`ws://127.0.0.1:${server.httpPort}/x`, { headers: { host: "ws.test" } });
    socket.once("open", () => socket.send("hello"));
    const data = await new Promise((resolve, reject) => socket.once("message", resolve).once("error", reject));
    assert.equal(String(data), "echo hello");
    socket.close();
    await new Promise((resolve) => socket.once("close", resolve));
  });

  for (const [host, path, code] of [
    ["ws.test", "/no", 403],
    ["other.test", "/", 404],
    ["dead.test", "/", 502],
    ["slow.test", "/", 504],
  ] as const)
    test(`${host}${path} is refused with ${code}`, async () => {
      const socket = new WebSocket(`ws://127.0.0.1:${server.httpPort}${path}`, { headers: { host } });
      const err = await new Promise<Error>((resolve) => socket.once("error", resolve));
      assert.match(err.message, new RegExp(`${code}$`));
    });
});

describe("requests that could be read as two", () => {
  const smuggled = "GET /smuggled HTTP/1.1\r\nHost: web.test\r\n\r\n";
  for (const [what, head] of [
    ["a length and chunks", "Content-Length: 4\r\nTransfer-Encoding: chunked"],
    ["two lengths", "Content-Length: 4\r\nContent-Length: 0"],
    ["a list of lengths", "Content-Length: 0, 4"],
    ["a length with a sign", "Content-Length: +0"],
    ["another last coding than chunked", "Transfer-Encoding: chunked, identity"],
    ["a header with a space before the colon", "Transfer-Encoding : chunked"],
    ["a folded header", "Transfer-Encoding:\r\n chunked"],
    ["a bare line feed", "X: 1\nTransfer-Encoding: chunked"],
  ])
    test(`${what} is refused`, async () => {
      requests = 0;
      const text = await raw(`POST / HTTP/1.1\r\nHost: web.test\r\nConnection: close\r\n${head}\r\n\r\n0\r\n\r\n${smuggled}`);
      assert.match(text, /^HTTP\/1\.1 400 /);
      assert.equal(text.match(/HTTP\/1\.1/g)?.length, 1);
      assert.equal(requests, 0);
    });

  test("two hosts are refused", async () => {
    requests = 0;
    assert.match(
      await raw("GET / HTTP/1.1\r\nHost: web.test\r\nHost: other.test\r\nConnection: close\r\n\r\n"),
      /^HTTP\/1\.1 400 /,
    );
    assert.equal(requests, 0);
  });

  test("a body before the switch to a WebSocket", async () => {
    const upgrade = "Connection: Upgrade\r\nUpgrade: websocket\r\nContent-Length: 3";
    assert.match(await raw(`GET / HTTP/1.1\r\nHost: ws.test\r\n${upgrade}\r\n\r\nabc`), /^HTTP\/1\.1 400 /);
  });

  test("the host of an absolute target counts", async () => {
    const text = await raw("GET http://web.test/x HTTP/1.1\r\nHost: other.test\r\nConnection: close\r\n\r\n");
    assert.match(text, /"url":"\/x","headers":\{"host":"web\.test"/);
  });

  test("a request to connect elsewhere ends", async () => {
    assert.doesNotMatch(await raw("CONNECT web.test:80 HTTP/1.1\r\nHost: web.test\r\n\r\n"), / 200 /);
  });
});

describe("limits", () => {
  test("headers beyond 32 KiB are refused, over both protocols", async () => {
    const large = `X-Large: ${"x".repeat(40_000)}`;
    assert.equal((await curl("http://web.test/", "-H", large)).code, 431);
    const answer = await curl("https://web.test/", "-k", "-H", large).catch(({ code }) => ({ code }));
    assert.ok([431, 92, 16, 56].includes(answer.code as number), String(answer.code));
  });

  test("a client has no more than its connections", async () => {
    const sockets = Array.from({ length: 25 }, () => connect(server.httpPort, "127.0.0.1"));
    let closed = 0;
    for (const socket of sockets) socket.on("close", () => closed++).on("error", () => {});
    await waitFor(() => closed >= 5, { timeoutMs: 20_000, what: "connections to be refused" });
    for (const socket of sockets) socket.destroy();
    await waitFor(async () => (await curl("http://web.test/").catch(() => undefined))?.code === 200, {
      timeoutMs: 20_000,
      what: "connections to be taken again",
    });
  });
});

import assert from "node:assert/strict";
import { once } from "node:events";
import http, { type IncomingMessage } from "node:http";
import http2 from "node:http2";
import https from "node:https";
import { createServer, connect as netConnect, type Server, type Socket } from "node:net";
import { type TestContext, test } from "node:test";
import { asyncListener } from "../testing/async-listener.ts";
import { listening } from "../testing/listening.ts";
import { testPair } from "../testing/tls.ts";
import { newClient } from "./client.ts";
import { parseKubeconfig } from "./kubeconfig.ts";
import { connectOverProxy, proxyFromEnvironment } from "./proxy.ts";

const pair = await testPair();

for (const [server, env, want] of [
  ["https://api:6443", { HTTPS_PROXY: "http://p:3128" }, "http://p:3128/"],
  ["https://api:6443", { https_proxy: "p:3128" }, "http://p:3128/"],
  ["https://api:6443", { HTTPS_PROXY: "", https_proxy: "p:3128" }, "http://p:3128/"],
  ["https://api:6443", { HTTPS_PROXY: "upper", https_proxy: "lower" }, "http://upper/"],
  ["https://api", { HTTPS_PROXY: "p", NO_PROXY: "api", no_proxy: "other" }, undefined],
  ["https://localhost.", { HTTPS_PROXY: "p" }, undefined],
  ["https://api.example.com.", { HTTPS_PROXY: "p", NO_PROXY: "example.com" }, undefined],
  ["https://10.0.0.8", { HTTPS_PROXY: "p", NO_PROXY: "10.0.0.7, 10.0.0.8" }, undefined],
  ["https://api:6443", { HTTP_PROXY: "http://p:3128" }, undefined],
  ["http://api:8080", { HTTP_PROXY: "socks5://p" }, "socks5://p"],
  ["https://localhost:6443", { HTTPS_PROXY: "p" }, undefined],
  ["https://127.0.1.1:6443", { HTTPS_PROXY: "p" }, undefined],
  ["https://[::1]:6443", { HTTPS_PROXY: "p" }, undefined],
  ["https://api.example.com", { HTTPS_PROXY: "p", NO_PROXY: "*" }, undefined],
  ["https://api.example.com", { HTTPS_PROXY: "p", NO_PROXY: "other, Example.com" }, undefined],
  ["https://example.com", { HTTPS_PROXY: "p", NO_PROXY: ".example.com" }, "http://p/"],
  ["https://api.example.com", { HTTPS_PROXY: "p", NO_PROXY: "*.example.com" }, undefined],
  ["https://notexample.com", { HTTPS_PROXY: "p", no_proxy: "example.com" }, "http://p/"],
  ["https://api.example.com:6443", { HTTPS_PROXY: "p", NO_PROXY: "example.com:443" }, "http://p/"],
  ["https://api.example.com", { HTTPS_PROXY: "p", NO_PROXY: "example.com:443" }, undefined],
  ["https://10.0.0.7:6443", { HTTPS_PROXY: "p", NO_PROXY: "10.0.0.0/24" }, undefined],
  ["https://10.0.1.7:6443", { HTTPS_PROXY: "p", NO_PROXY: "10.0.0.0/24,10.0.1.8" }, "http://p/"],
  ["https://[fd00::7]:6443", { HTTPS_PROXY: "p", NO_PROXY: "fd00::/8" }, undefined],
  ["https://[fd00::7]:6443", { HTTPS_PROXY: "p", NO_PROXY: "[fd00::7]:6443" }, undefined],
  ["https://api:6443", { HTTPS_PROXY: "p", NO_PROXY: ":6443, *." }, "http://p/"],
  ["https://api:6443", { HTTPS_PROXY: "ftp://p" }, "http://ftp//p"],
] as const)
  test(`${server} with ${JSON.stringify(env)} is reached over ${want ?? "no proxy"}`, () =>
    assert.equal(proxyFromEnvironment(new URL(server), env)?.href, want));

test("a proxy of the environment that is no address is an error", () =>
  assert.throws(() => proxyFromEnvironment(new URL("https://api"), { HTTPS_PROXY: "a b:c" }), {
    message: 'invalid proxy address "a b:c"',
  }));

for (const [proxy, message] of [
  [
    "ftp://p",
    /^Error: invalid configuration: invalid 'proxy-url' "ftp:\/\/p" for cluster "c": unsupported scheme "ftp", must be http, /,
  ],
  ["::", /: could not parse: ::$/],
] as const)
  test(`refuses the proxy ${proxy}`, () => {
    const text = `{clusters: [{name: c, cluster: {server: "https://h", proxy-url: "${proxy}"}}], contexts: [{name: m, context: {cluster: c}}], current-context: m}`;
    assert.throws(() => parseKubeconfig(text), message);
  });

const startApi = (t: TestContext): Promise<number> =>
  listening(
    t,
    http2.createSecureServer(pair, (_, response) => response.end('{"reached":true}')),
  );

/** A proxy that accepts one user and connects everything to one port. */
function connectProxy(server: http.Server, port: number, requested: string[]): http.Server {
  return server.on("connect", ({ url = "", headers }: IncomingMessage, socket: Socket) => {
    requested.push(url);
    const isKnown = headers["proxy-authorization"] === `Basic ${Buffer.from("u:p@").toString("base64")}`;
    if (!isKnown) return socket.end("HTTP/1.1 407 Proxy Authentication Required\r\n\r\n");
    const connection = netConnect(port, "127.0.0.1", () => {
      socket.write("HTTP/1.1 200 OK\r\n\r\n");
      socket.pipe(connection).pipe(socket);
    });
    connection.on("error", () => {});
  });
}

/** A SOCKS5 proxy of that kind; it writes its responses byte by byte. */
function socksProxy(port: number, requested: string[]): Server {
  const say = (socket: Socket, ...bytes: number[]): void => {
    for (const byte of bytes) socket.write(Buffer.from([byte]));
  };
  return createServer(
    asyncListener(async (socket) => {
      const [[, , ...methods]] = (await once(socket, "data")) as [number[]];
      if (!methods.includes(2)) return say(socket, 5, 0xff);
      say(socket, 5, 2);
      const [credentials] = (await once(socket, "data")) as [Buffer];
      const isKnown = credentials.equals(Buffer.from("\x01\x01u\x02p@"));
      say(socket, 1, isKnown ? 0 : 1);
      if (!isKnown) return;
      const [request] = (await once(socket, "data")) as [Buffer];
      requested.push(`${request.subarray(5, -2)}:${request.readUInt16BE(request.length - 2)}`);
      if (request.includes("unreachable")) return say(socket, 5, 4, 0, 1);
      say(socket, 5, 0, 0, 1, 127, 0, 0, 1, 0, 80);
      const connection = netConnect(port, "127.0.0.1");
      socket.pipe(connection.on("error", () => {})).pipe(socket);
    }),
  );
}

for (const { name, start, scheme, refused } of [
  { name: "HTTP", scheme: "http", start: http.createServer, refused: /Proxy Authentication Required/ },
  { name: "HTTP over TLS", scheme: "https", start: () => https.createServer(pair), refused: /Proxy Authentication Required/ },
  { name: "SOCKS", scheme: "socks5", start: undefined, refused: /authentication/ },
])
  test(`a client reaches its server over a proxy that speaks ${name}, and reports one that refuses it`, async (t) => {
    const requested: string[] = [];
    const api = await startApi(t);
    const proxy = await listening(
      t,
      start === undefined ? socksProxy(api, requested) : connectProxy(start() as http.Server, api, requested),
    );
    const send = async (user: string, host = "kubernetes"): Promise<string> => {
      const proxyUrl = `${scheme}://${user}127.0.0.1:${proxy}`;
      const client = newClient({ host: `https://${host}:6443`, serverName: "kubernetes", ca: pair.ca, proxyUrl, qps: -1 });
      t.after(() => client.close());
      return String((await client.raw("GET", "/")).body);
    };
    assert.equal(await send("u:p%40@"), '{"reached":true}');
    assert.deepEqual(requested, ["kubernetes:6443"]);
    await assert.rejects(send(""), refused);
    await assert.rejects(send("u:wrong@"), refused);
    if (scheme === "socks5") await assert.rejects(send("u:p%40@", "unreachable"), /socks connect: host unreachable/);
  });

test("without a configured proxy that of the environment is used", async (t) => {
  const requested: string[] = [];
  const proxy = await listening(t, connectProxy(http.createServer(), await startApi(t), requested));
  const before = process.env["HTTPS_PROXY"];
  t.after(() => {
    if (before === undefined) delete process.env["HTTPS_PROXY"];
    else process.env["HTTPS_PROXY"] = before;
  });
  process.env["HTTPS_PROXY"] = `http://u:p%40@127.0.0.1:${proxy}`;
  const client = newClient({ host: "https://kubernetes:6443", ca: pair.ca, qps: -1 });
  t.after(() => client.close());
  assert.equal(String((await client.raw("GET", "/")).body), '{"reached":true}');
  assert.deepEqual(requested, ["kubernetes:6443"]);
});

test("a proxy over TLS whose certificate is not trusted is asked for nothing, unless verification is off", async (t) => {
  const requested: string[] = [];
  const proxy = await listening(t, connectProxy(https.createServer(pair), await startApi(t), requested));
  const { ca } = await testPair();
  const proxyUrl = `https://u:p%40@127.0.0.1:${proxy}`;
  const send = (insecure: boolean): Promise<unknown> => {
    const client = newClient({ host: "https://kubernetes:6443", ca, proxyUrl, insecure, qps: -1 });
    t.after(() => client.close());
    return client.raw("GET", "/");
  };
  await assert.rejects(send(false));
  assert.deepEqual(requested, []);
  await send(true);
  assert.deepEqual(requested, ["kubernetes:6443"]);
});

for (const [scheme, port] of [
  ["http", 80],
  ["https", 443],
  ["socks5", 1080],
] as const)
  test(`a proxy of ${scheme} that names no port is reached at ${port}`, async () => {
    const connect = connectOverProxy(new URL(`${scheme}://127.87.5.3`), async () => ({}));
    await assert.rejects(connect("kubernetes", 6443), new RegExp(`ECONNREFUSED 127\\.87\\.5\\.3:${port}$`));
  });

test("a connection to a proxy that refuses is closed", async (t) => {
  const closed = Promise.withResolvers<void>();
  const server = createServer((socket) => {
    socket.on("error", () => {}).once("close", () => closed.resolve());
    socket.once("data", () => socket.write(Buffer.from([5, 0xff])));
  });
  const proxyUrl = `socks5://127.0.0.1:${await listening(t, server)}`;
  const client = newClient({ host: "https://kubernetes:6443", ca: pair.ca, proxyUrl, qps: -1 });
  t.after(() => client.close());
  await assert.rejects(client.raw("GET", "/"), /no acceptable authentication methods/);
  await closed.promise;
});

test("a proxy and the target behind it have 30 s together to be reached", async (t) => {
  let limit = new AbortController();
  const timeout = t.mock.method(AbortSignal, "timeout", () => limit.signal);
  const server = createServer((socket) => socket.on("error", () => {}).once("data", () => limit.abort()));
  const port = await listening(t, server);
  for (const scheme of ["http", "socks5"]) {
    limit = new AbortController();
    const connect = connectOverProxy(new URL(`${scheme}://127.0.0.1:${port}`), async () => ({}));
    await assert.rejects(connect("kubernetes", 6443), {
      message: `cannot connect over the proxy 127.0.0.1:${port}: dial tcp kubernetes:6443: i/o timeout, after 30 s`,
    });
    await assert.rejects(connect("kubernetes", 6443), {
      message: `proxyconnect tcp: dial tcp 127.0.0.1:${port}: i/o timeout, after 30 s`,
    });
  }
  assert.deepEqual(
    timeout.mock.calls.map((call) => call.arguments),
    Array(4).fill([30_000]),
  );
});

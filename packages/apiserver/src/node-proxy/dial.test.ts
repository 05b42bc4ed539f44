/** Which addresses nodes, pods and names may resolve to, and that the checked address is the one dialed. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { connect, createServer as createTcpServer, isIPv4, Socket } from "node:net";
import { networkInterfaces } from "node:os";
import { type TestContext, test } from "node:test";
import { createServer } from "node:tls";
import { newCa, newCertificate } from "@coxswain/apimachinery/serving/certificates";
import type { Exchange } from "@coxswain/apimachinery/serving/exchange";
import { listening } from "@coxswain/apimachinery/testing/listening";
import type { ConnectTarget } from "../registry/generic/resource.ts";
import { answerOf, forwardedFor, isCredential, openRequest, openSocket, resolveTarget } from "./dial.ts";
import { newNodeProxy } from "./upstream.ts";

const log = { v: () => undefined, warn: () => undefined } as never;

function target(url: string, parts: Partial<ConnectTarget> = {}): ConnectTarget {
  return { url: new URL(url), toNode: true, as: "text", ...parts };
}

/** A tunnel that leads where it is told to. */
async function connected(host: string, port: number): Promise<Socket> {
  const socket = connect(port, host);
  await once(socket, "connect");
  return socket;
}

/** A resolver that returns the addresses in order and counts lookups. */
function resolver(...addresses: string[]) {
  const answers = { requested: 0, lookup: async () => ({ address: addresses[answers.requested++] ?? "192.0.2.9" }) };
  return answers;
}

for (const { name, as, addresses, want } of [
  { name: "a proxy", as: "proxy", addresses: ["10.1.2.3", "127.0.0.1"], want: "10.1.2.3" },
  { name: "a log", as: "text", addresses: ["10.1.2.3", "169.254.169.254"], want: "10.1.2.3" },
  { name: "an exec", as: "tunnel", addresses: ["10.1.2.3", "::1"], want: "10.1.2.3" },
  { name: "a proxy that is led here", as: "proxy", addresses: ["127.0.0.1", "10.1.2.3"], want: undefined },
  { name: "a proxy that is led to the metadata service", as: "proxy", addresses: ["169.254.169.254"], want: undefined },
  { name: "a log that is led to the metadata service", as: "text", addresses: ["::ffff:169.254.169.254"], want: undefined },
] as const) {
  test(`${name}: a name is looked up once, and what was looked at is dialled`, async () => {
    const names = resolver(...addresses);
    const attempt = resolveTarget(target("https://node.example:10250/x", { as }), { log, lookup: names.lookup });
    if (want === undefined) return assert.rejects(attempt, /address not allowed/);
    const { address, tls } = await attempt;
    assert.equal(address, want);
    assert.equal(tls.servername, "node.example", "the name that the certificate has to be for");
    assert.equal(names.requested, 1);
  });
}

for (const [url, port, secure] of [
  ["https://10.1.2.3/x", 443, true],
  ["http://10.1.2.3/x", 80, false],
  ["https://10.1.2.3:10250/x", 10250, true],
  ["http://10.1.2.3:443/x", 443, false],
] as const) {
  test(`${url} is dialled at port ${port}, ${secure ? "with" : "without"} TLS`, async () => {
    const dial = await resolveTarget(target(url), { log });
    assert.deepEqual([dial.address, dial.port, dial.secure, dial.timeoutMs], ["10.1.2.3", port, secure, 5_000]);
  });
}

test("a name that does not resolve here is resolved behind a tunnel, and is an error otherwise", async () => {
  const nobody = async (): Promise<never> => {
    throw new Error("ENOTFOUND");
  };
  const tunnel = async (): Promise<never> => assert.fail("nothing is dialled yet");
  const at = (as: ConnectTarget["as"], config: object) =>
    resolveTarget(target("https://node.example:10250/x", { as }), { log, lookup: nobody, ...config });
  for (const as of ["text", "tunnel"] as const) {
    const { address, tls } = await at(as, { tunnel });
    assert.deepEqual([address, tls.servername], ["node.example", "node.example"]);
    await assert.rejects(at(as, {}), /dial tcp: lookup node.example: no such host/);
  }
  await assert.rejects(at("proxy", { tunnel }), /dial tcp: lookup node.example: no such host/);
});

const ownPort = (): number => 6443;
/** Non-loopback addresses of this machine; may be empty on CI. */
const own = Object.values(networkInterfaces())
  .flatMap((entries) => entries ?? [])
  .map(({ address }) => address)
  .find((address) => isIPv4(address) && !address.startsWith("127."));
for (const { as, host, port, want } of [
  { as: "text", host: "127.0.0.1", port: 10250, want: true },
  { as: "tunnel", host: "[::1]", port: 10250, want: true },
  { as: "text", host: "127.0.0.1", port: 6443, want: false },
  { as: "tunnel", host: "[::1]", port: 6443, want: false },
  { as: "tunnel", host: "[::ffff:127.0.0.1]", port: 6443, want: false },
  ...(own === undefined
    ? []
    : ([
        { as: "proxy", host: own, port: 10250, want: true },
        { as: "proxy", host: own, port: 6443, want: false },
        { as: "text", host: own, port: 6443, want: false },
        { as: "text", host: `[::ffff:${own}]`, port: 6443, want: false },
      ] as const)),
  { as: "proxy", host: "10.1.2.3", port: 6443, want: true },
  ...(["text", "tunnel", "proxy"] as const).flatMap((as) =>
    ["0.0.0.0", "[::]", "169.254.169.254", "[::ffff:169.254.169.254]", "[fe80::1]", "224.0.0.1", "[ff02::1]"].map((host) => ({
      as,
      host,
      port: 10250,
      want: false,
    })),
  ),
] as const) {
  test(`${as} to ${host}:${port} is ${want ? "let through" : "refused"} by a server at :6443`, async () => {
    const attempt = resolveTarget(target(`https://${host}:${port}/x`, { as }), { log, ownPort });
    if (want) await attempt;
    else await assert.rejects(attempt, /address not allowed/);
  });
}

/** A kubelet that records the client certificate and the request. */
async function kubelet(t: TestContext, ca: { certPem: string; keyPem: string }, ips: string[]) {
  const pair = await newCertificate({ commonName: "node", ips, usages: ["server"], ca });
  const heard = { text: "", port: 0 };
  const server = createServer(
    { cert: pair.certPem, key: pair.keyPem, requestCert: true, rejectUnauthorized: false },
    (socket) => {
      socket.on("error", () => {});
      socket.on("data", (data: Buffer) => {
        heard.text += data.toString();
        socket.end("HTTP/1.1 302 Found\r\nlocation: https://127.0.0.1:1/elsewhere\r\ncontent-length: 0\r\n\r\n");
      });
    },
  );
  heard.port = await listening(t, server);
  return heard;
}

for (const { name, ips, isOther } of [
  { name: "of another authority", ips: ["127.0.0.1"], isOther: true },
  { name: "for another address", ips: ["10.0.0.7"], isOther: false },
]) {
  test(`a kubelet with a certificate ${name} receives no request`, async (t) => {
    const [ca, other] = [await newCa({ commonName: "ca" }), await newCa({ commonName: "other" })];
    const heard = await kubelet(t, isOther ? other : ca, ips);
    const to = target(`https://127.0.0.1:${heard.port}/x`);
    const dial = await resolveTarget(to, { log, certificateAuthority: ca.certPem });
    const request = openRequest(dial, to, { method: "GET", path: "/x", headers: {} });
    request.end("secret");
    await assert.rejects(answerOf(request, dial), /certificate/);
    await assert.rejects(openSocket(dial, to), /x509: certificate/);
    assert.equal(heard.text, "");
  });
}

const certificate = { cert: "cert", key: "key" };
for (const { name, parts, config, want } of [
  {
    name: "a node's kubelet is shown who we are, and verified",
    parts: {},
    config: { clientCertificate: certificate, certificateAuthority: "ca" },
    want: { ...certificate, ca: "ca", rejectUnauthorized: true },
  },
  {
    name: "a kubelet that is not to be verified is shown who we are",
    parts: { skipVerify: true },
    config: { clientCertificate: certificate, certificateAuthority: "ca" },
    want: { ...certificate, rejectUnauthorized: false },
  },
  {
    name: "without an authority for kubelets nothing is verified",
    parts: {},
    config: { clientCertificate: certificate },
    want: { ...certificate, rejectUnauthorized: false },
  },
  {
    name: "a pod or a service never learns who we are",
    parts: { toNode: false, as: "proxy" },
    config: { clientCertificate: certificate, certificateAuthority: "ca" },
    want: { rejectUnauthorized: false },
  },
] as const) {
  test(name, async () => {
    const { tls } = await resolveTarget(target("https://10.0.0.7:10250/x", parts), { log, ...config });
    assert.deepEqual(tls, { ...want, servername: "" });
  });
}

test("a kubelet's certificate may be for several addresses, and --kubelet-timeout ends with the connection's set-up", async (t) => {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  const ca = await newCa({ commonName: "ca" });
  const heard = await kubelet(t, ca, ["10.0.0.7", "127.0.0.1"]);
  const to = target(`https://127.0.0.1:${heard.port}/x`);
  const dial = await resolveTarget(to, { log, certificateAuthority: ca.certPem });
  const socket = await openSocket(dial, to);
  t.mock.timers.tick(dial.timeoutMs);
  assert.equal(socket.destroyed, false);
  socket.destroy();
  assert.equal(heard.text, "");
  assert.equal((await answerOf(openRequest(dial, to, { method: "GET", path: "/x", headers: {} }).end(), dial)).statusCode, 302);
});

for (const { secure, tunnel } of [
  { secure: true, tunnel: undefined },
  { secure: false, tunnel: undefined },
  { secure: false, tunnel: connected },
]) {
  const way = `${secure ? "with TLS" : "in plain text"}${tunnel === undefined ? "" : " over a tunnel"}`;
  test(`an answer may take longer than --kubelet-timeout, once it is connected ${way}`, async (t) => {
    t.mock.timers.enable({ apis: ["setTimeout"] });
    const requested = Promise.withResolvers<Socket>();
    const hear = (socket: Socket): void => void socket.on("error", () => {}).once("data", () => requested.resolve(socket));
    const pair = await newCa({ commonName: "node" });
    const server = secure ? createServer({ cert: pair.certPem, key: pair.keyPem }, hear) : createTcpServer(hear);
    const to = target(`${secure ? "https" : "http"}://127.0.0.1:${await listening(t, server)}/x`);
    const dial = await resolveTarget(to, { log, tunnel });
    const answered = answerOf(openRequest(dial, to, { method: "GET", path: "/x", headers: {} }).end(), dial);
    answered.catch(() => {}); // observed below
    const socket = await requested.promise;
    t.mock.timers.tick(dial.timeoutMs);
    socket.end("HTTP/1.1 204 No Content\r\n\r\n");
    assert.equal((await answered).statusCode, 204);
  });
}

test("a kubelet that connects and then says nothing of TLS is left after --kubelet-timeout, also for an exec", async (t) => {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  const reached = Promise.withResolvers<Socket>();
  const server = createTcpServer((socket) => void socket.on("error", () => {}).once("data", () => reached.resolve(socket)));
  const port = await listening(t, server);
  const to = target(`https://127.0.0.1:${port}/exec`, { as: "tunnel" });
  const opened = openSocket(await resolveTarget(to, { log, dialTimeoutMs: 7_000 }), to);
  const left = assert.rejects(opened, { message: `error dialing backend: dial tcp 127.0.0.1:${port}: i/o timeout` });
  const socket = await reached.promise;
  const closed = once(socket, "close");
  t.mock.timers.tick(7_000);
  await left;
  await closed;
});

test("a redirect of a kubelet is not followed: a log that is elsewhere is an error", async (t) => {
  const ca = await newCa({ commonName: "ca" });
  const heard = await kubelet(t, ca, ["127.0.0.1"]);
  const exchange = { headers: {}, method: "GET" };
  const ctx = { exchange, signal: new AbortController().signal } as never;
  const forward = newNodeProxy({ log, certificateAuthority: ca.certPem }).forward;
  const pod = { group: "", resource: "pods", name: "web-0" };
  const refusal = { code: 302 };
  await assert.rejects(forward(ctx, target(`https://127.0.0.1:${heard.port}/containerLogs/x`), pod), refusal);
  assert.match(heard.text, /^GET \/containerLogs\/x HTTP\/1\.1\r\n/);
});

test("a server that does not verify its kubelets says so at its start", () => {
  const said: string[] = [];
  const telling = { warn: (message: string) => said.push(message) } as never;
  const clientCertificate = { cert: "", key: "" };
  newNodeProxy({ log: telling, clientCertificate, certificateAuthority: "ca" });
  assert.deepEqual(said, []);
  newNodeProxy({ log: telling, clientCertificate });
  assert.match(said.join(), /--kubelet-certificate-authority/);
});

test("who forwarded a request before is kept, in order", () => {
  const forwarded = (earlier: string | string[] | undefined) =>
    forwardedFor({ headers: { "x-forwarded-for": earlier }, remoteAddress: "c" } as unknown as Exchange); // cast: all that is read
  assert.deepEqual([forwarded(undefined), forwarded("a"), forwarded(["a", "b"])], ["c", "a, c", "a, b, c"]);
});

for (const [name, is] of [
  ["authorization", true],
  ["proxy-authorization", true],
  ["impersonate-extra-a", true],
  ["x-remote-group", true],
  ["x-remotely", false],
  ["cookie", false],
] as const) {
  test(`the header ${name} is ${is ? "" : "not "}a credential for this server`, () => assert.equal(isCredential(name), is));
}

test("an upgraded connection is kept alive, and one whose tunnel fails or hangs says where it should have led", async (t) => {
  const kept = t.mock.method(Socket.prototype, "setKeepAlive");
  const silent = createTcpServer((socket) => void socket.on("error", () => {}));
  const port = await listening(t, silent);
  const to = target(`http://127.0.0.1:${port}/exec`, { as: "tunnel" });
  (await openSocket(await resolveTarget(to, { log }), to)).destroy();
  assert.deepEqual(kept.mock.calls.at(-1)?.arguments, [true, 30_000]);
  const away = async (): Promise<never> => {
    throw new Error("no agent");
  };
  await assert.rejects(openSocket(await resolveTarget(to, { log, tunnel: away }), to), {
    ...{ code: 500, message: "error dialing backend: no agent" },
  });
  t.mock.timers.enable({ apis: ["setTimeout"] });
  const far = target("https://[2001:db8::7]:10250/exec", { as: "tunnel" });
  const tunnel = () => connected("127.0.0.1", port);
  const opened = openSocket(await resolveTarget(far, { log, tunnel, dialTimeoutMs: 7_000 }), far);
  const left = assert.rejects(opened, { message: "error dialing backend: dial tcp [2001:db8::7]:10250: i/o timeout" });
  const [reached] = (await once(silent, "connection")) as [Socket];
  await once(reached, "data");
  t.mock.timers.tick(7_000);
  await left;
});

import assert from "node:assert/strict";
import { getEventListeners, once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import http from "node:http";
import http2 from "node:http2";
import https from "node:https";
import { type AddressInfo, connect as connectTcp, createServer, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Readable } from "node:stream";
import { type TestContext, test } from "node:test";
import { setImmediate as immediate } from "node:timers/promises";
import tls, { type TLSSocket } from "node:tls";
import { newFakeClock } from "../process/clock/fake-clock.ts";
import { newCa } from "../serving/certificates.ts";
import { testPair } from "../testing/tls.ts";
import { waitFor } from "../testing/wait-for.ts";
import { connectHost } from "./dial.ts";
import { loadKubeconfig } from "./kubeconfig.ts";
import { newTransport, readBody } from "./transport.ts";

const pair = await testPair();

/** An HTTP/1.1 server that answers `/held` after `release`, and all other paths at once. */
async function aServer(t: TestContext, scheme: "http" | "https") {
  const held: http.ServerResponse[] = [];
  const connections = new Set<Socket>();
  const answer = (request: http.IncomingMessage, response: http.ServerResponse): void => {
    if (request.url === "/held") held.push(response);
    else response.end("ok");
  };
  const listener = scheme === "http" ? http.createServer(answer) : https.createServer(pair, answer);
  listener.keepAliveTimeout = 0; // an idle connection is the client's to close
  listener.on(scheme === "http" ? "connection" : "secureConnection", (socket: Socket) => {
    connections.add(socket);
    socket.once("close", () => connections.delete(socket));
  });
  await new Promise<void>((resolve) => listener.listen(0, "127.0.0.1", resolve));
  t.after(() => {
    listener.closeAllConnections();
    listener.close();
  });
  const config = { host: `${scheme}://127.0.0.1:${(listener.address() as AddressInfo).port}`, insecure: true };
  const transport = newTransport(config, { clock: newFakeClock() });
  t.after(() => transport.close());
  const get = async (path: string): Promise<string> =>
    (await readBody(await transport.request({ method: "GET", path, headers: {} }))).toString();
  return { transport, connections, get, held };
}

for (const scheme of ["http", "https"] as const) {
  test(`${scheme}: new connections replace idle ones at once, and busy ones after their requests`, async (t) => {
    const { transport, connections, get, held } = await aServer(t, scheme);
    const slow = get("/held");
    await waitFor(() => held.length === 1, { what: "the request" });
    assert.equal(await get("/"), "ok");
    // The dial that only negotiates HTTP/1.1 is no connection of a request.
    await waitFor(() => connections.size === 2, { what: "one busy connection and one idle" });
    transport.reconnect();
    await waitFor(() => connections.size === 1, { what: "the end of the idle one" });
    held[0]?.end("late");
    assert.equal(await slow, "late");
    await waitFor(() => connections.size === 0, { what: "the end of the busy one" });
    assert.equal(await get("/"), "ok");
    const [kept] = connections;
    assert.equal(await get("/"), "ok");
    assert.deepEqual([...connections], [kept], "the new one is kept for the next request");
  });

  test(`${scheme}: closing aborts requests on earlier connections`, async (t) => {
    const { transport, connections, get, held } = await aServer(t, scheme);
    const slow = assert.rejects(get("/held"));
    await waitFor(() => held.length === 1, { what: "the request" });
    transport.reconnect();
    transport.close();
    await slow;
    await waitFor(() => connections.size === 0, { what: "the end of the connection" });
  });
}

test("an answered request over HTTP/1.1 leaves no listener on its signal", async (t) => {
  const { transport } = await aServer(t, "http");
  const { signal } = new AbortController();
  const read = async () => readBody(await transport.request({ method: "GET", path: "/", headers: {}, signal }));
  for (let i = 0; i < 2; i++) assert.equal((await read()).toString(), "ok");
  await waitFor(() => getEventListeners(signal, "abort").length === 0, { what: "the end of the listeners", timeoutMs: 10_000 });
});

test("a request over HTTP/1.1 that fails leaves no listener on its signal", async (t) => {
  const transport = newTransport({ host: "http://127.0.0.1:1" }, { clock: newFakeClock() });
  t.after(() => transport.close());
  const { signal } = new AbortController();
  await assert.rejects(transport.request({ method: "GET", path: "/", headers: {}, signal }), { code: "ECONNREFUSED" });
  assert.equal(getEventListeners(signal, "abort").length, 0);
});

test("a connection to a server that sends no HTTP/2 settings is given up and closed after 30 s", async (t) => {
  const silent = tls.createServer({ ...pair, ALPNProtocols: ["h2"] });
  silent.listen(0, "127.0.0.1");
  await once(silent, "listening");
  t.after(() => silent.close());
  t.mock.timers.enable({ apis: ["setTimeout"] });
  const host = `https://127.0.0.1:${(silent.address() as AddressInfo).port}`;
  const transport = newTransport({ host, insecure: true }, { clock: newFakeClock() });
  t.after(() => transport.close());
  const accepted = once(silent, "secureConnection");
  const refused = assert.rejects(transport.request({ method: "GET", path: "/", headers: {} }), /the server sends no settings/);
  const [socket] = (await accepted) as [TLSSocket];
  const closed = once(socket.on("error", () => {}).resume(), "close");
  for (let i = 0; i < 20; i++) await immediate();
  t.mock.timers.tick(30_000);
  await refused;
  await closed;
});

test("the connect timeout does not limit an established connection", async (t) => {
  const listener = https.createServer(pair, (_, response) => response.end("ok"));
  await new Promise<void>((resolve) => listener.listen(0, "127.0.0.1", resolve));
  t.after(() => {
    listener.closeAllConnections();
    listener.close();
  });
  const url = new URL(`https://127.0.0.1:${(listener.address() as AddressInfo).port}`);
  t.mock.timers.enable({ apis: ["setTimeout"] });
  const socket = await connectHost(url, { rejectUnauthorized: false }, undefined);
  t.after(() => socket.destroy());
  t.mock.timers.tick(60_000);
  assert.equal(socket.destroyed, false);
});

test("a host that refuses leaves no timer", async () => {
  const timers = (): number => process.getActiveResourcesInfo().filter((name) => name === "Timeout").length;
  const before = timers();
  await assert.rejects(connectHost(new URL("https://127.0.0.1:1"), {}, undefined), { code: "ECONNREFUSED" });
  assert.equal(timers(), before);
});

test("over a connection that is there already no time for its acceptance is counted", async (t) => {
  const listener = tls.createServer(pair);
  listener.listen(0, "127.0.0.1");
  await once(listener, "listening");
  t.after(() => listener.close());
  const { port } = listener.address() as AddressInfo;
  t.mock.timers.enable({ apis: ["setTimeout"] });
  const over = async (): Promise<Socket> => {
    const socket = connectTcp(port, "127.0.0.1");
    await once(socket, "connect");
    return socket;
  };
  const socket = await connectHost(new URL(`https://127.0.0.1:${port}`), { rejectUnauthorized: false }, over, 1_000);
  t.after(() => void socket.destroy());
  t.mock.timers.tick(60_000);
  assert.equal(socket.destroyed, false);
});

test("the length of a body over HTTP/1.1 is that of its bytes", async (t) => {
  const listener = http.createServer((request, response) => request.pipe(response));
  await new Promise<void>((resolve) => listener.listen(0, "127.0.0.1", resolve));
  t.after(() => void listener.close());
  const host = `http://127.0.0.1:${(listener.address() as AddressInfo).port}`;
  const transport = newTransport({ host }, { clock: newFakeClock() });
  t.after(() => transport.close());
  const answer = await transport.request({ method: "POST", path: "/", headers: {}, body: "grün" });
  assert.equal((await readBody(answer)).toString(), "grün");
});

for (const { name, parts } of [
  { name: "before its first part", parts: [] },
  { name: "after its first part", parts: ["a"] },
]) {
  test(`a body that closes ${name} without an end is cut off`, async () => {
    const body = new Readable({ read() {} });
    for (const part of parts) body.push(part);
    const reading = assert.rejects(readBody({ status: 200, headers: {}, body }), { code: "CONNECTION_LOST" });
    await immediate();
    body.destroy();
    await reading;
  });
}

test("the timeout for a host that does not accept is shorter than for one that accepted and is slow", async (t) => {
  const silent = createServer();
  silent.listen(0, "127.0.0.1");
  await once(silent, "listening");
  t.after(() => silent.close());
  const url = new URL(`https://127.0.0.1:${(silent.address() as AddressInfo).port}`);
  t.mock.timers.enable({ apis: ["setTimeout"] });
  const early = connectHost(url, {}, undefined, 1_000);
  t.mock.timers.tick(1_000);
  await assert.rejects(early, { code: "ETIMEDOUT" });
  const late = connectHost(url, {}, undefined, 1_000);
  late.catch(() => {});
  await once(silent, "connection");
  await immediate();
  t.mock.timers.tick(29_000);
  assert.equal(await Promise.race([late.catch(() => "given up"), immediate("open")]), "open");
  t.mock.timers.tick(1_000);
  await assert.rejects(late, { code: "ETIMEDOUT" });
});

test("a certificate renewed in a kubeconfig is used within a minute without a restart", async (t) => {
  const folder = await mkdtemp(join(tmpdir(), "transport-"));
  t.after(() => rm(folder, { recursive: true }));
  const listener = https.createServer({ ...pair, requestCert: true, rejectUnauthorized: false }, (request, response) =>
    response.end((request.socket as TLSSocket).getPeerCertificate().subject.CN),
  );
  await new Promise<void>((resolve) => listener.listen(0, "127.0.0.1", resolve));
  t.after(() => {
    listener.closeAllConnections();
    listener.close();
  });
  const base64 = (text: string): string => Buffer.from(text).toString("base64");
  const file = join(folder, "config");
  const write = async (name: string): Promise<void> => {
    const { cert, key } = await testPair(name);
    const server = `https://127.0.0.1:${(listener.address() as AddressInfo).port}`;
    const user = { "client-certificate-data": base64(cert), "client-key-data": base64(key) };
    const config = {
      clusters: [{ name: "c", cluster: { server, "certificate-authority-data": base64(pair.ca) } }],
      users: [{ name: "u", user }],
      contexts: [{ name: "x", context: { cluster: "c", user: "u" } }],
      "current-context": "x",
    };
    await writeFile(file, JSON.stringify(config));
  };
  await write("first");
  const clock = newFakeClock();
  const transport = newTransport(await loadKubeconfig(file), { clock });
  t.after(() => transport.close());
  const send = async (): Promise<string> =>
    (await readBody(await transport.request({ method: "GET", path: "/", headers: {} }))).toString();
  assert.equal(await send(), "first");
  await write("second");
  assert.equal(await send(), "first");
  await clock.advance(60_000);
  await waitFor(async () => (await send()) === "second", { what: "the renewed certificate to be used" });
});

/** A server that answers with the name of the client's certificate, and a client with certificate files. */
async function withFiles(t: TestContext, allowHTTP1: boolean) {
  const folder = await mkdtemp(join(tmpdir(), "transport-"));
  t.after(() => rm(folder, { recursive: true }));
  const options = { ...pair, requestCert: true, rejectUnauthorized: false };
  const named = (socket: unknown): string => String((socket as TLSSocket).getPeerCertificate().subject?.CN);
  const listener = allowHTTP1
    ? https.createServer(options, (request, response) => response.end(named(request.socket)))
    : http2.createSecureServer(options, (request, response) => response.end(named(request.stream.session?.socket)));
  const sessions = new Set<http2.ServerHttp2Session>();
  listener.on("session", (session: http2.ServerHttp2Session) => void sessions.add(session));
  await new Promise<void>((resolve) => listener.listen(0, "127.0.0.1", resolve));
  t.after(() => {
    for (const session of sessions) session.destroy();
    if ("closeAllConnections" in listener) listener.closeAllConnections();
    listener.close();
  });
  const [certFile, keyFile, caFile] = [join(folder, "c.crt"), join(folder, "c.key"), join(folder, "ca.crt")];
  const write = async (name: string, days?: number): Promise<void> => {
    const { cert, key } = days === undefined ? await testPair(name) : await expired(name);
    await writeFile(certFile, cert);
    await writeFile(keyFile, key);
  };
  const expired = async (commonName: string): Promise<{ cert: string; key: string }> => {
    const { certPem: cert, keyPem: key } = await newCa({ commonName, validDays: -1 });
    return { cert, key };
  };
  await write("first");
  const clock = newFakeClock(Date.now());
  const host = `https://127.0.0.1:${(listener.address() as AddressInfo).port}`;
  await writeFile(caFile, pair.ca);
  const transport = newTransport({ host, caFile, certFile, keyFile }, { clock });
  t.after(() => transport.close());
  const send = async (): Promise<string> =>
    (await readBody(await transport.request({ method: "GET", path: "/", headers: {} }))).toString();
  return { clock, transport, send, write, certFile, caFile };
}

test("certificate files are read once a minute: a renewed pair is used, one that cannot be read changes nothing", async (t) => {
  const { clock, send, write, certFile } = await withFiles(t, true);
  assert.equal(await send(), "first");
  await rm(certFile);
  await clock.advance(60_000);
  assert.equal(await send(), "first");
  await write("second");
  assert.equal(await send(), "first");
  await clock.advance(60_000);
  await waitFor(async () => (await send()) === "second", { what: "the renewed certificate to be used" });
});

test("another authority in its file is used for new connections within a minute", async (t) => {
  // HTTP/2 would give up the connection for its unanswered pings.
  const { clock, send, caFile } = await withFiles(t, true);
  assert.equal(await send(), "first");
  const { ca } = await testPair();
  await writeFile(caFile, ca);
  assert.equal(await send(), "first", "over the connection that is open");
  await clock.advance(60_000);
  const isRefused = (): Promise<boolean> =>
    send().then(
      () => false,
      () => true,
    );
  await waitFor(isRefused, { what: "the other authority, which has not signed the server's certificate" });
});

for (const protocol of ["HTTP/1.1", "HTTP/2"]) {
  test(`${protocol}: nothing looks at the certificate files any more once the client is closed`, async (t) => {
    const { clock, transport, send } = await withFiles(t, protocol === "HTTP/1.1");
    await send();
    assert.ok(clock.waiting > 0);
    transport.reconnect();
    await waitFor(() => clock.waiting === 0, { what: "the end of the retired connection's timers" });
    await send();
    transport.close();
    await waitFor(() => clock.waiting === 0, { what: "the end of all timers" });
  });
}

test("a client certificate that has expired is named, a valid one is not", async (t) => {
  const { transport, send, write } = await withFiles(t, true);
  assert.equal(transport.certificateFault?.(), undefined, "none was used yet");
  await send();
  assert.equal(transport.certificateFault?.(), undefined);
  await write("old", -1);
  transport.reconnect();
  await send();
  assert.match(transport.certificateFault?.() ?? "", /expired/);
});

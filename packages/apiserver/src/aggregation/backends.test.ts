import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer as createHttpsServer } from "node:https";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { PassThrough } from "node:stream";
import { type TestContext, test } from "node:test";
import { newCa, newCertificate } from "@coxswain/apimachinery/serving/certificates";
import { settle } from "@coxswain/apimachinery/testing/wait-for";
import { newBackends, send } from "./backends.ts";

async function tunnel(host: string, port: number): Promise<Socket> {
  const socket = connect(port, host);
  await once(socket, "connect");
  return socket;
}

for (const { name, tunnel: dialer } of [
  { name: "directly", tunnel: undefined },
  { name: "over a tunnel", tunnel },
]) {
  test(`a server that never speaks TLS is given up after 30 s, queried ${name}`, async (t) => {
    const server = createServer().listen(0, "127.0.0.1");
    await once(server, "listening");
    t.after(() => void server.close());
    const { port } = server.address() as AddressInfo;
    const spec = { groupPriorityMinimum: 1, versionPriority: 1, service: { namespace: "a", name: "b", port } };
    const backend = newBackends({ current: undefined }, dialer).of({ metadata: { name: "v1.example.com" }, spec });
    assert.ok(backend);
    t.mock.timers.enable({ apis: ["setTimeout"] });
    const connected = once(server, "connection");
    const { signal } = new AbortController();
    const requested = send(backend, { host: "127.0.0.1", port }, { method: "GET", path: "/apis", headers: {}, signal });
    const refused = assert.rejects(requested, { message: `dial tcp 127.0.0.1:${port}: i/o timeout` });
    const [socket] = (await connected) as [Socket];
    socket.on("error", () => {});
    await once(socket, "data");
    await settle();
    t.mock.timers.tick(30_000);
    await refused;
    t.mock.timers.reset();
    if (!socket.closed) await once(socket, "close");
  });
}

test("a server whose certificate has its name as common name only is refused and counted", async (t) => {
  const ca = await newCa({ commonName: "ca" });
  const { certPem: cert, keyPem: key } = await newCertificate({ commonName: "b.a.svc", usages: ["server"], ca });
  const server = createHttpsServer({ cert, key }, (_, response) => response.end()).listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(() => void server.close());
  const { port } = server.address() as AddressInfo;
  let withoutNames = 0;
  const backends = newBackends({ current: undefined }, undefined, () => withoutNames++);
  const service = { namespace: "a", name: "b", port };
  const spec = { groupPriorityMinimum: 1, versionPriority: 1, service, caBundle: Buffer.from(ca.certPem).toString("base64") };
  const backend = backends.of({ metadata: { name: "v1.example.com" }, spec });
  assert.ok(backend);
  const { signal } = new AbortController();
  await assert.rejects(
    send(backend, { host: "127.0.0.1", port }, { method: "GET", path: "/", headers: {}, signal }),
    /x509: certificate relies on legacy Common Name field, use SANs instead$/,
  );
  assert.equal(withoutNames, 1);
});

test("a backend is kept while its APIService and the certificate are the same, and made anew when one of them changes", () => {
  const certificate = { current: undefined as { cert: string; key: string } | undefined };
  const backends = newBackends(certificate);
  const service = { namespace: "a", name: "b", port: 443 };
  const of = (changes: object = {}, name = "v1.example.com") =>
    backends.of({ metadata: { name }, spec: { groupPriorityMinimum: 1, versionPriority: 1, service, ...changes } });
  const first = of();
  assert.equal(of({ versionPriority: 2 }), first);
  assert.notEqual(of({}, "v2.example.com"), first);
  // One change at a time, there and back: each has to be noticed by itself.
  for (const changes of [
    { service: { ...service, namespace: "c" } },
    { service: { ...service, name: "c" } },
    { service: { ...service, port: 8443 } },
    { insecureSkipTLSVerify: true },
    { caBundle: Buffer.from("no certificate").toString("base64") },
  ]) {
    const before = of();
    const next = of(changes);
    assert.notEqual(next, before, JSON.stringify(changes));
    assert.equal(of(changes), next);
    assert.notEqual(of(), next, JSON.stringify(changes));
  }
  assert.match(
    of({ caBundle: Buffer.from("no certificate").toString("base64") })?.problem ?? "",
    /unable to load root certificates/,
  );
  let last = of();
  certificate.current = { cert: "", key: "" };
  assert.notEqual(of(), last);
  last = of();
  backends.forget("v1.example.com");
  assert.notEqual(of(), last);
  assert.equal(of({ service: undefined }), undefined);
});

/** A server that handles the n-th request of the n-th connection with `serve`. @returns a function that sends a request to it */
async function served(t: TestContext, serve: (connection: number, request: number, socket: Socket) => void) {
  const ca = await newCa({ commonName: "ca" });
  const pair = await newCertificate({ commonName: "b", dnsNames: ["b.a.svc"], usages: ["server"], ca });
  const seen = new Map<Socket, number>();
  const server = createHttpsServer({ cert: pair.certPem, key: pair.keyPem }, (request) => {
    const { socket } = request;
    const connections = [...seen.keys()];
    const nth = (seen.get(socket) ?? 0) + 1;
    seen.set(socket, nth);
    serve(connections.includes(socket) ? connections.indexOf(socket) + 1 : seen.size, nth, socket);
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  const caBundle = Buffer.from(ca.certPem).toString("base64");
  const spec = { groupPriorityMinimum: 1, versionPriority: 1, caBundle, service: { namespace: "a", name: "b", port } };
  const backend = newBackends({ current: undefined }).of({ metadata: { name: "v1.example.com" }, spec });
  assert.ok(backend);
  const { signal } = new AbortController();
  const request = async (method: string, body?: PassThrough) => {
    const wanted = { method, path: "/", headers: { host: "b" }, body, signal };
    const answer = await send(backend, { host: "127.0.0.1", port }, wanted);
    answer.resume();
    if (!answer.complete && answer.statusCode !== 101) await once(answer, "end");
    await settle(); // until the connection is free
    return answer.statusCode;
  };
  return { request, seen };
}

const answerOk = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";

test("a read over a kept connection that the server has closed is sent once more; when that fails too, it fails", async (t) => {
  const { request, seen } = await served(t, (connection, nth, socket) => {
    if (connection < 3 && nth === 1) socket.write(answerOk);
    else socket.destroy();
  });
  assert.equal(await request("GET"), 200);
  assert.equal(await request("GET"), 200);
  assert.equal(seen.size, 2);
  await assert.rejects(request("GET"), { code: "ECONNRESET" });
  assert.equal(seen.size, 3);
});

test("a write without a body has a connection of its own, and is sent once", async (t) => {
  const { request, seen } = await served(t, (connection, _nth, socket) => {
    if (connection === 1) socket.write(answerOk);
    else socket.destroy();
  });
  assert.equal(await request("GET"), 200);
  await assert.rejects(request("DELETE"), { code: "ECONNRESET" });
  assert.equal(seen.size, 2);
});

test("a connection that the server upgrades without being requested to is closed", async (t) => {
  const closed = Promise.withResolvers<void>();
  const { request } = await served(t, (_connection, _nth, socket) => {
    socket.once("close", () => closed.resolve());
    socket.on("error", () => {});
    socket.write("HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n");
  });
  assert.equal(await request("GET"), 101);
  await closed.promise;
});

test("an answer over a kept connection may take longer than a connection may take to be made", async (t) => {
  const asked = Promise.withResolvers<Socket>();
  const { request, seen } = await served(t, (_connection, nth, socket) => {
    if (nth === 1) socket.write(answerOk);
    else asked.resolve(socket);
  });
  assert.equal(await request("GET"), 200);
  t.mock.timers.enable({ apis: ["setTimeout"] });
  const second = request("GET");
  const socket = await asked.promise;
  t.mock.timers.tick(30_000);
  t.mock.timers.reset();
  socket.write(answerOk);
  assert.equal(await second, 200);
  assert.equal(seen.size, 1);
});

test("a request whose body breaks off is broken off at the server, too", async (t) => {
  const closed = Promise.withResolvers<void>();
  const body = new PassThrough();
  const { request } = await served(t, (_connection, _nth, socket) => {
    socket.once("close", () => closed.resolve());
    socket.on("error", () => {});
    body.destroy(new Error("the client has gone"));
  });
  body.write("half");
  await assert.rejects(request("POST", body), { message: "the client has gone" });
  await closed.promise;
});

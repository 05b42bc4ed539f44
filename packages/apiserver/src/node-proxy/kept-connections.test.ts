/** Which requests to kubelets share a connection, and what happens when the kubelet, its certificates or ours have changed meanwhile. */
import assert from "node:assert/strict";
import { once } from "node:events";
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Agent } from "node:https";
import { createServer, type Server } from "node:https";
import { PassThrough } from "node:stream";
import { type TestContext, test } from "node:test";
import type { TLSSocket } from "node:tls";
import { Turns } from "@coxswain/apimachinery/process/event-loop/turns";
import { type KeyPair, newCa, newCertificate } from "@coxswain/apimachinery/serving/certificates";
import { listening } from "@coxswain/apimachinery/testing/listening";
import { settle, waitFor } from "@coxswain/apimachinery/testing/wait-for";
import type { ConnectTarget } from "../registry/generic/resource.ts";
import type { RequestContext } from "../request/context.ts";
import { answerTo, type NodeProxyConfig, openSocket, resolveTarget } from "./dial.ts";
import { newKeptConnections } from "./kept-connections.ts";
import { pipe } from "./pipe.ts";
import { newNodeProxy } from "./upstream.ts";

const log = { v: () => undefined, warn: () => undefined } as never;
const ca = await newCa({ commonName: "ca" });
const other = await newCa({ commonName: "other" });
const serving = (authority: KeyPair): Promise<KeyPair> =>
  newCertificate({ commonName: "node", ips: ["127.0.0.1"], usages: ["server"], ca: authority });
const client = async (commonName: string) => {
  const { certPem: cert, keyPem: key } = await newCertificate({ commonName, usages: ["client"], ca });
  return { cert, key };
};
const [ofCa, ofOther, again] = [await serving(ca), await serving(other), await serving(ca)];
const clientCertificate = await client("apiserver");

type Handler = (req: IncomingMessage, res: ServerResponse) => void;

/** A kubelet. `users` has the common name of the client's certificate for each connection. */
async function kubelet(t: TestContext, handler: Handler, { certPem: cert, keyPem: key } = ofCa) {
  const users: string[] = [];
  const requests: string[] = [];
  const server = createServer({ cert, key, requestCert: true, rejectUnauthorized: false }, (req, res) => {
    requests.push(`${req.method} ${req.url}`);
    handler(req, res);
  });
  server.on("secureConnection", (socket: TLSSocket) => users.push(String(socket.getPeerCertificate().subject?.CN)));
  return { server, port: await listening(t, server), users, requests };
}

const to = (port: number, path: string, parts: Partial<ConnectTarget> = {}): ConnectTarget => {
  return { url: new URL(`https://127.0.0.1:${port}${path}`), toNode: true, as: "text", ...parts };
};

interface Asked extends Partial<NodeProxyConfig> {
  readonly signal?: AbortSignal;
  readonly target?: Partial<ConnectTarget>;
}

/** The body of the answer to a GET, or the error. */
async function ask(kept: Agent, port: number, path: string, { signal, target = {}, ...config }: Asked = {}): Promise<string> {
  const at = to(port, path, target);
  const dial = await resolveTarget(at, { log, clientCertificate, certificateAuthority: ca.certPem, ...config });
  const answer = await answerTo({ ...dial, kept }, at, { method: "GET", path, headers: {}, ...(signal && { signal }) });
  let body = "";
  for await (const chunk of answer) body += String(chunk);
  await settle(); // until the connection is free
  return body;
}

const echo: Handler = (req, res) => void res.end(`to ${req.url}`);
const open = (kept: Agent): number => Object.values(kept.sockets).flat().length;
const idle = (kept: Agent): number => Object.values(kept.freeSockets).flat().length;

test("requests to a kubelet share a connection when one follows the other, those at once do not", async (t) => {
  const { port, users, requests } = await kubelet(t, echo);
  const kept = newKeptConnections();
  for (const path of ["/a", "/b", "/c"]) assert.equal(await ask(kept, port, path), `to ${path}`);
  assert.deepEqual([users, requests], [["apiserver"], ["GET /a", "GET /b", "GET /c"]]);
  assert.deepEqual(await Promise.all(["/d", "/e"].map((path) => ask(kept, port, path))), ["to /d", "to /e"]);
  assert.deepEqual([users.length, open(kept), idle(kept)], [2, 0, 2]);
});

for (const { name, target, config, connections } of [
  { name: "a pod or a service", target: { toNode: false }, config: {}, connections: 2 },
  { name: "a node that is not to be verified", target: { skipVerify: true }, config: {}, connections: 1 },
  { name: "a verified node", target: {}, config: {}, connections: 1 },
]) {
  test(`two requests to ${name} take ${connections} connections`, async (t) => {
    const { port, users } = await kubelet(t, echo);
    const kept = newKeptConnections();
    for (const path of ["/a", "/b"]) await ask(kept, port, path, { target, ...config });
    assert.equal(users.length, connections);
  });
}

test("a connection without verification is not used for a request that is to be verified", async (t) => {
  const { port, requests } = await kubelet(t, echo, ofOther);
  const kept = newKeptConnections();
  await ask(kept, port, "/a", { target: { skipVerify: true } });
  await assert.rejects(ask(kept, port, "/b"), /certificate/);
  assert.deepEqual(requests, ["GET /a"]);
});

test("a kubelet of another authority is not reached over a connection from before the authority changed", async (t) => {
  const { port, requests } = await kubelet(t, echo);
  const kept = newKeptConnections();
  await ask(kept, port, "/a");
  await assert.rejects(ask(kept, port, "/b", { certificateAuthority: other.certPem }), /certificate/);
  assert.deepEqual(requests, ["GET /a"]);
});

test("after our certificate has changed, requests are made with the new one", async (t) => {
  const { port, users } = await kubelet(t, echo);
  const kept = newKeptConnections();
  await ask(kept, port, "/a");
  const next = await client("apiserver-2");
  for (const path of ["/b", "/c"]) await ask(kept, port, path, { clientCertificate: next });
  assert.deepEqual(users, ["apiserver", "apiserver-2"]);
});

/** Ends a server and its connections, and starts another on its port. */
async function replaced(t: TestContext, before: Server, port: number, pair: KeyPair) {
  before.closeAllConnections();
  before.close();
  await once(before, "close");
  const server = createServer({ cert: pair.certPem, key: pair.keyPem }, echo);
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  await once(server.listen(port, "127.0.0.1"), "listening");
}

test("a kubelet that was restarted with a new certificate is connected to again, and its certificate is verified", async (t) => {
  const kept = newKeptConnections();
  for (const [pair, error] of [[again, undefined] as const, [ofOther, /certificate/] as const]) {
    const { server, port } = await kubelet(t, echo);
    await ask(kept, port, "/a");
    await replaced(t, server, port, pair);
    if (error === undefined) assert.equal(await ask(kept, port, "/b"), "to /b");
    else await assert.rejects(ask(kept, port, "/b"), error);
  }
});

test("a request that a kubelet answers by closing a kept connection is repeated once, on a new one", async (t) => {
  const answered = new WeakSet<object>();
  const { port, users, requests } = await kubelet(t, (req, res) => {
    if (answered.has(req.socket) || req.url === "/never") return void req.socket.destroy();
    answered.add(req.socket);
    res.end("answered");
  });
  const kept = newKeptConnections();
  for (const path of ["/a", "/b"]) assert.equal(await ask(kept, port, path), "answered");
  assert.deepEqual([users.length, requests], [2, ["GET /a", "GET /b", "GET /b"]]);
  await assert.rejects(ask(kept, port, "/never"), { code: "ECONNRESET" });
  assert.deepEqual(requests.slice(3), ["GET /never"], "on a new connection it is not repeated");
});

test("neither a request with a body nor an exec is sent on a kept connection, and none has the credentials of a client", async (t) => {
  const heard: IncomingMessage["headers"][] = [];
  const { port, users, requests } = await kubelet(t, (req, res) => {
    heard.push(req.headers);
    if (req.headers["x-of"] === "eve") req.socket.destroy();
    else res.end();
  });
  const kept = newKeptConnections();
  const at = to(port, "/x");
  const dial = { ...(await resolveTarget(at, { log, clientCertificate, certificateAuthority: ca.certPem })), kept };
  const send = async (method: string, user: string, body = ""): Promise<void> => {
    const length = body === "" ? {} : { "content-length": String(body.length) };
    const headers = { authorization: `Bearer ${user}`, "x-remote-user": user, "x-of": user, ...length };
    const stream = () => ({ write: () => true, drained: async () => {}, end() {} });
    const bodyStream = () => new PassThrough().end(body);
    const exchange = { method, url: "/x", headers, httpVersion: "1.1", remoteAddress: "10.1.2.3", stream, bodyStream };
    const ctx = { exchange, signal: new AbortController().signal } as unknown as RequestContext; // cast: all that is read
    await pipe(ctx, at, dial, new Turns());
    await waitFor(() => open(kept) === 0, { what: "the end of the request" });
  };
  await send("GET", "alice");
  await send("POST", "bob");
  await send("HEAD", "carol");
  assert.equal(users.length, 1);
  await send("GET", "dan");
  assert.equal(idle(kept), 1);
  const before = users.length;
  await send("POST", "fay", "body");
  await assert.rejects(send("POST", "eve"), /EOF|reset/);
  assert.equal(requests.length, 6, "a command is not repeated");
  const exec = await openSocket(dial, at);
  await waitFor(() => users.length === before + 2, { what: "connections of their own" });
  exec.destroy();
  assert.deepEqual(
    heard.map((headers) => [headers["x-of"], headers.authorization, headers["x-remote-user"]]),
    ["alice", "bob", "carol", "dan", "fay", "eve"].map((user) => [user, undefined, undefined]),
  );
});

for (const begins of [false, true]) {
  test(`a request that its client leaves ${begins ? "in the middle of" : "before"} the answer gives everything back`, async (t) => {
    const { port, server, requests } = await kubelet(t, (req, res) => {
      if (req.url === "/a") res.end("a");
      else if (begins) res.write("begin");
    });
    const kept = newKeptConnections();
    await ask(kept, port, "/a");
    const abort = new AbortController();
    const asked = assert.rejects(ask(kept, port, "/b", { signal: abort.signal }), /aborted/);
    await waitFor(() => requests.length === 2, { what: "the second request" });
    if (begins) await settle();
    abort.abort();
    await asked;
    const connections = () => new Promise<number>((resolve) => server.getConnections((_, count) => resolve(count)));
    await waitFor(async () => (await connections()) === 0, { what: "the end of the connection" });
    assert.deepEqual([requests.length, open(kept), idle(kept)], [2, 0, 0], "it is not repeated");
  });
}

test("an idle connection is closed after a while, and one more than are kept at once", async (t) => {
  const { port, server, users } = await kubelet(t, echo);
  const kept = newKeptConnections({ idleMs: 300, mostIdle: 2 });
  await Promise.all(["/a", "/b", "/c"].map((path) => ask(kept, port, path)));
  assert.deepEqual([users.length, idle(kept)], [3, 2]);
  const connections = () => new Promise<number>((resolve) => server.getConnections((_, count) => resolve(count)));
  await waitFor(async () => (await connections()) === 0, { what: "the end of the connections" });
  assert.equal(idle(kept), 0);
});

test("an answer may be silent for longer than a connection may be idle", async (t) => {
  const rest = Promise.withResolvers<ServerResponse>();
  const { port } = await kubelet(t, (req, res) => {
    if (req.url === "/a") return void res.end();
    res.write("begin, ");
    rest.resolve(res);
  });
  const kept = newKeptConnections({ idleMs: 20 });
  await ask(kept, port, "/a");
  const asked = ask(kept, port, "/b");
  const response = await rest.promise;
  setTimeout(() => response.end("end"), 100);
  assert.equal(await asked, "begin, end");
});

for (const isGone of [true, false]) {
  test(`a kept connection on which no answer begins is ${isGone ? "left when its node cannot be" : "kept while its node can be"} reached`, async (t) => {
    t.mock.timers.enable({ apis: ["setTimeout"] });
    const waiting = Promise.withResolvers<ServerResponse>();
    const { port, server } = await kubelet(t, (req, res) => (req.url === "/a" ? void res.end() : waiting.resolve(res)));
    const kept = newKeptConnections();
    await ask(kept, port, "/a");
    const asked = ask(kept, port, "/b", { dialTimeoutMs: 7_000 });
    asked.catch(() => {}); // observed below
    const response = await waiting.promise;
    const probed = once(server, "connection");
    if (isGone) server.close();
    t.mock.timers.tick(7_000);
    if (isGone) return assert.rejects(asked, { code: "ECONNREFUSED" });
    await probed;
    response.end("late");
    assert.equal(await asked, "late");
  });
}

test("logs are requested on a kept connection, and read to their end", async (t) => {
  const { port, users } = await kubelet(t, echo);
  const proxy = newNodeProxy({ log, clientCertificate, certificateAuthority: ca.certPem });
  for (const path of ["/containerLogs/a", "/containerLogs/b"]) {
    const body = new PassThrough();
    const stream = () => ({ write: (chunk: Buffer) => body.write(chunk), drained: async () => {}, end: () => body.end() });
    const ctx = { exchange: { headers: {}, stream }, signal: new AbortController().signal } as unknown as RequestContext;
    await proxy.forward(ctx, to(port, path), { group: "", resource: "pods", name: "web-0" });
    assert.equal(String(body.read()), `to ${path}`);
    await settle();
  }
  assert.equal(users.length, 1);
});

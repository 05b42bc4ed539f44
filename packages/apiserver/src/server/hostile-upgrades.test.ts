/** Upgrade requests where none are supported, and bytes that violate the agreed protocol. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { readdirSync } from "node:fs";
import { createServer } from "node:https";
import type { AddressInfo } from "node:net";
import type { Duplex } from "node:stream";
import { after, before, type TestContext, test } from "node:test";
import { connect, type TLSSocket } from "node:tls";
import { newCa, newCertificate } from "@coxswain/apimachinery/serving/certificates";
import { waitFor } from "@coxswain/apimachinery/testing/wait-for";
import { startTestServer, type TestServer } from "../testing/start-test-server.ts";

let server: TestServer;
before(async () => {
  server = await startTestServer(undefined);
});
after(() => server.stop());

const configMaps = "/api/v1/namespaces/default/configmaps";
const absentPod = "/api/v1/namespaces/default/pods/none";
const webSocket = [
  ...["Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Version: 13", "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=="],
  "Origin: https://evil.example",
];
const spdy = ["Connection: Upgrade", "Upgrade: SPDY/3.1"];

async function open(method: string, path: string, headers: readonly string[], body = ""): Promise<Talk> {
  const socket = connect({
    host: "127.0.0.1",
    port: server.port,
    ca: server.ca,
    servername: "localhost",
    ALPNProtocols: ["http/1.1"],
  });
  const talk: Talk = { socket, heard: "", closed: false };
  socket.on("data", (chunk: Buffer) => {
    talk.heard += chunk.toString("latin1");
  });
  socket.on("close", () => {
    talk.closed = true;
  });
  socket.on("error", () => {});
  await once(socket, "secureConnect");
  const lines = [`${method} ${path} HTTP/1.1`, "Host: x", `Authorization: Bearer ${server.adminToken}`, ...headers];
  socket.write(`${lines.join("\r\n")}\r\n\r\n${body}`);
  await waitFor(async () => talk.closed || talk.heard.includes("\r\n\r\n"));
  return talk;
}

interface Talk {
  readonly socket: TLSSocket;
  heard: string;
  closed: boolean;
}

const codeOf = ({ heard }: Talk): number => Number(heard.split(" ", 2)[1]);

const made = '{"metadata":{"name":"made"}}';

for (const { name, method = "GET", path, headers, body, code } of [
  { name: "an object takes no WebSocket", path: configMaps, headers: webSocket, code: 200 },
  { name: "an object takes no SPDY", path: configMaps, headers: spdy, code: 200 },
  { name: "health takes no WebSocket", path: "/livez", headers: webSocket, code: 200 },
  { name: "an unknown protocol is ignored", path: "/version", headers: ["Connection: Upgrade", "Upgrade: x/1"], code: 200 },
  {
    name: "HTTP/2 is not changed to in the open",
    path: "/version",
    headers: ["Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c", "HTTP2-Settings: AA"],
    code: 200,
  },
  { name: "a path that is none stays none", path: "/nowhere", headers: webSocket, code: 404 },
  {
    name: "a body is read, whatever else is wished",
    method: "POST",
    path: configMaps,
    headers: [...spdy, `Content-Length: ${made.length}`],
    body: made,
    code: 201,
  },
  {
    name: "a pod that is not there has no shell",
    method: "POST",
    path: `${absentPod}/exec?command=sh`,
    headers: spdy,
    code: 404,
  },
  { name: "nor ports", path: `${absentPod}/portforward?ports=80`, headers: webSocket, code: 404 },
  {
    name: "nor a stream to attach to",
    path: `${absentPod}/attach?stdin=true`,
    headers: [...webSocket, "Sec-WebSocket-Protocol: nobody.knows"],
    code: 404,
  },
]) {
  test(`${name}: ${code}`, async () => {
    const talk = await open(method, path, headers, body);
    assert.equal(codeOf(talk), code, talk.heard);
    assert.doesNotMatch(talk.heard, /^HTTP\/1\.1 101/);
    talk.socket.destroy();
  });
}

/** Frames sent to a watch over a WebSocket, in hexadecimal, and the expected close code. */
for (const { name, frames, closedWith } of [
  { name: "a frame that is not masked", frames: "810548656c6c6f", closedWith: 1002 },
  { name: "2^63 bytes to come", frames: "82ff8000000000000000", closedWith: 1009 },
  { name: "2^64 - 1 bytes to come", frames: "82ffffffffffffffffff", closedWith: 1009 },
  { name: "more than anybody has to say", frames: "82ff0000000000100000", closedWith: 1009 },
  { name: "an extension that was not agreed to", frames: "c18000000000", closedWith: 1002 },
  { name: "an operation that is not there", frames: "8f8000000000", closedWith: 1002 },
  { name: "a ping in parts", frames: "098000000000", closedWith: 1002 },
  { name: "a part of nothing", frames: "808000000000", closedWith: 1002 },
  { name: "a close with half a code", frames: "88810000000000", closedWith: 1002 },
  { name: "the preface of HTTP/2", frames: "505249202a20485454502f322e300d0a", closedWith: 1002 },
]) {
  test(`${name} ends the watch with ${closedWith}`, async () => {
    const talk = await open("GET", `${configMaps}?watch=1&fieldSelector=metadata.name=none`, webSocket);
    assert.equal(codeOf(talk), 101, talk.heard);
    talk.socket.write(Buffer.from(frames, "hex"));
    await waitFor(async () => talk.closed);
    const close = Buffer.from(talk.heard.slice(talk.heard.indexOf("\r\n\r\n") + 4), "latin1");
    assert.equal(close[0], 0x88, "no close frame");
    assert.equal(close.readUInt16BE(2), closedWith);
  });
}

/** With COX_TEST_LONG: a thousand. */
const many = process.env["COX_TEST_LONG"] === undefined ? 200 : 1000;

test("many idle WebSocket watches are registered as watchers, and end with their clients", async () => {
  const idle = await openMany(() => open("GET", `${configMaps}?watch=1&fieldSelector=metadata.name=none`, webSocket));
  assert.deepEqual(new Set(idle.map(codeOf)), new Set([101]));
  const watchers = async (): Promise<number> => {
    const { text } = await server.request("GET", "/metrics");
    const row = /^apiserver_registered_watchers\{[^}]*kind="ConfigMap"[^}]*\} (\d+)$/m.exec(text);
    return Number(row?.[1] ?? 0);
  };
  assert.ok((await watchers()) >= many, String(await watchers()));
  for (const { socket } of idle) socket.destroy();
  await waitFor(async () => (await watchers()) === 0);
});

/** Opens twenty at a time, since the listen backlog is limited. */
async function openMany(make: (i: number) => Promise<Talk>): Promise<Talk[]> {
  const all: Talk[] = [];
  while (all.length < many) all.push(...(await Promise.all(Array.from({ length: 20 }, (_, i) => make(all.length + i)))));
  return all;
}

const pod = "/api/v1/namespaces/default/pods/web";

/** A node whose kubelet accepts every protocol and stores what it receives. */
async function aKubelet(t: TestContext): Promise<{ streams: { socket: Duplex; heard: string }[] }> {
  const pair = await newCertificate({
    commonName: "node",
    ips: ["127.0.0.1"],
    usages: ["server"],
    ca: await newCa({ commonName: "kubelet-ca" }),
  });
  const streams: { socket: Duplex; heard: string }[] = [];
  const kubelet = createServer({ cert: pair.certPem, key: pair.keyPem });
  kubelet.on("upgrade", (_request, socket: Duplex) => {
    const stream = { socket, heard: "" };
    streams.push(stream);
    socket.on("data", (chunk: Buffer) => {
      stream.heard += chunk.toString("latin1");
    });
    socket.on("error", () => {});
    socket.write("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n\r\n");
  });
  kubelet.listen(0, "127.0.0.1");
  await once(kubelet, "listening");
  t.after(() => {
    for (const { socket } of streams) socket.destroy();
    kubelet.close();
  });
  const { port } = kubelet.address() as AddressInfo;
  await server.request("POST", "/api/v1/nodes", { metadata: { name: "n1" } });
  const addresses = [{ type: "InternalIP", address: "127.0.0.1" }];
  const status = { addresses, daemonEndpoints: { kubeletEndpoint: { Port: port } } };
  const merge = { "content-type": "application/merge-patch+json" };
  assert.equal((await server.request("PATCH", "/api/v1/nodes/n1/status", { status }, merge)).code, 200);
  await server.request("POST", "/api/v1/namespaces/default/serviceaccounts", { metadata: { name: "default" } });
  const spec = { nodeName: "n1", containers: [{ name: "main", image: "busybox" }] };
  await server.request("POST", pod.replace("/web", ""), { metadata: { name: "web" }, spec });
  return { streams };
}

const intoPod = [`${pod}/exec?command=sh&stdin=true`, `${pod}/attach?stdin=true`, `${pod}/portforward`];

test("many idle execs, attaches and port-forwards cost two sockets each, and end with their clients", async (t) => {
  const { streams } = await aKubelet(t);
  const before = readdirSync("/proc/self/fd").length;
  const idle = await openMany((i) => open("POST", intoPod[i % intoPod.length] as string, spdy));
  assert.deepEqual(new Set(idle.map(codeOf)), new Set([101]));
  assert.equal(streams.length, many);
  // The client's and the kubelet's sockets are in this process, too.
  assert.ok(readdirSync("/proc/self/fd").length <= before + 4 * many + 10);
  assert.equal((await server.request("GET", "/readyz")).code, 200);
  for (const { socket } of idle) socket.destroy();
  await waitFor(() => streams.every(({ socket }) => socket.destroyed), { what: "the kubelet to be notified" });
  await waitFor(() => readdirSync("/proc/self/fd").length <= before + 5, { what: "the descriptors to come back" });
});

/** The protocol is interpreted by the container runtime's server; the API server forwards it. */
for (const { name, bytes } of [
  { name: "a SPDY frame of a version that is none", bytes: "ffff0001010000000000" },
  { name: "a SPDY frame that claims 16 MB", bytes: "8003000100ffffff00000001" },
  { name: "a stream opened with headers that do not inflate", bytes: "80030001000000120000000100000000000000ffffffffffffff" },
  { name: "data for a stream that is not there", bytes: "7fffffff0000000461626364" },
]) {
  test(`${name} is passed to the kubelet unchanged; what it ends is ended for the client`, async (t) => {
    const { streams } = await aKubelet(t);
    const talk = await open("POST", intoPod[0] as string, spdy);
    assert.equal(codeOf(talk), 101, talk.heard);
    talk.socket.write(Buffer.from(bytes, "hex"));
    const stream = streams.at(-1) as (typeof streams)[number];
    await waitFor(() => stream.heard.length * 2 === bytes.length);
    assert.equal(Buffer.from(stream.heard, "latin1").toString("hex"), bytes);
    stream.socket.end();
    await waitFor(() => talk.closed);
    assert.equal((await server.request("GET", "/readyz")).code, 200);
  });
}

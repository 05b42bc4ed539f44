/** Wishes for another protocol where there is none, and bytes that are none of the protocol that was agreed to. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { after, before, test } from "node:test";
import { connect, type TLSSocket } from "node:tls";
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
  { name: "a protocol nobody knows is not there", path: "/version", headers: ["Connection: Upgrade", "Upgrade: x/1"], code: 200 },
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

/** What a watch over a WebSocket is sent; in hexadecimal. A close frame with a code of its own is the answer. */
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

test("many that wish and say nothing more cost a socket each and no more, and go with their clients", async () => {
  const open200 = await Promise.all(
    Array.from({ length: 200 }, () => open("GET", `${configMaps}?watch=1&fieldSelector=metadata.name=none`, webSocket)),
  );
  assert.deepEqual(new Set(open200.map(codeOf)), new Set([101]));
  const watchers = async (): Promise<number> => {
    const { text } = await server.request("GET", "/metrics");
    const row = /^apiserver_registered_watchers\{[^}]*kind="ConfigMap"[^}]*\} (\d+)$/m.exec(text);
    return Number(row?.[1] ?? 0);
  };
  assert.ok((await watchers()) >= 200, String(await watchers()));
  for (const { socket } of open200) socket.destroy();
  await waitFor(async () => (await watchers()) === 0);
});

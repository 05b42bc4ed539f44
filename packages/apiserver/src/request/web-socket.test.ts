import assert from "node:assert/strict";
import { PassThrough } from "node:stream";
import { type TestContext, test } from "node:test";
import { discardLogger } from "@coxswain/apimachinery/process/logging/logger";
import type { Exchange } from "@coxswain/apimachinery/serving/exchange";
import { startHttpServer } from "@coxswain/apimachinery/serving/https-server";
import { settle } from "@coxswain/apimachinery/testing/wait-for";
import WebSocket from "ws";
import { acceptWebSocket, isWebSocketRequest, type WebSocketStream } from "./web-socket.ts";

/** A client, and the server side of its WebSocket. */
async function connected(
  t: TestContext,
  rules: Parameters<typeof acceptWebSocket>[1] = { originRequired: false },
  protocols: string[] = [],
): Promise<{ client: WebSocket; stream: WebSocketStream }> {
  const accepted = Promise.withResolvers<WebSocketStream>();
  const server = await startHttpServer({
    port: 0,
    bindAddress: "127.0.0.1",
    log: discardLogger,
    async handler(exchange) {
      assert.ok(isWebSocketRequest(exchange));
      const stream = await acceptWebSocket(exchange, rules);
      if (stream === undefined) accepted.reject(new Error("the handshake was refused"));
      else accepted.resolve(stream);
    },
  });
  const client = new WebSocket(`ws://127.0.0.1:${server.port}/`, protocols);
  client.on("error", () => {});
  t.after(async () => {
    client.terminate();
    await server.close(0);
  });
  return { client, stream: await accepted.promise };
}

const message = Buffer.alloc(1 << 20, "x");
const messages = 32;

/** Sends more than the socket buffers hold. */
function fill(stream: WebSocketStream): void {
  let room = true;
  for (let i = 0; i < messages; i++) room = stream.send(message, "binary");
  assert.equal(room, false);
}

test("a client that does not read makes the sender wait, until it reads", async (t) => {
  const { client, stream } = await connected(t);
  let received = 0;
  client.on("message", () => received++);
  await new Promise((resolve) => client.once("open", resolve));
  client.pause();
  fill(stream);
  let drained = false;
  const draining = stream.drained().then(() => {
    drained = true;
  });
  await settle();
  assert.equal(drained, false);
  client.resume();
  await draining;
  stream.close();
  assert.equal(await new Promise((resolve) => client.once("close", resolve)), 1000);
  assert.equal(received, messages);
});

test("waiting for a client that disconnects is rejected", async (t) => {
  const { client, stream } = await connected(t);
  await new Promise((resolve) => client.once("open", resolve));
  client.pause();
  fill(stream);
  const draining = stream.drained();
  client.terminate();
  await assert.rejects(draining, /the client disconnected/);
});

const handshake = {
  ...{ connection: "keep-alive, Upgrade", upgrade: "WebSocket", origin: "https://a.example" },
  ...{ "sec-websocket-key": Buffer.alloc(16).toString("base64"), "sec-websocket-version": "13" },
};

for (const { name, headers, isOne } of [
  { name: "is one", headers: handshake, isOne: true },
  { name: "of another protocol is none", headers: { ...handshake, upgrade: "SPDY/3.1" }, isOne: false },
  { name: "whose Connection does not say so is none", headers: { ...handshake, connection: "keep-alive" }, isOne: false },
]) {
  test(`an upgrade to a WebSocket ${name}`, () => {
    const is = (upgrade: object | undefined) => isWebSocketRequest({ upgrade, headers } as unknown as Exchange); // cast: all that is read
    assert.deepEqual([is({}), is(undefined)], [isOne, false]);
  });
}

const anyOrigin = { originRequired: false };
for (const { name, method = "GET", headers = {}, rules = anyOrigin, code, text = "", more = {} } of [
  { name: "of another method", method: "POST", code: 405, text: "bad method" },
  { name: "without a key", headers: { "sec-websocket-key": undefined }, code: 400, text: "mismatch challenge/response" },
  { name: "with a short key", headers: { "sec-websocket-key": "YQ==" }, code: 400, text: "mismatch challenge/response" },
  {
    name: "of another version",
    headers: { "sec-websocket-version": "8" },
    ...{ code: 400, text: "missing or bad WebSocket Version", more: { "sec-websocket-version": "13" } },
  },
  { name: "without an origin where it is required", headers: { origin: undefined }, rules: { originRequired: true }, code: 403 },
  { name: "with an origin that is none", headers: { origin: "a b" }, rules: { originRequired: true }, code: 403 },
  { name: "of two protocols where any is taken", headers: { "sec-websocket-protocol": "a, b" }, code: 400 },
  { name: "of a protocol that is no token", headers: { "sec-websocket-protocol": "a b" }, code: 400 },
  {
    name: "of protocols that are not spoken",
    headers: { "sec-websocket-protocol": "a, b" },
    rules: { ...anyOrigin, protocols: ["", "c"] },
    code: 403,
  },
  { name: "of no protocol where one is required", rules: { ...anyOrigin, protocols: ["c"] }, code: 403 },
] as {
  name: string;
  method?: string;
  headers?: Record<string, string | undefined>;
  rules?: Parameters<typeof acceptWebSocket>[1];
  code: number;
  text?: string;
  more?: object;
}[]) {
  test(`a handshake ${name} is answered with ${code}`, async () => {
    const answered: unknown[] = [];
    const respond = (...answer: unknown[]): void => void answered.push(answer);
    const exchange = { method, headers: { ...handshake, ...headers }, respond } as unknown as Exchange; // cast: all that is used
    assert.equal(await acceptWebSocket(exchange, rules), undefined);
    assert.deepEqual(answered, [[code, more, text]]);
  });
}

test("a connection that breaks off before its handshake is answered is no WebSocket", async () => {
  const socket = new PassThrough();
  const accepted = acceptWebSocket(
    { method: "GET", headers: { ...handshake, upgrade: "x" }, upgrade: { socket, head: Buffer.of() } } as unknown as Exchange,
    anyOrigin,
  );
  socket.destroy();
  assert.equal(await Promise.race([accepted, settle(50).then(() => "waits")]), undefined);
});

for (const { requested, rules, protocol } of [
  { requested: [], rules: anyOrigin, protocol: "" },
  { requested: ["a"], rules: anyOrigin, protocol: "a" },
  { requested: ["a", "b"], rules: { ...anyOrigin, protocols: ["", "b", "a"] }, protocol: "a" },
  { requested: ["x", "b"], rules: { ...anyOrigin, protocols: ["", "b"] }, protocol: "b" },
]) {
  test(`of the protocols [${requested}] ${JSON.stringify(protocol)} is spoken`, async (t) => {
    const { client, stream } = await connected(t, rules, requested);
    if (!client.protocol)
      await new Promise((resolve) => (client.readyState === client.OPEN ? resolve(0) : client.once("open", resolve)));
    assert.deepEqual([stream.protocol, client.protocol], [protocol, protocol]);
  });
}

test("a client that sends more than 64 KiB in a message is disconnected", async (t) => {
  const { client, stream } = await connected(t);
  const closed = new Promise((resolve) => client.once("close", resolve));
  if (client.readyState !== client.OPEN) await new Promise((resolve) => client.once("open", resolve));
  client.send(Buffer.alloc(64 * 1024));
  client.send(Buffer.alloc(64 * 1024 + 1));
  await closed;
  await assert.rejects(async () => stream.drained(), /the client disconnected/);
});

import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { discardLogger } from "@coxswain/apimachinery/process/logging/logger";
import { startHttpServer } from "@coxswain/apimachinery/serving/https-server";
import { settle } from "@coxswain/apimachinery/testing/wait-for";
import WebSocket from "ws";
import { acceptWebSocket, isWebSocketRequest, type WebSocketStream } from "./web-socket.ts";

/** A client, and the server side of its WebSocket. */
async function connected(t: TestContext): Promise<{ client: WebSocket; stream: WebSocketStream }> {
  const accepted = Promise.withResolvers<WebSocketStream>();
  const server = await startHttpServer({
    port: 0,
    bindAddress: "127.0.0.1",
    log: discardLogger,
    async handler(exchange) {
      assert.ok(isWebSocketRequest(exchange));
      const stream = await acceptWebSocket(exchange, { originRequired: false });
      if (stream === undefined) accepted.reject(new Error("the handshake was refused"));
      else accepted.resolve(stream);
    },
  });
  const client = new WebSocket(`ws://127.0.0.1:${server.port}/`);
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

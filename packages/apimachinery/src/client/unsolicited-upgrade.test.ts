import assert from "node:assert/strict";
import { once } from "node:events";
import { type AddressInfo, createServer } from "node:net";
import { test } from "node:test";
import { newClient } from "./client.ts";

test("a server that changes to another protocol unasked is an error, and its connection ends", async (t) => {
  const closed = Promise.withResolvers<void>();
  const server = createServer((socket) => {
    socket.on("error", () => {});
    socket.once("close", () => closed.resolve());
    socket.once("data", () => socket.write("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\nfree"));
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(() => server.close());
  const client = newClient({ host: `http://127.0.0.1:${(server.address() as AddressInfo).port}` });
  t.after(() => client.close());
  const message = /backend tried to switch protocol "x" when "" was requested/;
  await assert.rejects(client.raw("GET", "/"), message);
  await closed.promise;
});

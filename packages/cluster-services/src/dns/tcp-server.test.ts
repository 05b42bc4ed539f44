import assert from "node:assert/strict";
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { type TestContext, test } from "node:test";
import { newFakeClock } from "@coxswain/apimachinery/process/clock/fake-clock";
import { discardLogger } from "@coxswain/apimachinery/process/logging/logger";
import { newMetricsRegistry } from "@coxswain/apimachinery/process/metrics/registry";
import { waitFor } from "@coxswain/apimachinery/testing/wait-for";
import { newDnsMetrics } from "./metrics.ts";
import type { RequestHandler } from "./request-handler.ts";
import { withLength } from "./stream-frames.ts";
import { startTcpServer } from "./tcp-server.ts";

/** Waits until the server has closed a connection, which takes milliseconds. */
const gone = (socket: Socket): Promise<true> =>
  waitFor(() => socket.closed, { timeoutMs: 10_000, what: "the server to close the connection" });

/** Fails at once when the connection is closed before. */
const whileOpen = (socket: Socket, condition: () => boolean): Promise<true> =>
  waitFor(() => {
    assert.equal(socket.closed, false, "the connection was closed");
    return condition();
  });

async function start(t: TestContext, handle: RequestHandler = (message) => message) {
  const clock = newFakeClock();
  const registry = newMetricsRegistry();
  const metrics = newDnsMetrics(registry);
  const server = await startTcpServer({ address: "127.0.0.1", port: 0, handle, clock, log: discardLogger, metrics });
  t.after(() => server.close());
  const open = async (localAddress = "127.0.0.1"): Promise<Socket> => {
    const socket = connect({ host: "127.0.0.1", port: server.port, localAddress });
    socket.on("error", () => {});
    t.after(() => socket.destroy());
    await once(socket, "connect");
    return socket;
  };
  return { clock, open, dropped: () => registry.render() };
}

test("closes a connection on which no query is completed for 10 seconds, however slowly it is sent", async (t) => {
  const { clock, open } = await start(t);
  const socket = await open();
  socket.write(withLength(Buffer.from("whole")));
  await once(socket, "data");
  await clock.advance(9_000);
  socket.write(Buffer.from([0]));
  socket.write(Buffer.from([200, 1, 2, 3]));
  await clock.advance(1_000);
  await gone(socket);
});

test("closes a connection on which nothing comes for 10 seconds, and with an answer that is none", async (t) => {
  const { clock, open } = await start(t, () => undefined);
  const [silent, refused] = [await open(), await open()];
  await waitFor(() => clock.waiting === 2);
  refused.write(withLength(Buffer.from("query")));
  await gone(refused);
  await waitFor(() => clock.waiting === 1);
  await clock.advance(9_999);
  assert.equal(silent.destroyed, false);
  await clock.advance(1);
  await gone(silent);
  await waitFor(() => clock.waiting === 0);
});

test("reads queries in any pieces and answers each", async (t) => {
  const { open } = await start(t);
  const socket = await open();
  const received: Buffer[] = [];
  socket.on("data", (bytes: Buffer) => received.push(bytes));
  const sent = Buffer.concat([withLength(Buffer.from("one")), withLength(Buffer.from("second"))]);
  for (const byte of sent) socket.write(Buffer.from([byte]));
  await waitFor(() => Buffer.concat(received).equals(sent));
});

test("has a limit for the connections of one client", async (t) => {
  const { clock, open, dropped } = await start(t);
  const sockets = await Promise.all(Array.from({ length: 50 }, () => open()));
  const one = await open();
  await gone(one);
  assert.match(await dropped(), /coxswain_dns_dropped_total\{reason="connections"\} 1\n/);
  sockets[0]?.destroy();
  await waitFor(() => clock.waiting === 49);
  const again = await open();
  again.write(withLength(Buffer.from("x")));
  await whileOpen(again, () => again.bytesRead > 0);
});

test("closes a connection with too many queries under way", async (t) => {
  const { open } = await start(t, () => new Promise(() => {}));
  const socket = await open();
  socket.write(Buffer.concat(Array.from({ length: 33 }, () => withLength(Buffer.from("query")))));
  await gone(socket);
});

test("closes a connection whose client does not read its answers", async (t) => {
  const answer = Buffer.alloc(65_000);
  const { open } = await start(t, () => answer);
  const socket = await open();
  socket.pause();
  const queries = Buffer.concat(Array.from({ length: 1_000 }, () => withLength(Buffer.from("query"))));
  socket.write(queries);
  await waitFor(() => {
    socket.write(queries);
    return socket.destroyed;
  });
});

test("a connection lives as long as it completes queries, and leaves nothing", async (t) => {
  const { clock, open } = await start(t, async (message) => message);
  const socket = await open();
  let answered = 0;
  socket.on("data", (bytes: Buffer) => {
    answered += bytes.length / 3;
  });
  for (let i = 1; i <= 40; i++) {
    await clock.advance(9_000);
    socket.write(withLength(Buffer.from("x")));
    await whileOpen(socket, () => answered === i);
  }
  socket.destroy();
  await waitFor(() => clock.waiting === 0);
});

test("a query that is longer than any is ends the connection", async (t) => {
  const { open, dropped } = await start(t);
  const socket = await open();
  socket.write(Buffer.from([0x10, 0x01]));
  await gone(socket);
  assert.match(await dropped(), /coxswain_dns_dropped_total\{reason="size"\} 1\n/);
});

test("a connection that ends makes room for one", async (t) => {
  const { clock, open } = await start(t);
  const first = await open();
  await waitFor(() => clock.waiting === 1);
  first.destroy();
  await waitFor(() => clock.waiting === 0);
  const sockets = await Promise.all(Array.from({ length: 50 }, () => open()));
  await waitFor(() => clock.waiting === 50, { what: "as many as without an earlier one" });
  sockets[0]?.destroy();
  await waitFor(() => clock.waiting === 49);
  await whileOpen(await open(), () => clock.waiting === 50);
  await gone(await open());
  assert.equal(clock.waiting, 50);
});

test("has a limit for the connections of all clients together", async (t) => {
  const { clock, open, dropped } = await start(t);
  for (let host = 1; host <= 20; host++) await Promise.all(Array.from({ length: 50 }, () => open(`127.0.1.${host}`)));
  await waitFor(() => clock.waiting === 1_000);
  await gone(await open("127.0.2.1"));
  assert.match(await dropped(), /coxswain_dns_dropped_total\{reason="connections"\} 1\n/);
});

import assert from "node:assert/strict";
import { createSecureServer, type Http2SecureServer, type ServerHttp2Session } from "node:http2";
import type { AddressInfo } from "node:net";
import { before, type TestContext, test } from "node:test";
import { type TestPair, testPair } from "@coxswain/apimachinery/testing/tls";
import { settle, waitFor } from "@coxswain/apimachinery/testing/wait-for";
import { Probe } from "./probe.ts";

let pair: TestPair;
before(async () => {
  pair = await testPair();
});

/** A server that counts the pings it has answered, and a probe that ticks when the test says so. */
async function start(t: TestContext) {
  const state = { pings: 0, readyz: 200, asked: 0 };
  const sessions = new Set<ServerHttp2Session>();
  let server: Http2SecureServer | undefined;
  const listen = async (port: number): Promise<number> => {
    server = createSecureServer({ cert: pair.cert, key: pair.key }, (_request, response) => {
      state.asked++;
      response.statusCode = state.readyz;
      response.end();
    });
    server.on("session", (session) => {
      sessions.add(session);
      session.on("close", () => sessions.delete(session));
      session.on("error", () => {});
      session.on("ping", () => state.pings++);
    });
    await new Promise<void>((resolve) => server?.listen(port, "127.0.0.1", resolve));
    return (server.address() as AddressInfo).port;
  };
  const port = await listen(0);
  const changes: string[] = [];
  const probe: Probe = new Probe({
    ...{ address: `127.0.0.1:${port}`, host: "127.0.0.1", port },
    tls: async () => ({ ca: pair.ca, servername: "kubernetes" }),
    changed: () => void changes.push(probe.state),
  });
  /** Ends the server as one that is shut down does: GOAWAY, then the connections. */
  const end = async (): Promise<void> => {
    const closed = new Promise((resolve) => server?.close(resolve));
    for (const session of sessions) session.close();
    await closed;
  };
  t.after(async () => {
    probe.close();
    for (const session of sessions) session.destroy();
    server?.close();
  });
  /** One tick whose ping the server has seen. */
  const ping = async (): Promise<void> => {
    const before = state.pings;
    await waitFor(() => {
      if (state.pings === before) probe.tick();
      return settle(3).then(() => state.pings > before);
    });
    await settle();
  };
  return { state, changes, probe, listen: () => listen(port), end, ping };
}

test("a server that ended and is started again is used after five answers, not after the first", async (t) => {
  const { changes, probe, listen, end, ping } = await start(t);
  await waitFor(() => probe.state === "ready");
  await end();
  await waitFor(() => probe.state === "leaving");
  await listen();
  await ping();
  assert.deepEqual(changes, ["ready", "leaving"], "at most two answers: the settings and one ping");
  for (let pings = 0; pings < 4; pings++) await ping();
  await waitFor(() => probe.state === "ready");
  assert.deepEqual(changes, ["ready", "leaving", "ready"]);
});

test("a server is unready after its first refusal, dead after the third, and used again when it is ready", async (t) => {
  const { state, changes, probe, ping } = await start(t);
  await waitFor(() => probe.state === "ready");
  state.readyz = 500;
  const refused = async (): Promise<void> => {
    const asked = state.asked;
    while (state.asked === asked) await ping();
    await settle(20);
  };
  await refused();
  await waitFor(() => probe.state === "unready");
  assert.equal(probe.reason, "/readyz answers 500");
  await refused();
  assert.equal(probe.state, "unready", "the second one in a row");
  await refused();
  await waitFor(() => probe.state === "dead");
  state.readyz = 403;
  await refused();
  await ping();
  await waitFor(() => probe.state === "ready");
  assert.deepEqual(changes, ["ready", "unready", "dead", "ready"]);
});

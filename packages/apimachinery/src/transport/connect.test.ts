import assert from "node:assert/strict";
import { once } from "node:events";
import http from "node:http";
import http2 from "node:http2";
import https from "node:https";
import { connect as connectTcp, createServer, type Server, type Socket } from "node:net";
import { test } from "node:test";
import { newClient } from "../client/client.ts";
import { newCa } from "../serving/certificates.ts";
import { listening } from "../testing/listening.ts";
import { testPair } from "../testing/tls.ts";
import { connectingOver, connectTls } from "./connect.ts";

const pair = await testPair();
const answer = ({ httpVersion }: { httpVersion: string }, response: { end(text: string): void }): void =>
  response.end(JSON.stringify({ httpVersion }));

for (const { name, scheme, start, version, connections } of [
  { name: "HTTP/2", scheme: "https", start: () => http2.createSecureServer(pair, answer), version: "2.0", connections: 1 },
  // One to negotiate the protocol, one that is kept alive.
  { name: "HTTP/1.1 over TLS", scheme: "https", start: () => https.createServer(pair, answer), version: "1.1", connections: 2 },
  { name: "HTTP/1.1", scheme: "http", start: () => http.createServer(answer), version: "1.1", connections: 1 },
]) {
  test(`a client sends requests by ${name} over injected connections`, async (t) => {
    const server: Server = start();
    const reached = await listening(t, server);
    const requested: string[] = [];
    const connect = async (host: string, port: number): Promise<Socket> => {
      requested.push(`${host}:${port}`);
      return connectTcp(reached, "127.0.0.1");
    };
    // Nothing listens on this port.
    const client = newClient({ host: `${scheme}://127.0.0.1:1`, ca: pair.ca, qps: -1 }, { connect });
    t.after(() => client.close());
    for (let i = 0; i < 2; i++) {
      const { body } = await client.raw("GET", "/");
      assert.deepEqual(JSON.parse(String(body)), { httpVersion: version });
    }
    assert.deepEqual(
      requested,
      Array.from({ length: connections }, () => "127.0.0.1:1"),
    );
  });
}

test("a client's error has the cause of a failed injected connection", async (t) => {
  for (const scheme of ["http", "https"]) {
    const connect = () => Promise.reject(new Error("the tunnel is closed"));
    const client = newClient({ host: `${scheme}://127.0.0.1:1`, qps: -1 }, { connect });
    t.after(() => client.close());
    await assert.rejects(client.raw("GET", "/"), /the tunnel is closed/);
  }
});

test("where TLS cannot begin, the connection ends and the client gets the error", async (t) => {
  const reached = await listening(t, createServer());
  const made: Socket[] = [];
  const connect = async (): Promise<Socket> => {
    made.push(connectTcp(reached, "127.0.0.1"));
    return made.at(-1) as Socket;
  };
  const notPem = { cert: "x", key: "y" };
  const agent = connectingOver(new https.Agent(notPem), connect, true);
  const requested = once(https.get("https://127.0.0.1:1", { agent }), "response");
  await assert.rejects(requested, /no start line/);
  const client = newClient({ host: "https://127.0.0.1:1", ...notPem, qps: -1 }, { connect });
  t.after(() => client.close());
  await assert.rejects(client.raw("GET", "/"), /no start line/);
  assert.deepEqual(
    made.map(({ destroyed }) => destroyed),
    [true, true],
  );
});

test("a server's alert names our certificate when it has expired", async (t) => {
  const { certPem, keyPem } = await newCa({ commonName: "we", validDays: -1 });
  const alert = Buffer.from([21, 3, 3, 0, 2, 2, 45]); // fatal, certificate_expired
  const port = await listening(
    t,
    createServer((socket) => socket.once("data", () => socket.end(alert))),
  );
  const refusal = async (own: object): Promise<string> => {
    const refused = Promise.withResolvers<Error>();
    connectTls({ host: "127.0.0.1", port, ...own }).on("error", refused.resolve);
    return (await refused.promise).message;
  };
  assert.match(
    await refusal({ cert: certPem, key: keyPem, certFile: "/pki/we.crt" }),
    /alert certificate expired[\s\S]*: our client certificate has expired[\s\S]*file \/pki\/we\.crt/,
  );
  assert.doesNotMatch(await refusal(pair), /our client/);
});

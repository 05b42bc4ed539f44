import assert from "node:assert/strict";
import { once } from "node:events";
import { request } from "node:https";
import { test } from "node:test";
import { startTestServer } from "../testing/start-test-server.ts";

test("each request with a client certificate counts its remaining lifetime", async (t) => {
  const server = await startTestServer(t);
  const { cert, key } = await server.clientCertificate("jane", ["developers"]);
  for (let i = 0; i < 2; i++) {
    const sent = request({ host: "127.0.0.1", port: server.port, ca: server.ca, cert, key, path: "/version" }).end();
    const [response] = await once(sent, "response");
    assert.equal(response.statusCode, 200);
    response.resume();
  }
  const { text } = await server.request("GET", "/metrics");
  const row = (name: string): number =>
    Number(new RegExp(`^apiserver_client_certificate_expiration_seconds_${name} (\\S+)$`, "m").exec(text)?.[1]);
  assert.equal(row("count"), 2);
  assert.ok(row("sum") > 0);
  assert.equal(row('bucket\\{le="0"\\}'), 0, "it is not over");
  const bounds = [...text.matchAll(/^apiserver_client_certificate_expiration_seconds_bucket\{le="([^"]+)"\}/gm)].map(
    ([, le]) => le,
  );
  const hours = [0, 0.5, 1, 2, 6, 12, 24, 48, 96, 168, 720, 2160, 4320, 8640];
  assert.deepEqual(bounds.map(Number), [...hours.map((one) => one * 3600), Number.NaN]);
});

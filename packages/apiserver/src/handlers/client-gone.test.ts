/** What a server does for a client that has disconnected takes turns of the event loop from others. */
import assert from "node:assert/strict";
import { connect } from "node:http2";
import { after, before, test } from "node:test";
import { waitFor } from "@coxswain/apimachinery/testing/wait-for";
import { startTestServer } from "../testing/start-test-server.ts";

type Server = Awaited<ReturnType<typeof startTestServer>>;
let server: Server;
before(async () => {
  server = await startTestServer(undefined);
});
after(() => server.stop());

const configMaps = "/api/v1/namespaces/default/configmaps";
const aConfigMap = (name: string, data: Record<string, string>) => ({
  apiVersion: "v1",
  kind: "ConfigMap",
  metadata: { name },
  data,
});
const manyKeys = Object.fromEntries(Array.from({ length: 40_000 }, (_, i) => [`key-${i}`, "x"]));

for (const { what, method, path, name, type, body, left } of [
  {
    what: "a create",
    method: "POST",
    path: configMaps,
    type: "application/json",
    body: JSON.stringify(aConfigMap("abandoned", manyKeys)),
    name: "abandoned",
    left: [404, 0],
  },
  {
    what: "an apply",
    method: "PATCH",
    path: `${configMaps}/applied?fieldManager=many`,
    type: "application/apply-patch+yaml",
    body: JSON.stringify(aConfigMap("applied", manyKeys)),
    name: "applied",
    left: [200, 1],
  },
]) {
  test(`${what} of many values is abandoned when its client disconnects before it is written`, async () => {
    if (method === "PATCH") await server.request("POST", configMaps, aConfigMap(name, { a: "b" }));
    const session = connect(server.url, { ca: server.ca });
    const headers = { ":method": method, ":path": path, "content-type": type, authorization: `Bearer ${server.adminToken}` };
    const stream = session.request(headers);
    stream.on("error", () => {});
    stream.end(body);
    await waitFor(async () => (await inFlight()) === "1", { what: "the request to be in flight" });
    session.destroy();
    await waitFor(async () => (await inFlight()) === "0", { what: "the request to end" });
    const { code, body: found } = await server.request("GET", `${configMaps}/${name}`);
    assert.deepEqual([code, Object.keys(found.data ?? {}).length], left);
  });
}

async function inFlight(): Promise<string | undefined> {
  const { body } = await server.request("GET", "/metrics");
  return /^apiserver_current_inflight_requests\{request_kind="mutating"\} (\d+)/m.exec(String(body))?.[1];
}

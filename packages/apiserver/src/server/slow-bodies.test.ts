/** Clients that begin requests and do not send their bodies hold no seats of the limits of concurrent requests. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { test } from "node:test";
import { connect, type TLSSocket } from "node:tls";
import { waitFor } from "@coxswain/apimachinery/testing/wait-for";
import { startTestServer } from "../testing/start-test-server.ts";

/** Below the limit of each limiter; all rounds together are above it. */
const [rounds, perRound] = [4, 6];
const text = '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"generateName":"slow-"}}';

for (const { limiter, flags } of [
  { limiter: "priority and fairness", flags: [] },
  { limiter: "max in flight", flags: ["--enable-priority-and-fairness=false"] },
]) {
  test(`${limiter}: bodies that do not arrive take no seat, and are handled when they have arrived`, async (t) => {
    const server = await startTestServer(t, ["--max-requests-inflight=8", "--max-mutating-requests-inflight=8", ...flags]);
    await server.request("POST", "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", {
      metadata: { name: "slow" },
      roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "ClusterRole", name: "cluster-admin" },
      subjects: [{ kind: "User", apiGroup: "rbac.authorization.k8s.io", name: "slow" }],
    });
    const headers = { "impersonate-user": "slow", "impersonate-group": "system:authenticated" };
    // The authorizer sees the binding a little later; a request that comes before is forbidden, and takes no seat either.
    await waitFor(
      async () => (await server.request("GET", "/api/v1/namespaces/default/configmaps", undefined, headers)).code === 200,
      { what: "the authorizer to see the binding" },
    );
    const { port } = new URL(server.url);
    const open = async (): Promise<TLSSocket> => {
      const socket = connect({ host: "127.0.0.1", port: Number(port), ca: server.ca, servername: "localhost" });
      await once(socket, "secureConnect");
      const head = [
        "POST /api/v1/namespaces/default/configmaps HTTP/1.1",
        "host: localhost",
        `authorization: Bearer ${server.adminToken}`,
        "impersonate-user: slow",
        "impersonate-group: system:authenticated",
        "content-type: application/json",
        `content-length: ${text.length}`,
      ];
      socket.write(`${head.join("\r\n")}\r\n\r\n${text.slice(0, 10)}`);
      t.after(() => socket.destroy());
      return socket;
    };
    const socketsInTurn: TLSSocket[] = [];
    const inFlight = async (): Promise<string | undefined> => {
      const { body } = await server.request("GET", "/metrics");
      return /^apiserver_current_inflight_requests\{request_kind="mutating"\} (\d+)/m.exec(String(body))?.[1];
    };
    for (let round = 0; round < rounds; round++) {
      socketsInTurn.push(...(await Promise.all(Array.from({ length: perRound }, open))));
      await waitFor(async () => (await inFlight()) === "0", { what: "the seats to be given back", timeoutMs: 20_000 });
    }
    const created = await server.request(
      "POST",
      "/api/v1/namespaces/default/configmaps",
      { apiVersion: "v1", kind: "ConfigMap", metadata: { name: "prompt" } },
      headers,
    );
    assert.equal(created.code, 201, "another request of the same user");
    const answers = socketsInTurn.slice(0, 5).map(async (socket) => {
      socket.write(text.slice(10));
      const [bytes] = await once(socket, "data");
      return String(bytes).slice(9, 12);
    });
    assert.deepEqual(await Promise.all(answers), Array(5).fill("201"));
  });
}

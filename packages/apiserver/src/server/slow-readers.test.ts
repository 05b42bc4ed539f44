/** Clients that request more than they read do not block others of their priority level. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { longestTurnOf } from "@coxswain/apimachinery/testing/cpu-time";
import { heldBytes } from "@coxswain/apimachinery/testing/held-bytes";
import { connectRaw, type RawClient } from "@coxswain/apimachinery/transport/http2/testing/raw-client";
import { getFrame, resetFrame, windowFrame } from "@coxswain/apimachinery/transport/http2/testing/raw-frames";
import { settings } from "@coxswain/apimachinery/transport/http2/wire/frames";
import { startTestServer } from "../testing/start-test-server.ts";

const server = await startTestServer({ after }, ["--max-requests-inflight=20", "--max-mutating-requests-inflight=10"]);
const path = "/api/v1/namespaces/default/configmaps";
const authorization = `Bearer ${server.adminToken}`;
const as = (user: string): [string, string][] => [
  ["authorization", authorization],
  ["impersonate-user", user],
  ["impersonate-group", "system:authenticated"],
];

before(async () => {
  const data = { text: "x".repeat(100_000) };
  for (let at = 0; at < 30; at++) await server.request("POST", path, { metadata: { name: `large-${at}` }, data });
  await server.request("POST", "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", {
    metadata: { name: "readers" },
    roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "ClusterRole", name: "cluster-admin" },
    subjects: ["slow", "other"].map((name) => ({ kind: "User", apiGroup: "rbac.authorization.k8s.io", name })),
  });
});

async function connect(): Promise<RawClient> {
  const client = await connectRaw({ port: server.port, ca: server.ca, settings: [[settings.initialWindowSize, 0]] });
  after(() => void client.socket.destroy());
  return client;
}

for (const { name, query } of [
  { name: "lists", query: "" },
  { name: "watches", query: "?watch=true" },
]) {
  test(`49 unread ${name} of one user hold no seat that another needs`, async () => {
    const [slow, other] = [await connect(), await connect()];
    const streams = Array.from({ length: 49 }, (_, at) => 1 + 2 * at);
    slow.send(...streams.map((stream) => getFrame(stream, path + query, as("slow"))));
    await slow.next("headers", 1);
    other.send(windowFrame(0, 2 ** 30), getFrame(1, path, as("other")), windowFrame(1, 2 ** 30));
    const { status, body } = await other.answer(1);
    assert.equal(status, 200);
    assert.ok(body.length > 3e6);
    await slow.until(
      () => streams.every((stream) => slow.of("headers", stream).length > 0),
      "the beginning of all other answers",
    );
    slow.socket.destroy();
  });
}

test("the initial events of 50 unread watches are made as they are read", async () => {
  const slow = await connect();
  const before = heldBytes();
  const longest = await longestTurnOf(300, async (round) => {
    const streams = Array.from({ length: 50 }, (_, at) => 1 + 2 * (at + 50 * round));
    slow.send(...streams.map((stream) => getFrame(stream, `${path}?watch=true&resourceVersion=0`, as("slow"))));
    await slow.until(() => streams.every((stream) => slow.of("headers", stream).length > 0), "the beginning of all watches");
    if (round === 0) slow.send(...streams.map((stream) => resetFrame(stream)));
  });
  assert.ok(longest < 300, `a turn of ${longest} ms`);
  const held = heldBytes() - before;
  assert.ok(held < 50e6, `${held} bytes for 50 watches of a list of 3 MB`);
  // Streams that are read get the complete response.
  const other = await connect();
  other.send(windowFrame(0, 2 ** 30), getFrame(1, `${path}?watch=true&resourceVersion=0`, as("other")), windowFrame(1, 2 ** 30));
  await other.until(() => other.body(1).toString("latin1").split('"ADDED"').length === 31, "all initial events");
  slow.socket.destroy();
});

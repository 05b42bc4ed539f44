import assert from "node:assert/strict";
import { test } from "node:test";
import { pods } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { createCluster } from "../../create-cluster.ts";

test("reading a log does not advance virtual time, and a followed log ends with its container", async () => {
  await using cluster = await createCluster({
    controllers: false,
    clock: "virtual",
    pods: [{ logs: ({ previous }) => [previous ? "before" : "now"], ends: { after: "1m", exitCode: 1 } }],
  });
  const pod = { metadata: { name: "web", namespace: "default" }, spec: { containers: [{ name: "c", image: "i" }] } };
  await cluster.client.create(pods, pod as never);
  await cluster.advance("5s");
  const before = cluster.now();
  const log = async (query: string) => {
    const { status, body } = await cluster.client.raw("GET", `/api/v1/namespaces/default/pods/web/log?${query}`);
    return [status, body.toString()];
  };
  assert.match((await log("timestamps=true")).join(" "), /^200 2022-01-01T00:00:0\d\.000000000Z now\n$/);
  assert.ok(cluster.now() - before < 1_000, `time moved by ${cluster.now() - before} ms`);
  assert.equal((await log("previous=true"))[0], 400);
  const followed = log("follow=true");
  await cluster.advance("2m");
  assert.deepEqual(await followed, [200, "now\n"]);
  assert.deepEqual(await log("previous=true"), [200, "before\n"]);
});

import assert from "node:assert/strict";
import { test } from "node:test";
import { startTestServer } from "../../../testing/start-test-server.ts";

test("component statuses are asked for with each request, and stored nowhere", async (t) => {
  const server = await startTestServer(t);
  const path = "/api/v1/componentstatuses";
  const { body } = await server.request("GET", path);
  assert.equal(body.kind, "ComponentStatusList");
  const names = body.items.map((item: { metadata: { name: string } }) => item.metadata.name);
  assert.deepEqual(names, ["controller-manager", "scheduler"]);
  for (const { conditions } of body.items) assert.equal(conditions[0].type, "Healthy");

  const table = await server.request("GET", path, undefined, { accept: "application/json;as=Table;v=v1;g=meta.k8s.io" });
  assert.deepEqual(
    table.body.columnDefinitions.map((column: { name: string }) => column.name),
    ["Name", "Status", "Message", "Error"],
  );
  assert.equal((await server.request("GET", `${path}/scheduler`)).body.metadata.name, "scheduler");
  assert.equal((await server.request("GET", `${path}/moon`)).code, 404);
  assert.equal((await server.request("POST", path, {})).code, 405);
});

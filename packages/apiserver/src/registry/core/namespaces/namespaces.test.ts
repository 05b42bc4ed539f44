import assert from "node:assert/strict";
import { test } from "node:test";
import { hasFields } from "@coxswain/apimachinery/testing/has-fields";
import { startTestServer } from "../../../testing/start-test-server.ts";

test("a namespace is deleted in two steps", async (t) => {
  const server = await startTestServer(t, ["--advertise-address=192.0.2.1"]);
  const path = "/api/v1/namespaces/web";
  const created = await server.request("POST", "/api/v1/namespaces", {
    apiVersion: "v1",
    kind: "Namespace",
    metadata: { name: "web" },
  });
  hasFields(created.body, {
    metadata: { labels: { "kubernetes.io/metadata.name": "web" } },
    spec: { finalizers: ["kubernetes"] },
    status: { phase: "Active" },
  });

  const deleted = await server.request("DELETE", path);
  assert.equal(deleted.body.status.phase, "Terminating");
  assert.ok(deleted.body.metadata.deletionTimestamp);
  assert.equal((await server.request("DELETE", path)).body.metadata.resourceVersion, deleted.body.metadata.resourceVersion);

  const removed = await server.request("PUT", path, { ...deleted.body, spec: {} });
  assert.deepEqual(removed.body.spec.finalizers, ["kubernetes"], "only /finalize changes the finalizers");

  const finalized = await server.request("PUT", `${path}/finalize`, { ...removed.body, spec: {} });
  assert.equal(finalized.code, 200);
  assert.equal((await server.request("GET", path)).code, 404);
});

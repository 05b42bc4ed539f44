import assert from "node:assert/strict";
import { test } from "node:test";
import { waitFor } from "@coxswain/apimachinery/testing/wait-for";
import { startTestServer } from "../testing/start-test-server.ts";

test("the queues of the server's own controllers are counted under upstream's names", async (t) => {
  const server = await startTestServer(t);
  const added = async (): Promise<Map<string, number>> => {
    const { text } = await server.request("GET", "/metrics");
    const lines = text.matchAll(/^workqueue_adds_total\{name="(\w+)"\} (\d+)$/gm);
    return new Map([...lines].map(([, name, count]) => [name as string, Number(count)]));
  };
  const definition = {
    metadata: { name: "foos.queues.example.com" },
    spec: {
      group: "queues.example.com",
      names: { plural: "foos", kind: "Foo" },
      scope: "Namespaced",
      versions: [{ name: "v1", served: true, storage: true, schema: { openAPIV3Schema: { type: "object" } } }],
    },
  };
  const path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
  assert.equal((await server.request("POST", path, definition)).code, 201);
  for (const name of [
    "autoregister",
    "AvailableConditionController",
    "crd_naming_condition_controller",
    "crdEstablishing",
    "crd_finalizer",
    "non_structural_schema_condition_controller",
    "kubernetes_api_approval_conformant_condition_controller",
  ]) {
    await waitFor(async () => ((await added()).get(name) ?? 0) > 0, { what: `work of ${name}` });
  }
});

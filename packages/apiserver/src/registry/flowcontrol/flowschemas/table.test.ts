import assert from "node:assert/strict";
import { test } from "node:test";
import { waitFor } from "@coxswain/apimachinery/testing/wait-for";
import { startTestServer } from "../../../testing/start-test-server.ts";

test("a table of flow schemas has those first that requests meet first, in every form", async (t) => {
  const server = await startTestServer(t);
  const path = "/apis/flowcontrol.apiserver.k8s.io/v1beta2/flowschemas";
  await waitFor(async () => (await server.request("GET", `${path}/probes`)).code === 200, { what: "the suggested schemas" });
  for (const form of ["includeObject=None", "includeObject=Object", "pretty=1"]) {
    const accept = "application/json;as=Table;v=v1;g=meta.k8s.io";
    const { body } = await server.request("GET", `${path}?${form}`, undefined, { accept });
    const precedences = body.rows.map(({ cells }: { cells: unknown[] }) => cells[2]);
    assert.ok(precedences.length > 5);
    assert.deepEqual(
      precedences,
      precedences.toSorted((a: number, b: number) => a - b),
      form,
    );
  }
  const { body } = await server.request("GET", path);
  const names = body.items.map(({ metadata }: { metadata: { name: string } }) => metadata.name);
  assert.deepEqual(names, names.toSorted(), "the list itself is as it was");
});

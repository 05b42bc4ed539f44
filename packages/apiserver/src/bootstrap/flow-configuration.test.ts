import assert from "node:assert/strict";
import { after, test } from "node:test";
import type { KubeObject } from "@coxswain/apimachinery/objects/meta/types";
import { startTestServer } from "../testing/start-test-server.ts";
import { autoUpdate, ensureFlowConfiguration, revise } from "./flow-configuration.ts";

interface WithShares extends KubeObject {
  spec: { shares: number };
}

const wanted: WithShares = { metadata: { name: "system" }, spec: { shares: 30 } };
const found = (name: string, mark: string | undefined, generation: number, shares = 7): WithShares => ({
  metadata: { name, generation, annotations: mark === undefined ? {} : { [autoUpdate]: mark } },
  spec: { shares },
});

for (const { name, object, mark, shares } of [
  { name: "ours that differs is brought back", object: found("system", "true", 2), mark: "true", shares: 30 },
  { name: "the user's is left", object: found("system", "false", 2), mark: undefined, shares: undefined },
  { name: "the user's is left, though never changed", object: found("system", "false", 1), mark: undefined, shares: undefined },
  { name: "one that was changed without a word is the user's", object: found("system", undefined, 2), mark: "false", shares: 7 },
  { name: "one that was never changed is ours", object: found("system", undefined, 1), mark: "true", shares: 30 },
  { name: "a word that is none counts as no word", object: found("system", "perhaps", 3), mark: "false", shares: 7 },
  { name: "ours that is right is left", object: found("system", "true", 2, 30), mark: undefined, shares: undefined },
]) {
  test(name, () => {
    const next = revise(object, wanted);
    assert.equal(next?.metadata.annotations?.[autoUpdate], mark);
    assert.equal(next?.spec.shares, shares);
  });
}

test("a mandatory object belongs to the server whatever its annotation says", () => {
  const next = revise(found("exempt", "false", 4), { metadata: { name: "exempt" }, spec: { shares: 1 } });
  assert.deepEqual([next?.metadata.annotations?.[autoUpdate], next?.spec.shares], ["true", 1]);
});

test("missing defaults are created, obsolete ones are deleted, and objects of users stay", async () => {
  const server = await startTestServer({ after });
  const path = "/apis/flowcontrol.apiserver.k8s.io/v1beta2/prioritylevelconfigurations";
  const spec = { type: "Limited", limited: { assuredConcurrencyShares: 1, limitResponse: { type: "Reject" } } };
  await server.request("POST", path, { metadata: { name: "of-another-version", annotations: { [autoUpdate]: "true" } }, spec });
  await server.request("POST", path, { metadata: { name: "mine" }, spec });
  await server.request("DELETE", `${path}/system`);
  await server.request("DELETE", `${path}/exempt`);
  await ensureFlowConfiguration(server.client);
  const { items } = (await server.request("GET", path)).body;
  const names = items.map(({ metadata }: { metadata: { name: string } }) => metadata.name);
  for (const name of ["system", "exempt", "mine"]) assert.ok(names.includes(name), name);
  assert.ok(!names.includes("of-another-version"));
  const system = (await server.request("GET", `${path}/system`)).body.metadata;
  assert.equal(system.annotations[autoUpdate], "true");
  assert.equal(system.managedFields[0].manager, "api-priority-and-fairness-config-producer-v1");
});

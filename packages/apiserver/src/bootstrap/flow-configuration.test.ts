import assert from "node:assert/strict";
import { after, test } from "node:test";
import { alreadyExists, conflict, notFound } from "@coxswain/apimachinery/objects/errors/status-error";
import type { KubeObject } from "@coxswain/apimachinery/objects/meta/types";
import { flowSchemas, priorityLevelConfigurations } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { newFakeClock } from "@coxswain/apimachinery/process/clock/fake-clock";
import { discardLogger } from "@coxswain/apimachinery/process/logging/logger";
import { newFakeClient } from "@coxswain/apimachinery/testing/fake-client";
import { settle } from "@coxswain/apimachinery/testing/wait-for";
import { startTestServer } from "../testing/start-test-server.ts";
import { autoUpdate, ensureFlowConfiguration, keepFlowConfiguration, revise } from "./flow-configuration.ts";
import { defaultLevels, defaultSchemas } from "./flow-schemas.ts";

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

test("the other mandatory object is the server's, too, and annotations of others stay", () => {
  const object = found("catch-all", "false", 4);
  Object.assign(object.metadata.annotations ?? {}, { "example.com/a": "b" });
  const next = revise(object, { metadata: { name: "catch-all" }, spec: { shares: 1 } });
  assert.deepEqual(next?.metadata.annotations, { [autoUpdate]: "true", "example.com/a": "b" });
  assert.equal(next?.spec.shares, 1);
});

type Level = KubeObject & { spec: object };
const levelNames = (client: ReturnType<typeof newFakeClient>) =>
  client.objects<Level>(priorityLevelConfigurations).map(({ metadata }) => metadata.name);

for (const verb of ["create", "update", "delete"] as const) {
  for (const { name, fault } of [
    { name: "is there already", fault: alreadyExists(priorityLevelConfigurations, "x") },
    { name: "was changed", fault: conflict(priorityLevelConfigurations, "x", "changed") },
    { name: "is gone", fault: notFound(priorityLevelConfigurations, "x") },
  ]) {
    test(`an object that ${name} when another server is faster to ${verb} it does not end the round`, async () => {
      const client = newFakeClient();
      await ensureFlowConfiguration(client);
      client.remove(priorityLevelConfigurations, "system");
      client.put<Level>(
        priorityLevelConfigurations,
        { metadata: { name: "node-high", annotations: { [autoUpdate]: "true" } }, spec: {} },
        { metadata: { name: "obsolete", annotations: { [autoUpdate]: "true" } }, spec: {} },
      );
      client.remove(flowSchemas, "probes");
      client.clearActions();
      client.react(verb, "prioritylevelconfigurations", () => {
        throw fault;
      });
      await ensureFlowConfiguration(client);
      const writes = client.writes.map((write) => `${write.verb} ${write.name}`);
      assert.deepEqual(new Set(writes), new Set(["create system", "update node-high", "delete obsolete", "create probes"]));
      assert.equal(writes.at(-1), "create probes");
    });
  }
}

test("the defaults are looked after each minute, also after a failure, until the server stops", async () => {
  const clock = newFakeClock();
  const client = newFakeClient({ clock });
  const errors: string[] = [];
  const log = { ...discardLogger, error: (message: string) => void errors.push(message) };
  const stop = new AbortController();
  keepFlowConfiguration(client, clock, log, stop.signal);
  assert.equal(client.actions.length, 0);
  await clock.advance(60_000);
  await settle(200);
  assert.ok(levelNames(client).includes("system"));
  let failing = true;
  client.react("list", "prioritylevelconfigurations", () => {
    if (failing) throw new Error("the store is full");
  });
  client.remove(priorityLevelConfigurations, "system");
  await clock.advance(60_000);
  await settle(20);
  assert.deepEqual(errors, ["cannot maintain the default flow schemas and priority levels"]);
  failing = false;
  await clock.advance(60_000);
  await settle(50);
  assert.ok(levelNames(client).includes("system"));
  client.react("list", "prioritylevelconfigurations", () => {
    stop.abort();
    throw stop.signal.reason;
  });
  await clock.advance(60_000);
  await settle(20);
  assert.deepEqual([errors.length, clock.waiting], [1, 0], "the end of the server is no failure");
});

/** Source: k8s.io/apiserver pkg/apis/flowcontrol/bootstrap/default.go */
test("the default levels have upstream's shares and queues, and their schemas its precedences", () => {
  const levels = defaultLevels.map(({ metadata, spec }) => {
    const { assuredConcurrencyShares: shares, limitResponse } = spec?.limited ?? {};
    const { queues, handSize, queueLengthLimit } = limitResponse?.queuing ?? {};
    return [metadata.name, spec?.type, shares, limitResponse?.type, queues, handSize, queueLengthLimit];
  });
  const none = undefined;
  assert.deepEqual(levels.toSorted(), [
    ["catch-all", "Limited", 5, "Reject", none, none, none],
    ["exempt", "Exempt", none, none, none, none, none],
    ["global-default", "Limited", 20, "Queue", 128, 6, 50],
    ["leader-election", "Limited", 10, "Queue", 16, 4, 50],
    ["node-high", "Limited", 40, "Queue", 64, 6, 50],
    ["system", "Limited", 30, "Queue", 64, 6, 50],
    ["workload-high", "Limited", 40, "Queue", 128, 6, 50],
    ["workload-low", "Limited", 100, "Queue", 128, 6, 50],
  ]);
  const schemas = defaultSchemas.map(({ metadata, spec }) => [
    ...[spec?.matchingPrecedence, metadata.name, spec?.priorityLevelConfiguration?.name, spec?.distinguisherMethod?.type],
  ]);
  assert.deepEqual(schemas, [
    [1, "exempt", "exempt", none],
    [2, "probes", "exempt", none],
    [100, "system-leader-election", "leader-election", "ByUser"],
    [200, "workload-leader-election", "leader-election", "ByUser"],
    [400, "system-node-high", "node-high", "ByUser"],
    [500, "system-nodes", "system", "ByUser"],
    [800, "kube-controller-manager", "workload-high", "ByNamespace"],
    [800, "kube-scheduler", "workload-high", "ByNamespace"],
    [900, "kube-system-service-accounts", "workload-high", "ByNamespace"],
    [9000, "service-accounts", "workload-low", "ByUser"],
    [9900, "global-default", "global-default", "ByUser"],
    [10000, "catch-all", "catch-all", "ByUser"],
  ]);
});

import assert from "node:assert/strict";
import { test } from "node:test";
import type { APIService, APIServiceStatus } from "@coxswain/apimachinery/objects/schema/kinds/apiregistration/v1";
import type { StrategyContext } from "../../generic/strategy.ts";
import { apiServiceStatusStrategy, apiServiceStrategy } from "./strategy.ts";

const aService = (metadata: object): APIService => ({
  metadata: { name: "v1.example.com", ...metadata },
  spec: { group: "example.com", version: "v1", groupPriorityMinimum: 1, versionPriority: 1 },
});

test("an update of the status changes neither labels, annotations, finalizers nor owners", () => {
  const owner = (name: string) => ({ apiVersion: "v1", kind: "ConfigMap", name, uid: name });
  const all = (value: string) => ({
    labels: { a: value },
    annotations: { a: value },
    finalizers: [`example.com/${value}`],
    ownerReferences: [owner(value)],
  });
  for (const stored of [{}, all("old")]) {
    const next = aService(all("new"));
    apiServiceStatusStrategy.prepareForUpdate?.(next, aService(stored), {} as StrategyContext);
    assert.deepEqual(next.metadata, { name: "v1.example.com", ...stored });
  }
});

test("a group without a service is available from its creation on; what a request says of the status is dropped", () => {
  const ctx = { now: () => 60_000 } as unknown as StrategyContext;
  const status: APIServiceStatus = { conditions: [{ type: "Available", status: "False" }] };
  const local: APIService = { ...aService({}), status };
  const remote: APIService = { ...aService({}), status };
  remote.spec = { ...remote.spec, service: { name: "s", namespace: "n" } } as APIService["spec"];
  for (const created of [local, remote]) apiServiceStrategy.prepareForCreate?.(created, ctx);
  assert.deepEqual(local.status, {
    conditions: [
      {
        type: "Available",
        status: "True",
        lastTransitionTime: "1970-01-01T00:01:00Z",
        reason: "Local",
        message: "Local APIServices are always available",
      },
    ],
  });
  assert.deepEqual(remote.status, {});
});

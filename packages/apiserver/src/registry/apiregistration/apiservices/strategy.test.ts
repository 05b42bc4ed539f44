import assert from "node:assert/strict";
import { test } from "node:test";
import type { APIService } from "@coxswain/apimachinery/objects/schema/kinds/apiregistration/v1";
import type { StrategyContext } from "../../generic/strategy.ts";
import { apiServiceStatusStrategy } from "./strategy.ts";

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

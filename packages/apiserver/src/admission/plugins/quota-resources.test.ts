/** Which writes ResourceQuota looks at, by group and resource; without a server. */
import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { newInformerFactory } from "@coxswain/apimachinery/informers/factory";
import type { KubeObject } from "@coxswain/apimachinery/objects/meta/types";
import { resourceQuotas } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { newFakeClock } from "@coxswain/apimachinery/process/clock/fake-clock";
import { discardLogger } from "@coxswain/apimachinery/process/logging/logger";
import { newFakeClient } from "@coxswain/apimachinery/testing/fake-client";
import type { AdmissionAttributes } from "../plugin.ts";
import type { PluginContext } from "../plugin-context.ts";
import { resourceQuota } from "./resource-quota.ts";

/** The refusal of a creation in the namespace `web`, whose quota has these limits, all used up. */
async function refusalOf(t: TestContext, write: object, hard: Record<string, string>, limitedResources: object[] = []) {
  const clock = newFakeClock();
  const client = newFakeClient({ clock });
  const quota = { metadata: { name: "q", namespace: "web" }, status: { hard, used: hard } };
  if (Object.keys(hard).length > 0) client.put(resourceQuotas, quota as KubeObject);
  const informers = newInformerFactory(client, { log: discardLogger, clock });
  const configurationOf = () => ({ limitedResources });
  const plugin = resourceQuota({
    client,
    informers,
    clock,
    configurationOf,
    featureEnabled: () => false,
  } as unknown as PluginContext);
  const end = new AbortController();
  t.after(() => end.abort());
  informers.start(end.signal);
  await informers.waitForSync(end.signal);
  const attributes = {
    operation: "CREATE",
    namespace: "web",
    name: "a",
    subresource: "",
    dryRun: false,
    object: { metadata: {} },
  };
  return Promise.resolve(plugin.validate?.({ ...attributes, ...write } as unknown as AdmissionAttributes)).then(
    () => "",
    (err: Error) => err.message,
  );
}

const of = (group: string, resource: string) => ({
  resource: { group, version: "v1", resource },
  kind: { group, version: "v1", kind: resource === "namespaces" ? "Namespace" : "Thing" },
});

for (const { name, write, hard, isCharged } of [
  {
    name: "a custom resource that is called namespaces",
    ...{ write: of("example.com", "namespaces"), hard: { "count/namespaces.example.com": "1" }, isCharged: true },
  },
  { name: "a namespace", write: of("", "namespaces"), hard: { "count/namespaces": "1" }, isCharged: false },
  {
    name: "a subresource",
    ...{ write: { ...of("", "configmaps"), subresource: "status" }, hard: { configmaps: "1" }, isCharged: false },
  },
  {
    name: "an object of the cluster",
    write: { ...of("", "configmaps"), namespace: "" },
    hard: { configmaps: "1" },
    isCharged: false,
  },
  { name: "an object", write: of("", "configmaps"), hard: { configmaps: "1" }, isCharged: true },
]) {
  test(`a full quota ${isCharged ? "refuses" : "lets be"} ${name}`, async (t) =>
    assert.equal((await refusalOf(t, write, hard)).includes("exceeded quota: q"), isCharged));
}

for (const { group, limited, isLimited } of [
  { group: "example.com", limited: { resource: "widgets" }, isLimited: false },
  { group: "example.com", limited: { apiGroup: "example.com", resource: "widgets" }, isLimited: true },
  { group: "example.com", limited: { apiGroup: "example.com", resource: "others" }, isLimited: false },
  { group: "", limited: { resource: "widgets" }, isLimited: true },
  { group: "", limited: { apiGroup: "example.com", resource: "widgets" }, isLimited: false },
]) {
  test(`widgets of the group ${JSON.stringify(group)} are ${isLimited ? "" : "not "}limited by ${JSON.stringify(limited)}`, async (t) => {
    const name = group === "" ? "count/widgets" : `count/widgets.${group}`;
    const refusal = await refusalOf(t, of(group, "widgets"), {}, [{ ...limited, matchContains: ["count/"] }]);
    assert.equal(refusal.endsWith(`insufficient quota to consume: ${name}`), isLimited, refusal);
  });
}

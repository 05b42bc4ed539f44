/** Plugins that require or make the namespace of an object, each on its own. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { alreadyExists, internalError } from "@coxswain/apimachinery/objects/errors/status-error";
import { namespaces } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { newFakeClient } from "@coxswain/apimachinery/testing/fake-client";
import type { AdmissionAttributes } from "../plugin.ts";
import type { PluginContext } from "../plugin-context.ts";
import { namespaceAutoProvision } from "./namespace-auto-provision.ts";
import { namespaceExists } from "./namespace-exists.ts";
import { podNodeSelector } from "./pod-node-selector.ts";
import { podTolerationRestriction } from "./pod-toleration-restriction.ts";

/** The API knows the namespace `web`; the cache lags behind. */
function aContext() {
  const client = newFakeClient();
  client.put(namespaces, { metadata: { name: "web" } });
  const informers = { for: () => ({ synced: true, lister: { get: () => undefined } }) };
  const context = { client, informers, configurationOf: () => undefined } as unknown as PluginContext;
  return { client, context, made: () => client.writes.map(({ verb, name }) => `${verb} ${name}`) };
}

function write(more: object = {}): AdmissionAttributes {
  return {
    ...{ operation: "CREATE", kind: { group: "", version: "v1", kind: "ConfigMap" }, namespace: "new", name: "a", dryRun: false },
    ...{ resource: { group: "", version: "v1", resource: "configmaps" }, subresource: "", signal: new AbortController().signal },
    ...more,
  } as unknown as AdmissionAttributes;
}

const aNamespace = { kind: { group: "", version: "v1", kind: "Namespace" } };
const another = { kind: { group: "example.com", version: "v1", kind: "Namespace" } };

for (const { name, more, made } of [
  { name: "an object in a namespace that is not there", more: {}, made: ["create new"] },
  { name: "an object in one that is there", more: { namespace: "web" }, made: [] },
  { name: "a namespace itself", more: aNamespace, made: [] },
  { name: "an object of a kind that is called Namespace in another group", more: another, made: ["create new"] },
  { name: "a cluster-scoped object", more: { namespace: "" }, made: [] },
  { name: "a dry run", more: { dryRun: true }, made: [] },
]) {
  test(`NamespaceAutoProvision makes ${made.length === 0 ? "nothing" : "the namespace"} for ${name}`, async () => {
    const { context, made: written } = aContext();
    await namespaceAutoProvision(context).admit?.(write(more));
    assert.deepEqual(written(), made);
  });
}

test("a namespace that another writer makes at the same time will do, a failure to make it is the answer", async () => {
  const { client, context } = aContext();
  const plugin = namespaceAutoProvision(context);
  client.react("create", "namespaces", () => {
    throw alreadyExists(namespaces, "new");
  });
  await plugin.admit?.(write());
  client.react("create", "namespaces", () => {
    throw internalError(new Error("etcd is away"));
  });
  await assert.rejects(async () => plugin.admit?.(write()), /etcd is away/);
});

for (const operation of ["CREATE", "UPDATE", "DELETE"] as const)
  for (const { name, more, isRefused } of [
    { name: "an object in a namespace that is not there", more: {}, isRefused: true },
    { name: "an object in one that is there", more: { namespace: "web" }, isRefused: false },
    { name: "a namespace itself", more: aNamespace, isRefused: false },
    { name: "an object of a kind that is called Namespace in another group", more: another, isRefused: true },
    { name: "a cluster-scoped object", more: { namespace: "" }, isRefused: false },
  ]) {
    test(`NamespaceExists ${isRefused ? "refuses" : "lets be"} the ${operation} of ${name}`, async () => {
      const plugin = namespaceExists(aContext().context);
      assert.equal(plugin.handles(operation), true);
      const answer = async () => plugin.validate?.(write({ ...more, operation }));
      if (isRefused) await assert.rejects(answer, { code: 404, message: 'namespaces "new" not found' });
      else await answer();
    });
  }

for (const plugin of [podNodeSelector, podTolerationRestriction]) {
  test(`${plugin.name} reads a namespace that the cache lacks, and refuses a pod of one that is not there`, async () => {
    const { admit } = plugin(aContext().context);
    const pod = (namespace: string) =>
      write({ namespace, resource: { group: "", version: "v1", resource: "pods" }, object: { metadata: {}, spec: {} } });
    await admit?.(pod("web"));
    await assert.rejects(async () => admit?.(pod("new")), { code: 404, message: 'namespaces "new" not found' });
  });
}

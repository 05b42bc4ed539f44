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
function aContext(annotations: Record<string, string> = {}, configuration?: object) {
  const client = newFakeClient();
  client.put(namespaces, { metadata: { name: "web", annotations } });
  const informers = { for: () => ({ synced: true, lister: { get: () => undefined } }) };
  const context = { client, informers, configurationOf: () => configuration } as unknown as PluginContext;
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

const aPod = (spec: object) =>
  write({ namespace: "web", resource: { group: "", version: "v1", resource: "pods" }, object: { metadata: {}, spec } });

for (const { name, annotation, whitelist, had, want } of [
  {
    name: "gets that of its namespace besides its own",
    annotation: "a=b, c=d",
    had: { e: "f" },
    want: { a: "b", c: "d", e: "f" },
  },
  { name: "with the same value is taken", annotation: "a=b", had: { a: "b" }, want: { a: "b" } },
  { name: "with another value is refused", annotation: "a=b", had: { a: "c" }, want: /conflicts with its namespace node label/ },
  {
    name: "with one other value of several is refused",
    annotation: "a=b,c=d",
    had: { a: "c" },
    want: /conflicts with its namespace/,
  },
  { name: "within the whitelist is taken", whitelist: "a=b,c=d", had: { c: "d" }, want: { c: "d" } },
  {
    name: "with a key that the whitelist lacks is refused",
    whitelist: "a=b",
    had: { a: "b", c: "d" },
    want: /its namespace whitelist/,
  },
  {
    name: "with another value than the whitelist is refused",
    whitelist: "a=b",
    had: { a: "c" },
    want: /its namespace whitelist/,
  },
  { name: "is free without a whitelist", had: { a: "b" }, want: { a: "b" } },
]) {
  test(`PodNodeSelector: a pod's node selector ${name}`, async () => {
    const annotations = annotation && { "scheduler.alpha.kubernetes.io/node-selector": annotation };
    const podNodeSelectorPluginConfig = whitelist === undefined ? {} : { web: whitelist };
    const plugin = podNodeSelector(aContext(annotations || {}, { podNodeSelectorPluginConfig }).context);
    const pod = aPod({ nodeSelector: had });
    if (want instanceof RegExp) return assert.rejects(async () => plugin.admit?.(pod), { code: 403, message: want });
    await plugin.admit?.(pod);
    assert.deepEqual(pod.object, { metadata: {}, spec: { nodeSelector: want } });
  });
}

const leaving = (tolerationSeconds?: number, key = "a") => ({ key, operator: "Exists", effect: "NoExecute", tolerationSeconds });
for (const { name, allowed, tolerated, isTaken } of [
  { name: "as long as allowed", allowed: leaving(10), tolerated: leaving(10), isTaken: true },
  { name: "less long than allowed", allowed: leaving(10), tolerated: leaving(9), isTaken: true },
  { name: "longer than allowed", allowed: leaving(10), tolerated: leaving(11), isTaken: false },
  { name: "for ever where a time is allowed", allowed: leaving(10), tolerated: leaving(), isTaken: false },
  { name: "for a time where for ever is allowed", allowed: leaving(), tolerated: leaving(10), isTaken: true },
  { name: "another taint", allowed: leaving(), tolerated: leaving(10, "b"), isTaken: false },
  { name: "a taint where all are allowed", allowed: { operator: "Exists" }, tolerated: leaving(10, "b"), isTaken: true },
]) {
  test(`PodTolerationRestriction ${isTaken ? "takes" : "refuses"} a pod that tolerates ${name}`, async () => {
    const plugin = podTolerationRestriction(aContext({}, { whitelist: [allowed] }).context);
    const answer = async () => plugin.admit?.(aPod({ containers: [], tolerations: [tolerated] }));
    if (isTaken) await answer();
    else await assert.rejects(answer, /conflict with its cluster whitelist/);
  });
}

import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { newInformerFactory } from "@coxswain/apimachinery/informers/factory";
import { internalError, StatusError } from "@coxswain/apimachinery/objects/errors/status-error";
import { namespaces } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { newFakeClock } from "@coxswain/apimachinery/process/clock/fake-clock";
import { discardLogger } from "@coxswain/apimachinery/process/logging/logger";
import { newFakeClient } from "@coxswain/apimachinery/testing/fake-client";
import type { AdmissionAttributes } from "../plugin.ts";
import type { PluginContext } from "../plugin-context.ts";
import { namespaceLifecycle } from "./namespace-lifecycle.ts";

const inNamespace = {
  operation: "CREATE",
  kind: { group: "", version: "v1", kind: "ConfigMap" },
  resource: { group: "", version: "v1", resource: "configmaps" },
  namespace: "web",
  name: "a",
} as const;
const ofNamespace = {
  operation: "DELETE",
  kind: { group: "", version: "v1", kind: "Namespace" },
  resource: { group: "", version: "v1", resource: "namespaces" },
  namespace: "web",
  name: "web",
} as const;

/** A cache that knows `web` as active, and `leaving` as terminating; `later` exists in the store only. */
async function aPlugin(t: TestContext) {
  const clock = newFakeClock();
  const client = newFakeClient({ clock });
  client.put(namespaces, { metadata: { name: "web" }, status: { phase: "Active" } } as never);
  client.put(namespaces, { metadata: { name: "leaving" }, status: { phase: "Terminating" } } as never);
  client.react("watch", "namespaces", () => (async function* () {})());
  const informers = newInformerFactory(client, { log: discardLogger, clock });
  const plugin = namespaceLifecycle({ informers, client } as Partial<PluginContext> as PluginContext);
  const end = new AbortController();
  t.after(() => end.abort());
  informers.start(end.signal);
  await informers.waitForSync(end.signal);
  const admit = (attributes: object) =>
    (plugin.admit?.(attributes as AdmissionAttributes) ?? Promise.reject(new Error("it admits nothing"))).then(
      () => "admitted",
      (err: Error) =>
        err instanceof StatusError ? `${err.code} ${err.status.details?.causes?.[0]?.reason ?? ""}`.trim() : String(err),
    );
  return { plugin, client, admit };
}

for (const { name, attributes, want } of [
  { name: "a creation in an active namespace", attributes: inNamespace, want: "admitted" },
  {
    name: "a creation in a terminating one",
    attributes: { ...inNamespace, namespace: "leaving" },
    want: "403 NamespaceTerminating",
  },
  {
    name: "an update in a terminating one",
    attributes: { ...inNamespace, namespace: "leaving", operation: "UPDATE" },
    want: "admitted",
  },
  { name: "a creation in none", attributes: { ...inNamespace, namespace: "nowhere" }, want: "404" },
  { name: "an update in none", attributes: { ...inNamespace, namespace: "nowhere", operation: "UPDATE" }, want: "404" },
  { name: "a deletion in none", attributes: { ...inNamespace, namespace: "nowhere", operation: "DELETE" }, want: "admitted" },
  { name: "a creation beside the namespaces", attributes: { ...inNamespace, namespace: "" }, want: "admitted" },
  {
    name: "an access review in none",
    attributes: {
      ...inNamespace,
      namespace: "nowhere",
      resource: { group: "authorization.k8s.io", version: "v1", resource: "localsubjectaccessreviews" },
    },
    want: "admitted",
  },
  {
    name: "the creation of a namespace",
    attributes: { ...ofNamespace, operation: "CREATE", namespace: "new", name: "new" },
    want: "admitted",
  },
  { name: "the deletion of a namespace", attributes: ofNamespace, want: "admitted" },
  ...["default", "kube-system", "kube-public"].map((immortal) => ({
    name: `the deletion of ${immortal}`,
    attributes: { ...ofNamespace, namespace: immortal, name: immortal },
    want: "403",
  })),
  {
    name: "the deletion of kube-node-lease",
    attributes: { ...ofNamespace, namespace: "kube-node-lease", name: "kube-node-lease" },
    want: "admitted",
  },
  {
    name: "the deletion of an object called default",
    attributes: { ...inNamespace, operation: "DELETE", name: "default" },
    want: "admitted",
  },
]) {
  test(`the life of namespaces: ${name} is ${want}`, async (t) => assert.equal(await (await aPlugin(t)).admit(attributes), want));
}

test("after the deletion of a namespace the store is read, because the cache may lag behind", async (t) => {
  const { admit, client } = await aPlugin(t);
  assert.equal(await admit(inNamespace), "admitted");
  await admit(ofNamespace);
  client.put(namespaces, { metadata: { name: "web" }, status: { phase: "Terminating" } } as never);
  assert.equal(await admit(inNamespace), "403 NamespaceTerminating");
  client.remove(namespaces, "web");
  assert.equal(await admit(inNamespace), "404");
  assert.equal(await admit({ ...inNamespace, namespace: "leaving" }), "403 NamespaceTerminating", "the others' are in the cache");
});

test("a namespace that the cache does not know yet is looked up; a store that fails is the answer", async (t) => {
  const { admit, client } = await aPlugin(t);
  client.put(namespaces, { metadata: { name: "later" }, status: { phase: "Active" } } as never);
  assert.equal(await admit({ ...inNamespace, namespace: "later" }), "admitted");
  client.react("get", "namespaces", () => {
    throw internalError(new Error("etcd is away"));
  });
  assert.equal(await admit({ ...inNamespace, namespace: "unknown" }), "500");
});

test("of two namespaces that were deleted the store is read for each", async (t) => {
  const { admit, client } = await aPlugin(t);
  client.put(namespaces, { metadata: { name: "other" }, status: { phase: "Active" } } as never);
  for (const name of ["other", "web"]) {
    await admit({ ...ofNamespace, namespace: name, name });
    client.put(namespaces, { metadata: { name }, status: { phase: "Terminating" } } as never);
  }
  for (const namespace of ["other", "web"]) assert.equal(await admit({ ...inNamespace, namespace }), "403 NamespaceTerminating");
  const pending = client.actions.filter(({ verb }) => verb === "get").map(({ name }) => name);
  assert.deepEqual(pending, ["other", "web"]);
});

test("thirty seconds after the deletion of a namespace the cache is read again", async (t) => {
  let nowMs = 1;
  t.mock.method(performance, "now", () => nowMs);
  const { admit, client } = await aPlugin(t);
  const reads = () => client.actions.filter(({ verb }) => verb === "get").length;
  await admit(ofNamespace);
  for (const [ms, want] of [
    [29_999, 1],
    [2, 1],
  ] as const) {
    nowMs += ms;
    assert.equal(await admit(inNamespace), "admitted");
    assert.equal(reads(), want, `after ${nowMs - 1} ms`);
  }
});

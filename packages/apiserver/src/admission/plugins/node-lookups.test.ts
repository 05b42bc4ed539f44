import assert from "node:assert/strict";
import { test } from "node:test";
import { internalError } from "@coxswain/apimachinery/objects/errors/status-error";
import type { KubeObject } from "@coxswain/apimachinery/objects/meta/types";
import { pods } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { newFakeClient } from "@coxswain/apimachinery/testing/fake-client";
import type { AdmissionAttributes } from "../plugin.ts";
import type { PluginContext } from "../plugin-context.ts";
import { nodeRestriction } from "./node-restriction.ts";

/** NodeRestriction with an empty cache. The API knows the pods `mine` on the node n1 and `theirs` on n2. */
function aPlugin() {
  const client = newFakeClient();
  const pod = (name: string, nodeName: string) =>
    ({ metadata: { name, namespace: "web", uid: `uid of ${name}` }, spec: { nodeName } }) as KubeObject;
  client.put(pods, pod("mine", "n1"), pod("theirs", "n2"));
  const informers = { for: () => ({ synced: true, lister: { get: () => undefined } }) };
  const plugin = nodeRestriction({ client, informers } as unknown as PluginContext);
  const admit = async (more: object) =>
    plugin.admit?.({
      ...{ operation: "CREATE", namespace: "web", user: { name: "system:node:n1", groups: ["system:nodes"] } },
      ...more,
    } as unknown as AdmissionAttributes);
  return { client, admit };
}

const podResource = { group: "", version: "v1", resource: "pods" };
const eviction = (name: string) => ({ resource: podResource, subresource: "eviction", name });
const token = (name: string) => ({
  ...{ resource: { group: "", version: "v1", resource: "serviceaccounts" }, subresource: "token", name: "default" },
  object: { spec: { boundObjectRef: { apiVersion: "v1", kind: "Pod", name, uid: `uid of ${name}` } } },
});

for (const [what, of] of [
  ["an eviction", eviction],
  ["a token", token],
] as const) {
  test(`a pod that the cache lacks is read from the API for ${what} of a kubelet, whose failure is the answer`, async () => {
    const { client, admit } = aPlugin();
    await admit(of("mine"));
    await assert.rejects(admit(of("theirs")), { code: 403 });
    await assert.rejects(admit(of("gone")), { code: 404, message: 'pod "gone" not found' });
    client.react("get", "pods", () => {
      throw internalError(new Error("etcd is away"));
    });
    await assert.rejects(admit(of("mine")), /etcd is away/);
  });
}

test("an eviction without a name in its path is that of the pod that its object names", async () => {
  const { admit } = aPlugin();
  const object = (name: string) => ({ ...eviction(""), object: { metadata: { name } } });
  await admit(object("mine"));
  const text = "node n1 can only evict pods with spec.nodeName set to itself";
  await assert.rejects(admit(object("theirs")), { message: `pods "theirs" is forbidden: ${text}` });
  await assert.rejects(admit({ ...object("mine"), name: "theirs" }), { message: `pods "theirs" is forbidden: ${text}` });
  for (const nobody of [object(""), eviction("")])
    await assert.rejects(admit(nobody), /forbidden: could not determine pod from request data$/);
});

test("a deleted pod that the request does not carry is looked up", async () => {
  const { admit } = aPlugin();
  const deletion = (name: string) => ({ operation: "DELETE", resource: podResource, subresource: "", name });
  await admit(deletion("mine"));
  await assert.rejects(admit(deletion("theirs")), {
    message: 'pods "theirs" is forbidden: node "n1" can only delete pods with spec.nodeName set to itself',
  });
  await assert.rejects(admit(deletion("gone")), { code: 404, message: 'pod "gone" not found' });
});

const claims = { group: "", version: "v1", resource: "persistentvolumeclaims" };
for (const { write, want } of [
  { write: { ...eviction("mine"), operation: "UPDATE" }, want: 'pods "mine" is forbidden: unexpected operation UPDATE' },
  { write: { ...eviction("mine"), operation: "DELETE" }, want: 'pods "mine" is forbidden: unexpected operation DELETE' },
  {
    write: { ...eviction("mine"), subresource: "status", operation: "CREATE" },
    want: 'pods "mine" is forbidden: unexpected operation "CREATE"',
  },
  {
    write: { resource: claims, subresource: "status", name: "c", operation: "DELETE" },
    want: 'persistentvolumeclaims "c" is forbidden: unexpected operation "DELETE"',
  },
] as const) {
  test(`a kubelet's ${write.operation} of ${write.resource.resource}/${write.subresource} is refused`, async () => {
    await assert.rejects(aPlugin().admit(write), { code: 403, message: want });
  });
}

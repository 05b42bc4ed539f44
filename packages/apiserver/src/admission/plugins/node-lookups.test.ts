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

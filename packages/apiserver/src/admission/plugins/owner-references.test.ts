import assert from "node:assert/strict";
import { test } from "node:test";
import type { AdmissionAttributes } from "../plugin.ts";
import type { PluginContext } from "../plugin-context.ts";
import { ownerReferencesPermissionEnforcement } from "./owner-references-permission-enforcement.ts";

/** What is asked of the authorizer for an update that gives an object an owner that blocks its deletion. */
async function questionsFor(subresource: string, resource = "pods"): Promise<object[]> {
  const questions: object[] = [];
  const authorize = async (question: object) => {
    questions.push(question);
    return { decision: "allow" };
  };
  const versions = { ofKind: () => [{ resource: "replicasets", namespaced: true }] };
  const owner = { apiVersion: "apps/v1", kind: "ReplicaSet", name: "owner", uid: "1", blockOwnerDeletion: true };
  await ownerReferencesPermissionEnforcement({ authorize, versions } as unknown as PluginContext).validate?.({
    ...{
      operation: "UPDATE",
      resource: { group: "", version: "v1", resource },
      subresource,
      namespace: "web",
      name: "pod",
    },
    object: { metadata: { name: "pod", ownerReferences: [owner] } },
    oldObject: { metadata: { name: "pod" } },
    user: { name: "jane", groups: ["a"] },
  } as unknown as AdmissionAttributes);
  return questions;
}

test("an owner needs the right to delete the object itself, and to the finalizers of the owner that blocks", async () => {
  const asked = { user: { name: "jane", groups: ["a"] }, isResourceRequest: true, namespace: "web", version: "v1", path: "" };
  assert.deepEqual(await questionsFor(""), [
    { ...asked, verb: "delete", group: "", resource: "pods", subresource: "", name: "pod" },
    { ...asked, verb: "update", group: "apps", resource: "replicasets", subresource: "finalizers", name: "owner" },
  ]);
});

test("the status of a pod, which old kubelets send with other owners, needs no right", async () => {
  assert.deepEqual(await questionsFor("status"), []);
  assert.equal((await questionsFor("ephemeralcontainers")).length, 2);
  assert.equal((await questionsFor("status", "services")).length, 2, "that of another resource does");
});

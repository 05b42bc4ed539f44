import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { test } from "node:test";
import type { Client } from "@coxswain/apimachinery/client/client";
import { alreadyExists, conflict, notFound } from "@coxswain/apimachinery/objects/errors/status-error";
import type { ResourceRef } from "@coxswain/apimachinery/objects/meta/group-version";
import type { DeleteOptions, KubeObject } from "@coxswain/apimachinery/objects/meta/types";
import { startTestServer } from "../testing/start-test-server.ts";
import { covers, ensureRbacPolicy } from "./rbac-policy.ts";
import { clusterRoleBindings, clusterRoles, roleBindings, roles } from "./rbac-policy-data.ts";

const rbac = "/apis/rbac.authorization.k8s.io/v1";
const autoUpdate = "rbac.authorization.kubernetes.io/autoupdate";

test("the start gives back what default roles and bindings lost, and leaves what was added, or is not to be updated", async (t) => {
  const prefix = `--etcd-prefix=/test-${randomUUID()}`;
  const first = await startTestServer(t, [prefix]);
  const change = async (path: string, patch: object): Promise<void> => {
    const headers = { "content-type": "application/merge-patch+json" };
    assert.equal((await first.request("PATCH", `${rbac}/${path}`, patch, headers)).code, 200, path);
  };
  const added = { apiGroups: ["example.com"], resources: ["things"], verbs: ["get"] };
  const ann = { kind: "User", name: "ann", apiGroup: "rbac.authorization.k8s.io" };
  await change("clusterroles/system:node-bootstrapper", { rules: [added], metadata: { labels: null } });
  await change("clusterroles/system:discovery", { rules: [], metadata: { annotations: { [autoUpdate]: "false" } } });
  await change("clusterrolebindings/system:basic-user", { subjects: [ann] });
  await change("clusterrolebindings/system:public-info-viewer", {
    subjects: [],
    metadata: { annotations: { [autoUpdate]: "false" } },
  });
  await change("namespaces/kube-system/roles/extension-apiserver-authentication-reader", { rules: [added] });
  await first.request("DELETE", `${rbac}/clusterroles/system:monitoring`);
  await first.request("DELETE", `${rbac}/clusterrolebindings/system:kube-dns`);
  await first.request("POST", `${rbac}/clusterrolebindings`, {
    metadata: { name: "system:kube-dns" },
    roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "ClusterRole", name: "view" },
    subjects: [ann],
  });
  await first.stop();

  const second = await startTestServer(t, [prefix]);
  const get = async (path: string) => (await second.request("GET", `${rbac}/${path}`)).body;
  const bootstrapper = await get("clusterroles/system:node-bootstrapper");
  assert.deepEqual(bootstrapper.rules, [
    added,
    { apiGroups: ["certificates.k8s.io"], resources: ["certificatesigningrequests"], verbs: ["create", "get", "list", "watch"] },
  ]);
  assert.deepEqual(bootstrapper.metadata.labels, { "kubernetes.io/bootstrapping": "rbac-defaults" });
  assert.deepEqual((await get("clusterroles/system:discovery")).rules ?? [], [], "not to be updated");
  const everybody = { kind: "Group", name: "system:authenticated", apiGroup: "rbac.authorization.k8s.io" };
  assert.deepEqual((await get("clusterrolebindings/system:basic-user")).subjects, [ann, everybody]);
  assert.deepEqual((await get("clusterrolebindings/system:public-info-viewer")).subjects ?? [], [], "not to be updated");
  assert.equal((await get("namespaces/kube-system/roles/extension-apiserver-authentication-reader")).rules.length, 2);
  assert.equal((await get("clusterroles/system:monitoring")).metadata.annotations[autoUpdate], "true");
  const dns = await get("clusterrolebindings/system:kube-dns");
  assert.equal(dns.roleRef.name, "system:kube-dns", "a binding to another role is made anew");
});

const wrongBinding: KubeObject & { roleRef: object } = {
  metadata: { name: "system:kube-dns", uid: "wrong" },
  roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "ClusterRole", name: "view" },
};
const dnsKey = "clusterrolebindings//system:kube-dns";

/** A client of objects in memory. @param beforeDelete runs before the first deletion */
function clientOf(objects: Map<string, KubeObject>, deleted: string[], beforeDelete?: () => Promise<unknown>): Client {
  const keyOf = ({ resource }: ResourceRef, { namespace = "", name = "" }: { namespace?: string; name?: string }): string =>
    `${resource}/${namespace}/${name}`;
  let first = beforeDelete;
  const client = {
    async get(ref: ResourceRef, target: { namespace?: string; name: string }) {
      const found = objects.get(keyOf(ref, target));
      if (found === undefined) throw notFound(ref, target.name);
      return structuredClone(found);
    },
    async create(ref: ResourceRef, object: KubeObject) {
      const key = keyOf(ref, object.metadata);
      if (objects.has(key)) throw alreadyExists(ref, object.metadata.name ?? "");
      objects.set(key, { ...object, metadata: { ...object.metadata, uid: `${objects.size}` } });
    },
    async delete(ref: ResourceRef, target: { namespace?: string; name: string }, options: DeleteOptions) {
      const before = first;
      first = undefined;
      await before?.();
      const key = keyOf(ref, target);
      const found = objects.get(key);
      if (found === undefined) throw notFound(ref, target.name);
      const { uid = found.metadata.uid } = options.preconditions ?? {};
      if (uid !== found.metadata.uid) throw conflict(ref, target.name, "another UID");
      deleted.push(found.metadata.uid ?? "");
      objects.delete(key);
    },
  };
  return client as unknown as Client;
}

for (const { name, race, want } of [
  {
    name: "has made anew",
    race: (objects: Map<string, KubeObject>, deleted: string[]) => ensureRbacPolicy(clientOf(objects, deleted), () => false),
    want: ["wrong"],
  },
  {
    name: "has deleted",
    race: async (objects: Map<string, KubeObject>) => objects.delete(dnsKey),
    want: [],
  },
]) {
  test(`a binding to another role that another server ${name} meanwhile is not deleted again`, async () => {
    const objects = new Map<string, KubeObject>([[dnsKey, wrongBinding]]);
    const deleted: string[] = [];
    await ensureRbacPolicy(
      clientOf(objects, deleted, () => race(objects, deleted)),
      () => false,
    );
    assert.deepEqual(deleted, want);
    assert.partialDeepStrictEqual(objects.get(dnsKey), { roleRef: { name: "system:kube-dns" } });
  });
}

test("a role has the rules of a feature when its gate is on", async (t) => {
  const server = await startTestServer(t, ["--feature-gates=StatefulSetAutoDeletePVC=true"]);
  const { body } = await server.request("GET", `${rbac}/clusterroles/system:controller:statefulset-controller`);
  const rule = { apiGroups: [""], resources: ["persistentvolumeclaims"], verbs: ["delete", "update"] };
  assert.deepEqual(body.rules.at(-1), rule);
  const without = clusterRoles.find(({ name }) => name === body.metadata.name)?.rules ?? [];
  assert.deepEqual(body.rules.slice(0, -1), without);
});

test("every default binding refers to a default role, and no object is listed twice", () => {
  const names = clusterRoles.map(({ name }) => name);
  assert.equal(new Set(names).size, names.length);
  for (const { role } of clusterRoleBindings) assert.ok(names.includes(role), role);
  for (const { namespace, role } of roleBindings)
    assert.ok(
      roles.some((one) => one.namespace === namespace && one.name === role),
      role,
    );
});

for (const { name, have, want } of [
  { name: "a rule by itself", have: [{ verbs: ["get"], apiGroups: [""], resources: ["pods"] }], want: true },
  { name: "a rule by a wildcard", have: [{ verbs: ["*"], apiGroups: ["*"], resources: ["*"] }], want: true },
  {
    name: "a rule by one with a name",
    have: [{ verbs: ["get"], apiGroups: [""], resources: ["pods"], resourceNames: ["a"] }],
    want: false,
  },
  { name: "a rule by another verb", have: [{ verbs: ["list"], apiGroups: [""], resources: ["pods"] }], want: false },
]) {
  test(`${want ? "covers" : "does not cover"} ${name}`, () => {
    assert.equal(covers(have, { verbs: ["get"], apiGroups: [""], resources: ["pods"] }), want);
  });
}

import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { test } from "node:test";
import type { Client } from "@coxswain/apimachinery/client/client";
import { alreadyExists, conflict, notFound } from "@coxswain/apimachinery/objects/errors/status-error";
import type { ResourceRef } from "@coxswain/apimachinery/objects/meta/group-version";
import type { DeleteOptions, KubeObject } from "@coxswain/apimachinery/objects/meta/types";
import {
  clusterRoleBindings as clusterRoleBindingsRef,
  clusterRoles as clusterRolesRef,
} from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { newFakeClient } from "@coxswain/apimachinery/testing/fake-client";
import { startTestServer } from "../testing/start-test-server.ts";
import { ensureRbacPolicy } from "./rbac-policy.ts";
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
  const requests = { apiGroups: ["certificates.k8s.io"], resources: ["certificatesigningrequests"] };
  assert.deepEqual(bootstrapper.rules, [
    added,
    ...["create", "get", "list", "watch"].map((verb) => ({ ...requests, verbs: [verb] })),
  ]);
  assert.deepEqual(bootstrapper.metadata.labels, { "kubernetes.io/bootstrapping": "rbac-defaults" });
  assert.deepEqual((await get("clusterroles/system:discovery")).rules ?? [], [], "not to be updated");
  const everybody = { kind: "Group", name: "system:authenticated", apiGroup: "rbac.authorization.k8s.io" };
  assert.deepEqual((await get("clusterrolebindings/system:basic-user")).subjects, [ann, everybody]);
  assert.deepEqual((await get("clusterrolebindings/system:public-info-viewer")).subjects ?? [], [], "not to be updated");
  assert.equal((await get("namespaces/kube-system/roles/extension-apiserver-authentication-reader")).rules.length, 4);
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

interface Role extends KubeObject {
  rules?: object[] | null;
  aggregationRule?: { clusterRoleSelectors?: object[] } | undefined;
}
interface Binding extends KubeObject {
  subjects?: object[];
  roleRef: { apiGroup: string; kind: string; name: string };
}

/** The object after a start of the server that finds it changed like this, and the requests that wrote it. */
async function afterStart<T extends KubeObject>(ref: ResourceRef, name: string, change: (object: T) => T) {
  const client = newFakeClient();
  await ensureRbacPolicy(client, () => false);
  const before = client.object<T>(ref, name) as T;
  client.put(ref, change(structuredClone(before)));
  client.clearActions();
  await ensureRbacPolicy(client, () => false);
  return { before, after: client.object<T>(ref, name) as T, verbs: client.writes.map(({ verb }) => verb) };
}

const own = { matchLabels: { "example.com/own": "true" } };
const toAdmin = { matchLabels: { "rbac.authorization.k8s.io/aggregate-to-admin": "true" } };
const urls = (verbs: string[], ...nonResourceURLs: string[]) => ({ verbs, nonResourceURLs });

for (const { name, role, change, want, verbs = ["update"] } of [
  { name: "is as it was", role: "view", change: {}, want: {}, verbs: [] },
  {
    name: "has the rules that its controller gave it",
    role: "admin",
    change: { rules: [urls(["get"], "/a")] },
    want: { rules: [urls(["get"], "/a")] },
    verbs: [],
  },
  {
    name: "is no longer aggregated",
    role: "admin",
    change: { aggregationRule: undefined },
    want: { aggregationRule: { clusterRoleSelectors: [toAdmin] } },
  },
  {
    name: "aggregates others",
    role: "admin",
    change: { aggregationRule: { clusterRoleSelectors: [own] } },
    want: { aggregationRule: { clusterRoleSelectors: [own, toAdmin] } },
  },
  {
    name: "aggregates others, too",
    role: "admin",
    change: { aggregationRule: { clusterRoleSelectors: [own, toAdmin] } },
    want: { aggregationRule: { clusterRoleSelectors: [own, toAdmin] } },
    verbs: [],
  },
  {
    name: "is aggregated, though it is not to be",
    role: "system:public-info-viewer",
    change: { aggregationRule: { clusterRoleSelectors: [own] } },
    want: { aggregationRule: undefined },
  },
  {
    name: "says its rules in other words",
    role: "system:public-info-viewer",
    change: { rules: [urls(["*"], "/h*", "/livez", "/r*"), urls(["get", "list"], "/version*")] },
    want: { rules: [urls(["*"], "/h*", "/livez", "/r*"), urls(["get", "list"], "/version*")] },
    verbs: [],
  },
  {
    name: "lacks a part of a rule",
    role: "system:public-info-viewer",
    change: { rules: [urls(["get"], "/healthz", "/livez", "/readyz", "/version")] },
    want: { rules: [urls(["get"], "/healthz", "/livez", "/readyz", "/version"), urls(["get"], "/version/")] },
  },
  { name: "has null for rules", role: "system:node", change: { rules: null }, want: {}, verbs: ["update"] },
] as { name: string; role: string; change: Partial<Role>; want: Partial<Role>; verbs?: string[] }[]) {
  test(`a default role that ${name} is ${verbs.length === 0 ? "not written" : "brought back"} at the start`, async () => {
    const found = await afterStart<Role>(clusterRolesRef, role, (object) => ({ ...object, ...change }));
    assert.deepEqual(found.verbs, verbs);
    const shown = Object.fromEntries(Object.keys(want).map((key) => [key, found.after[key as keyof Role]]));
    assert.deepEqual(shown, want);
    if (change.rules === null) assert.ok((found.after.rules?.length ?? 0) > 0);
  });
}

test("a label or annotation that is missing is given back, one that an administrator has changed stays", async () => {
  const label = "kubernetes.io/bootstrapping";
  for (const { labels, annotations, want } of [
    { labels: { [label]: "mine", a: "b" }, annotations: {}, want: [{ [label]: "mine", a: "b" }, { [autoUpdate]: "true" }] },
    {
      labels: {},
      annotations: { [autoUpdate]: "yes", a: "b" },
      want: [{ [label]: "rbac-defaults" }, { [autoUpdate]: "yes", a: "b" }],
    },
  ] as { labels: Record<string, string>; annotations: Record<string, string>; want: object[] }[]) {
    for (const [ref, name] of [
      [clusterRolesRef, "system:discovery"],
      [clusterRoleBindingsRef, "system:discovery"],
    ] as const) {
      const { before, after, verbs } = await afterStart<KubeObject>(ref, name, (object) => ({
        ...object,
        metadata: { ...object.metadata, labels, annotations },
      }));
      assert.deepEqual([after.metadata.labels, after.metadata.annotations, verbs], [...want, ["update"]], ref.resource);
      assert.equal(after.metadata.uid, before.metadata.uid);
    }
  }
});

test("a subject of the same name in another namespace is another one", async () => {
  const { before, after } = await afterStart<Binding>(clusterRoleBindingsRef, "system:kube-dns", (object) => ({
    ...object,
    subjects: [{ kind: "ServiceAccount", namespace: "default", name: "kube-dns" }],
  }));
  assert.deepEqual(after.subjects, [
    { kind: "ServiceAccount", namespace: "default", name: "kube-dns" },
    ...(before.subjects ?? []),
  ]);
});

for (const [field, value] of [
  ["kind", "Role"],
  ["name", "view"],
] as const) {
  test(`a binding to a role of another ${field} is made anew`, async () => {
    const { before, after, verbs } = await afterStart<Binding>(clusterRoleBindingsRef, "system:basic-user", (object) => ({
      ...object,
      roleRef: { ...object.roleRef, [field]: value },
    }));
    assert.deepEqual([after.roleRef, verbs], [before.roleRef, ["delete", "create"]]);
  });
}

test("a binding that others make wrong each time is given up after five attempts", async () => {
  const client = newFakeClient();
  const wrong = { metadata: { name: "system:basic-user" }, roleRef: { kind: "ClusterRole", name: "view" } };
  client.react("create", "clusterrolebindings", ({ name }) => {
    if (name === wrong.metadata.name) client.put(clusterRoleBindingsRef, structuredClone(wrong));
  });
  await assert.rejects(
    ensureRbacPolicy(client, () => false),
    { message: "binding system:basic-user still refers to another role after 5 attempts" },
  );
  assert.equal(client.writes.filter(({ verb }) => verb === "delete").length, 4);
});

test("a role has the rules of no feature whose gate is off", async () => {
  const name = "system:controller:statefulset-controller";
  const client = newFakeClient();
  await ensureRbacPolicy(client, () => false);
  assert.deepEqual(client.object<Role>(clusterRolesRef, name)?.rules, clusterRoles.find((row) => row.name === name)?.rules);
});

test("a role of two features is made when both are on", async () => {
  const name = "system:controller:storage-version-garbage-collector";
  for (const on of [[], ["APIServerIdentity"], ["StorageVersionAPI"], ["APIServerIdentity", "StorageVersionAPI"]]) {
    const client = newFakeClient();
    await ensureRbacPolicy(client, (gate) => on.includes(gate));
    for (const ref of [clusterRolesRef, clusterRoleBindingsRef])
      assert.equal(client.object(ref, name) !== undefined, on.length === 2, `${on}`);
  }
});

import assert from "node:assert/strict";
import { test } from "node:test";
import { forbidden } from "@coxswain/apimachinery/objects/errors/status-error";
import type { ClusterRole } from "@coxswain/apimachinery/objects/schema/kinds/rbac/v1";
import { clusterRoles } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { newFakeClient } from "@coxswain/apimachinery/testing/fake-client";
import { hasFields } from "@coxswain/apimachinery/testing/has-fields";
import { applyRights } from "./apply-rights.ts";
import { parts } from "./parts.ts";
import { rightsOf } from "./rights.ts";

const rights = rightsOf(parts, { leaseNamespace: "kube-system", leaseName: "coxswain-services" });
const signal = new AbortController().signal;

function writing() {
  const client = newFakeClient();
  let read = 0;
  const verbs = (): string[] => {
    const fresh = client.writes.slice(read).map(({ verb }) => verb);
    read += fresh.length;
    return fresh;
  };
  return { client, verbs };
}

test("missing objects are created, and correct ones are not written again", async () => {
  const { client, verbs } = writing();
  const names = await applyRights(client, rights, signal);
  assert.deepEqual(new Set(verbs()), new Set(["create"]));
  assert.equal(names.length, rights.length);
  assert.ok(names.includes("clusterrolebinding.rbac.authorization.k8s.io/coxswain-services:dns"), names.join(" "));
  assert.ok(names.includes("namespace/coxswain-load-balancers"));
  const role = client.object<ClusterRole>(clusterRoles, "coxswain-services:dns") as ClusterRole;
  client.put(clusterRoles, { ...role, metadata: { ...role.metadata, labels: { team: "x" } } });
  assert.deepEqual(await applyRights(client, rights, signal), names);
  assert.deepEqual(
    verbs().filter((verb) => verb !== "create"),
    [],
    "creations are refused, nothing is patched",
  );
});

test("a changed role is applied again, unchanged ones are not written", async () => {
  const { client } = writing();
  await applyRights(client, rights, signal);
  const role = client.object<ClusterRole>(clusterRoles, "coxswain-services:dns") as ClusterRole;
  client.put(clusterRoles, { ...role, rules: [] });
  const patched: string[] = [];
  const options: unknown[] = [];
  const { patch } = client;
  client.patch = (ref, target, body, ...rest) => {
    options.push(...rest);
    return patch.call(client, ref, target, body) as never;
  };
  client.react("patch", "clusterroles", ({ name }) => {
    patched.push(name ?? "");
    return role;
  });
  await applyRights(client, rights, signal);
  assert.deepEqual(patched, ["coxswain-services:dns"]);
  hasFields(options, [{ fieldManager: "coxswain-services", force: true }]);
});

test("one refused role is the error, the other roles are written, and no binding", async () => {
  const { client } = writing();
  const made: string[] = [];
  for (const resource of ["clusterroles", "clusterrolebindings"])
    client.react("create", resource, ({ sent }) => {
      const { name } = (sent as ClusterRole).metadata;
      if (name === "coxswain-services:services") throw forbidden(clusterRoles, name, "not you");
      made.push(`${resource} ${name}`);
      return undefined;
    });
  await assert.rejects(applyRights(client, rights, signal), /not you/);
  assert.ok(made.includes("clusterroles coxswain-services:dns"));
  assert.deepEqual(
    made.filter((one) => one.startsWith("clusterrolebindings")),
    [],
  );
});

test("an object that grants no rights is an error", async () => {
  const { client } = writing();
  await assert.rejects(applyRights(client, [{ kind: "Secret", metadata: { name: "a" } }], signal), {
    message: "an object of kind Secret grants no rights",
  });
  assert.deepEqual(client.writes, []);
});

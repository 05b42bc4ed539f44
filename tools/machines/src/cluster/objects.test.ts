import assert from "node:assert/strict";
import { test } from "node:test";
import type { Client } from "@coxswain/apimachinery/client/client";
import { forbidden, notFound } from "@coxswain/apimachinery/objects/errors/status-error";
import type { ResourceRef } from "@coxswain/apimachinery/objects/meta/group-version";
import type { KubeObject } from "@coxswain/apimachinery/objects/meta/types";
import { secrets } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { clusterSettings } from "../config/settings.ts";
import { certificatesRight, configObjects, discoveryObjects, servicesObjects } from "./bootstrap-objects.ts";
import { missingObjects, writeObjects } from "./objects.ts";

const object = (kind: string, name: string, namespace?: string, data?: object): KubeObject =>
  ({
    apiVersion: "v1",
    kind,
    metadata: { name, ...(namespace !== undefined && { namespace }) },
    ...(data && { data }),
  }) as KubeObject; // cast: a KubeObject names only the fields of all kinds

const objects = [
  object("ConfigMap", "same", "a", { x: "1" }),
  object("ConfigMap", "more", "a", { x: "1" }),
  object("Secret", "other", "b", { x: "1" }),
  object("ClusterRole", "none"),
];

test("objects that are missing or differ are named, a stored one may have more", async () => {
  const stored: Readonly<Record<string, object>> = {
    "configmaps a/same": objects[0]!,
    "configmaps a/more": { ...objects[1], metadata: { name: "more", namespace: "a", uid: "u" }, data: { x: "1", y: "2" } },
    "secrets b/other": { ...objects[2], data: { x: "2" } },
  };
  const client = {
    get: async ({ resource }: ResourceRef, { namespace, name }: { namespace?: string; name: string }) => {
      const found = stored[`${resource} ${namespace}/${name}`];
      if (found === undefined) throw notFound(secrets, name);
      return found;
    },
  } as unknown as Client; // cast: nothing else is called
  assert.deepEqual(await missingObjects(client, objects), ["change Secret b/other", "create ClusterRole none"]);
  const all = ["ConfigMap a/same", "ConfigMap a/more", "Secret b/other", "ClusterRole none"].map((name) => `create ${name}`);
  assert.deepEqual(await missingObjects(undefined, objects), all);
  const away = { get: () => Promise.reject(new Error("ECONNREFUSED")) } as unknown as Client; // cast: nothing else is called
  assert.deepEqual(await missingObjects(away, objects), all, "while the API server does not respond");
  const refused = { get: () => Promise.reject(forbidden(secrets, "x", "no")) } as unknown as Client; // cast: nothing else is called
  await assert.rejects(missingObjects(refused, objects), /forbidden/);
});

test("all objects of a new cluster are applied one after the other, with force, as their resources", async () => {
  const sent: unknown[] = [];
  const client = {
    patch: async (
      { group, resource }: ResourceRef,
      target: object,
      body: object,
      { signal, ...options }: { signal: AbortSignal },
    ) => {
      assert.ok(!signal.aborted);
      sent.push({ resource: [group, resource].join("/"), target, body, options });
    },
  } as unknown as Client; // cast: nothing else is called
  const all = [
    ...configObjects(clusterSettings(), {}),
    ...discoveryObjects("https://a:1", "PEM"),
    ...certificatesRight(),
    ...servicesObjects(),
  ];
  await writeObjects(client, all);
  const rbac = "rbac.authorization.k8s.io/";
  const resources: Readonly<Record<string, string>> = {
    ClusterRole: `${rbac}clusterroles`,
    ClusterRoleBinding: `${rbac}clusterrolebindings`,
    Role: `${rbac}roles`,
    RoleBinding: `${rbac}rolebindings`,
    ConfigMap: "/configmaps",
    Secret: "/secrets",
    ServiceAccount: "/serviceaccounts",
  };
  assert.deepEqual(new Set(all.map(({ kind }) => kind)), new Set(Object.keys(resources)));
  assert.deepEqual(
    sent,
    all.map((body) => ({
      resource: resources[body.kind ?? ""],
      target: { namespace: body.metadata.namespace, name: body.metadata.name },
      body: { type: "apply", body },
      options: { fieldManager: "coxswain", force: true },
    })),
  );
});

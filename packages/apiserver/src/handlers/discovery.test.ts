import assert from "node:assert/strict";
import { test } from "node:test";
import type { ResourceDefinition } from "../registry/generic/resource.ts";
import { storageVersionHash } from "./discovery.ts";
import { newServedResources, type ServedResource } from "./served-resources.ts";

/** Defines only the fields that discovery reads. */
function define(group: string, resource: string, kind: string, versions: string[]): ResourceDefinition {
  return {
    group,
    resource,
    kind,
    listKind: `${kind}List`,
    singular: kind.toLowerCase(),
    namespaced: true,
    verbs: ["get", "list"],
    versions: versions.map((version) => ({ version })),
    hub: versions[0] as string,
    table: { columns: [], cells: () => [] },
  };
}

function served(group: string, resource: string, kind: string, version = "v1"): ServedResource {
  const resources = newServedResources();
  const definition = define(group, resource, kind, [version]);
  resources.add(definition, { version }, undefined);
  return resources.find(group, version, resource) as ServedResource;
}

for (const { group, resource, kind, want } of [
  { group: "", resource: "pods", kind: "Pod", want: "xPOwRZ+Yhw8=" },
  { group: "", resource: "configmaps", kind: "ConfigMap", want: "qFsyl6wFWjQ=" },
  { group: "", resource: "secrets", kind: "Secret", want: "S6u1pOWzb84=" },
  { group: "apps", resource: "deployments", kind: "Deployment", want: "8aSe+NMegvE=" },
]) {
  test(`${kind} has upstream's storage version hash`, () => {
    assert.equal(storageVersionHash(served(group, resource, kind)), want);
  });
}

test("versions of a group come preferred first", () => {
  const resources = newServedResources();
  for (const version of ["v1", "v2beta2", "v2", "v2beta1"]) {
    resources.add(
      define("autoscaling", "horizontalpodautoscalers", "HorizontalPodAutoscaler", [version]),
      { version },
      undefined,
    );
  }
  assert.deepEqual(resources.versions("autoscaling"), ["v2", "v1", "v2beta1", "v2beta2"]);
});

test("a group without resources is no longer served", () => {
  const resources = newServedResources();
  resources.add(define("example.com", "things", "Thing", ["v1"]), { version: "v1" }, undefined);
  const before = resources.generation;
  resources.remove("example.com", "v1", "things");
  assert.notEqual(resources.generation, before);
  assert.equal(resources.hasGroupVersion("example.com", "v1"), false);
  assert.deepEqual(resources.groups(), []);
});

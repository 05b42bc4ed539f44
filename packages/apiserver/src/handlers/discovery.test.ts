import assert from "node:assert/strict";
import { test } from "node:test";
import { Turns } from "@coxswain/apimachinery/process/event-loop/turns";
import { scalePathsOf } from "../custom-resources/scale-paths.ts";
import type { RegistryStore, ResourceDefinition } from "../registry/generic/resource.ts";
import type { RequestContext } from "../request/context.ts";
import { parseRequestInfo } from "../request/request-info.ts";
import { newDiscovery, storageVersionHash } from "./discovery.ts";
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

test("only what was removed disappears, what is added again is new, and each change has another generation", () => {
  const resources = newServedResources();
  const generations = new Set<number>();
  const changed = (): number => generations.add(resources.generation).size;
  const add = (version: string, resource: string): void =>
    resources.add(define("example.com", resource, resource, [version]), { version }, undefined);
  for (const [i, [version, resource]] of (
    [
      ["v1", "b"],
      ["v1", "a"],
      ["v2", "a"],
    ] as const
  ).entries()) {
    add(version, resource);
    assert.equal(changed(), i + 1);
  }
  const names = (version: string): string[] =>
    resources.resources("example.com", version).map(({ definition }) => definition.resource);
  assert.deepEqual([names("v1"), names("v2")], [["a", "b"], ["a"]]);
  for (const [group, version, resource] of [
    ["example.com", "v1", "c"],
    ["example.com", "v3", "a"],
    ["other.example.com", "v1", "a"],
  ] as const)
    resources.remove(group, version, resource);
  assert.equal(changed(), 3, "nothing was removed");
  resources.remove("example.com", "v1", "b");
  assert.deepEqual([changed(), names("v1"), names("v2")], [4, ["a"], ["a"]]);
  resources.find("example.com", "v1", "a")?.fieldManagers.set("", {} as never);
  add("v1", "a");
  assert.deepEqual([changed(), resources.find("example.com", "v1", "a")?.fieldManagers.size], [5, 0]);
  resources.remove("example.com", "v1", "a");
  assert.deepEqual(
    [names("v2"), resources.hasGroupVersion("example.com", "v1"), resources.groups()],
    [["a"], false, ["example.com"]],
  );
});

test("the core group is no named one; only autoscaling has its beta versions ascending; a hub belongs to its group", () => {
  const resources = newServedResources();
  resources.add(define("", "pods", "Pod", ["v1"]), { version: "v1" }, undefined);
  for (const version of ["v2beta1", "v2beta2"]) resources.add(define("batch", "jobs", "Job", [version]), { version }, undefined);
  resources.add({ ...define("extensions", "jobs", "Job", ["v1"]), hubGroup: "batch" }, { version: "v1" }, undefined);
  assert.deepEqual(
    [resources.groups().toSorted(), resources.versions("batch")],
    [
      ["batch", "extensions"],
      ["v2beta2", "v2beta1"],
    ],
  );
  assert.deepEqual(
    [resources.find("", "v1", "pods"), resources.find("extensions", "v1", "jobs")].map((one) => one?.isHub),
    [true, false],
  );
});

/** Discovery over two local groups and one of an aggregated server. @returns the document, undefined when there is none */
function discover(path: string, { method = "GET", storageVersionHashes = true } = {}) {
  const { resources, read } = emptyDiscovery(storageVersionHashes);
  const store = {} as RegistryStore;
  resources.add(define("", "pods", "Pod", ["v1"]), { version: "v1" }, store);
  const things: ResourceDefinition = {
    ...define("example.com", "things", "Thing", ["v1"]),
    ...{ custom: true, shortNames: [], categories: ["all"], hub: "v1", storage: { group: "example.com", version: "v1beta1" } },
    announcedVerbs: () => ["watch", "get"],
    scale: scalePathsOf({ specReplicasPath: ".spec.replicas", statusReplicasPath: ".status.replicas" }),
  };
  resources.add(things, { version: "v1" }, store);
  resources.add({ ...define("example.com", "reviews", "Review", ["v1"]), shortNames: ["rv"] }, { version: "v1" }, undefined);
  resources.add(define("quiet.example.com", "things", "Thing", ["v2"]), { version: "v2" }, store);
  return read(path, method);
}

/** Discovery over resources that the test adds. */
function emptyDiscovery(storageVersionHashes = true) {
  const resources = newServedResources();
  const discovery = newDiscovery(resources, {
    rootPaths: () => ["/metrics"],
    advertiseAddress: () => "10.0.0.1:6443",
    storageVersionHashes,
    groups: () => [
      { name: "example.com", versions: ["v1", "v1beta1"] },
      { name: "metrics.example.com", versions: ["v1"] },
    ],
  });
  return {
    resources,
    /** @returns the document, undefined when there is none */
    async read(path: string, method = "GET") {
      let body: string | undefined;
      const respond = (_code: number, _headers: object, text: string | Buffer): void => {
        body = text.toString();
      };
      const exchange = { method, url: path, headers: { accept: "application/json" }, respond };
      const ctx = { exchange, info: parseRequestInfo(method, path), query: new URLSearchParams(), turns: new Turns() };
      const isFound = await discovery(ctx as unknown as RequestContext, path.split("/").slice(1));
      return isFound ? JSON.parse(body ?? "{}") : undefined;
    },
  };
}

test("groups are listed with their preferred version first, with and without a slash at the end", async () => {
  for (const slash of ["", "/"]) {
    const list = await discover(`/apis${slash}`);
    assert.deepEqual(
      list.groups.map((group: object) => Object.keys(group)),
      [
        ["name", "versions", "preferredVersion"],
        ["name", "versions", "preferredVersion"],
      ],
    );
    assert.partialDeepStrictEqual(await discover(`/apis/example.com${slash}`), {
      ...{ kind: "APIGroup", apiVersion: "v1", name: "example.com" },
      preferredVersion: { groupVersion: "example.com/v1", version: "v1" },
    });
  }
  assert.equal((await discover("/apis/quiet.example.com")).preferredVersion.version, "v2", "served, though not announced");
  assert.equal(await discover("/apis/example.com/v1/things"), undefined);
  assert.equal((await discover("/apis/example.com", { method: "POST" })).kind, "APIGroup");
  await assert.rejects(discover("/apis/example.com/v1", { method: "POST" }), { code: 405 });
});

test("a version's resources have names, verbs, subresources and the hash of what is stored, each where it applies", async () => {
  const { apiVersion, resources } = await discover("/apis/example.com/v1");
  const stored = served("example.com", "things", "Thing", "v1beta1");
  assert.deepEqual(
    [apiVersion, resources.map(({ name }: { name: string }) => name)],
    ["v1", ["reviews", "things", "things/scale"]],
  );
  const [reviews, things, scale] = resources;
  assert.deepEqual(reviews, {
    ...{ name: "reviews", singularName: "", namespaced: true, kind: "Review", verbs: ["get", "list"], shortNames: ["rv"] },
  });
  assert.deepEqual(things, {
    ...{ name: "things", singularName: "thing", namespaced: true, kind: "Thing", verbs: ["watch", "get"], categories: ["all"] },
    storageVersionHash: storageVersionHash(stored),
  });
  assert.deepEqual([scale.group, scale.version, scale.kind], ["autoscaling", "v1", "Scale"]);
  const core = await discover("/api/v1", { storageVersionHashes: false });
  assert.deepEqual([core.apiVersion, core.groupVersion, core.resources[0].storageVersionHash], [undefined, "v1", undefined]);
});

test("a list shows what is added, removed and announced after it was first read", async () => {
  const { resources, read } = emptyDiscovery();
  let verbs = ["get", "delete"];
  const names = async (): Promise<string[]> =>
    (await read("/apis/example.com/v1"))?.resources.map(({ name }: { name: string }) => name);
  resources.add(define("example.com", "as", "A", ["v1"]), { version: "v1" }, undefined);
  assert.deepEqual([await names(), await names()], [["as"], ["as"]]);
  resources.add({ ...define("example.com", "bs", "B", ["v1"]), announcedVerbs: () => verbs }, { version: "v1" }, undefined);
  assert.deepEqual(await names(), ["as", "bs"]);
  resources.remove("example.com", "v1", "as");
  assert.deepEqual(await names(), ["bs"]);
  verbs = ["get"];
  assert.deepEqual((await read("/apis/example.com/v1")).resources[0].verbs, ["get"]);
  resources.remove("example.com", "v1", "bs");
  assert.equal(await read("/apis/example.com/v1"), undefined);
});

test("all paths are listed, also those of aggregated servers", async () => {
  const { paths } = await discover("/");
  for (const path of ["/metrics", "/api/v1", "/apis/quiet.example.com/v2", "/apis/metrics.example.com/v1"])
    assert.ok(paths.includes(path), path);
});

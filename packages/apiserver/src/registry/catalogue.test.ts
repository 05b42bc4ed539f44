import assert from "node:assert/strict";
import { test } from "node:test";
import { builtInResources as knownRows } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { builtInResources, internalResources } from "./catalogue.ts";
import { agesAt } from "./generic/ages.ts";

const catalogue = builtInResources({
  services: () => {
    throw new Error("no services in this test");
  },
  serviceClusterIpRange: ["10.96.0.0/12"],
  nodePortRange: { from: 30000, to: 32767 },
  featureEnabled: () => true,
  kubeletConnection: { preferredAddressTypes: ["InternalIP"], port: 10250 },
});

test("every resource that the schema knows is in the catalogue, with its scope, names, verbs and subresources", () => {
  for (const row of knownRows) {
    const [resource = "", subresource] = row.resource.split("/");
    const where = `${row.group}/${row.version} ${row.resource}`;
    const definition = catalogue.find((d) => d.group === row.group && d.resource === resource);
    assert.ok(definition, where);
    assert.equal(definition.namespaced, row.namespaced, where);
    const version = definition.versions.find((v) => v.version === row.version);
    assert.ok(version, where);
    assert.equal(version.servedByDefault ?? true, row.servedByDefault, where);
    if (subresource === undefined) {
      assert.equal(definition.kind, row.kind, where);
      assert.deepEqual([...definition.verbs].sort(), [...row.verbs].sort(), where);
      assert.deepEqual(definition.shortNames ?? [], row.shortNames ?? [], where);
      assert.deepEqual(definition.categories ?? [], row.categories ?? [], where);
    } else if (subresource === "status") assert.ok(definition.statusStrategy, where);
    else if (subresource === "scale") assert.ok(definition.scale, where);
    else assert.deepEqual([...(definition.subresources?.[subresource]?.verbs ?? [])].sort(), [...row.verbs].sort(), where);
  }
});

test("a version has the status that the schema knows of it, and no other one has one", () => {
  const nameIn = (group: string, version: string, resource: string): string => `${group}/${version} ${resource}`;
  const served = catalogue.flatMap(({ group, resource, versions, statusStrategy }) =>
    versions
      .filter(({ statusServed }) => statusStrategy !== undefined && statusServed !== false)
      .map(({ version }) => nameIn(group, version, `${resource}/status`)),
  );
  const known = knownRows.filter(({ resource }) => resource.endsWith("/status"));
  assert.deepEqual(served.sort(), known.map(({ group, version, resource }) => nameIn(group, version, resource)).sort());
});

test("a resource that is stored has a strategy of its scope, and its hub is a version it can convert", () => {
  for (const definition of catalogue) {
    const where = `${definition.group} ${definition.resource}`;
    if (definition.subresources?.[""] !== undefined) continue;
    assert.ok(definition.strategy, where);
    assert.equal(definition.strategy.namespaceScoped, definition.namespaced, where);
    if (definition.statusStrategy) assert.equal(definition.statusStrategy.namespaceScoped, definition.namespaced, where);
    if (definition.hubGroup === undefined)
      assert.ok(
        definition.versions.some((v) => v.version === definition.hub),
        where,
      );
  }
});

test("every table writes one cell a column, also for an object that has nothing but a name", () => {
  for (const definition of catalogue) {
    const { table } = definition;
    const cells = table.cells({ metadata: { name: "x" }, spec: {}, status: {} }, agesAt(0));
    assert.equal(cells.length, table.columns.length, `${definition.group} ${definition.resource}`);
  }
});

test("folders in etcd are upstream's where they differ from the resource", () => {
  const folders = Object.fromEntries(
    catalogue.filter((d) => d.storageFolder).map((d) => [`${d.resource}.${d.group}`, d.storageFolder]),
  );
  assert.deepEqual(folders, {
    "endpoints.": "services/endpoints",
    "nodes.": "minions",
    "replicationcontrollers.": "controllers",
    "services.": "services/specs",
    "customresourcedefinitions.apiextensions.k8s.io": "apiextensions.k8s.io/customresourcedefinitions",
    "apiservices.apiregistration.k8s.io": "apiregistration.k8s.io/apiservices",
    "events.events.k8s.io": "events",
    "ingresses.networking.k8s.io": "ingress",
    "podsecuritypolicies.policy": "podsecuritypolicy",
  });
});

test("the allocated numbers of services are stored where upstream stores them, and not served", () => {
  const [ranges, ...others] = internalResources();
  assert.deepEqual([ranges?.resource, ranges?.storageFolder, ranges?.verbs, others], ["rangeallocations", "ranges", [], []]);
});

test("a delete answers with the object for these resources, and with a status for the others", () => {
  assert.deepEqual(
    catalogue.filter((d) => d.returnDeletedObject).map((d) => (d.group === "" ? d.resource : `${d.resource}.${d.group}`)),
    [
      ...["persistentvolumeclaims", "persistentvolumes", "pods", "podtemplates", "resourcequotas", "serviceaccounts", "services"],
      "podsecuritypolicies.policy",
      ...["csidrivers", "csinodes", "storageclasses", "volumeattachments"].map((resource) => `${resource}.storage.k8s.io`),
    ],
  );
});

test("events end after the time of the flag, and pods are indexed by node", () => {
  const ending = catalogue
    .filter((d) => d.ttlSeconds)
    .map((d) => [`${d.resource}.${d.group}`, d.ttlSeconds?.({ eventTtlSeconds: 7 })]);
  assert.deepEqual(ending, [
    ["events.", 7],
    ["events.events.k8s.io", 7],
  ]);
  assert.deepEqual(
    catalogue.filter((d) => d.cacheIndexes).map((d) => [d.resource, d.cacheIndexes]),
    [["pods", ["spec.nodeName"]]],
  );
});

/** Source: the lifecycles of the types in k8s.io/api, release 1.23 */
const deprecated = `
autoscaling/v2beta1 HorizontalPodAutoscaler is deprecated in v1.22+, unavailable in v1.25+; use autoscaling/v2 HorizontalPodAutoscaler
autoscaling/v2beta2 HorizontalPodAutoscaler is deprecated in v1.23+, unavailable in v1.26+; use autoscaling/v2 HorizontalPodAutoscaler
batch/v1beta1 CronJob is deprecated in v1.21+, unavailable in v1.25+; use batch/v1 CronJob
discovery.k8s.io/v1beta1 EndpointSlice is deprecated in v1.21+, unavailable in v1.25+; use discovery.k8s.io/v1 EndpointSlice
events.k8s.io/v1beta1 Event is deprecated in v1.19+, unavailable in v1.25+; use events.k8s.io/v1 Event
flowcontrol.apiserver.k8s.io/v1alpha1 FlowSchema is deprecated in v1.20+, unavailable in v1.21+; use flowcontrol.apiserver.k8s.io/v1beta2 FlowSchema
flowcontrol.apiserver.k8s.io/v1alpha1 PriorityLevelConfiguration is deprecated in v1.20+, unavailable in v1.21+; use flowcontrol.apiserver.k8s.io/v1beta2 PriorityLevelConfiguration
flowcontrol.apiserver.k8s.io/v1beta1 FlowSchema is deprecated in v1.23+, unavailable in v1.26+; use flowcontrol.apiserver.k8s.io/v1beta2 FlowSchema
flowcontrol.apiserver.k8s.io/v1beta1 PriorityLevelConfiguration is deprecated in v1.23+, unavailable in v1.26+; use flowcontrol.apiserver.k8s.io/v1beta2 PriorityLevelConfiguration
node.k8s.io/v1beta1 RuntimeClass is deprecated in v1.22+, unavailable in v1.25+; use node.k8s.io/v1 RuntimeClass
policy/v1beta1 PodDisruptionBudget is deprecated in v1.21+, unavailable in v1.25+; use policy/v1 PodDisruptionBudget
policy/v1beta1 PodSecurityPolicy is deprecated in v1.21+, unavailable in v1.25+
storage.k8s.io/v1alpha1 CSIStorageCapacity is deprecated in v1.21+, unavailable in v1.24+; use storage.k8s.io/v1beta1 CSIStorageCapacity
storage.k8s.io/v1alpha1 VolumeAttachment is deprecated in v1.21+, unavailable in v1.24+; use storage.k8s.io/v1 VolumeAttachment
v1 ComponentStatus is deprecated in v1.19+
`;

test("warns of the versions that upstream warns of, in its words", () => {
  const texts = catalogue.flatMap(({ versions }) => versions.map(({ deprecation }) => deprecation ?? ""));
  assert.deepEqual(texts.filter((text) => text !== "").sort(), deprecated.trim().split("\n"));
});

test("versions have the forms v1, v1beta1 and v1alpha1", () => {
  const versions = catalogue.flatMap((definition) => definition.versions.map(({ version }) => version));
  assert.deepEqual(
    [...new Set(versions)].filter((version) => !/^v\d+((alpha|beta)\d+)?$/.test(version)),
    [],
  );
  for (const form of ["v2", "v2beta1", "v1alpha1"]) assert.ok(versions.includes(form), form);
});

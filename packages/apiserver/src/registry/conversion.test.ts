import assert from "node:assert/strict";
import { test } from "node:test";
import { decodeJson, encodeJsonText } from "@coxswain/apimachinery/objects/codec/json";
import { encodeAny } from "@coxswain/apimachinery/objects/codec/json-encode";
import { formatGroupVersion, type GroupVersionKind, parseGroupVersion } from "@coxswain/apimachinery/objects/meta/group-version";
import type { KubeObject } from "@coxswain/apimachinery/objects/meta/types";
import type { TypeDescriptor } from "@coxswain/apimachinery/objects/schema/descriptor";
import { scheme } from "@coxswain/apimachinery/objects/schema/scheme";
import { arbitraryObject } from "@coxswain/apimachinery/testing/arbitrary-object";
import fc from "@coxswain/apimachinery/testing/fast-check";
import { builtInResources } from "./catalogue.ts";
import { conversionsOf } from "./conversion.ts";

const resources = builtInResources({
  services: () => {
    throw new Error("no services in this test");
  },
  serviceClusterIpRange: ["10.96.0.0/12"],
  nodePortRange: { from: 30000, to: 32767 },
  featureEnabled: () => true,
  kubeletConnection: { preferredAddressTypes: ["InternalIP"], port: 10250 },
});
const { convert } = conversionsOf(resources);

const gvkOf = (apiVersion: string, kind: string): GroupVersionKind =>
  ({ ...parseGroupVersion(apiVersion), kind }) as GroupVersionKind;

/** Ordered pairs of versions of the same kind, both with a schema. */
const known = resources.flatMap(({ group, kind, hub, hubGroup = group, versions, formerVersions = [] }) =>
  [...versions, ...formerVersions]
    .map((version) => ({ apiVersion: formatGroupVersion({ group, ...version }), kind, hub: `${hubGroup}/${hub} ${kind}` }))
    .filter(({ apiVersion }) => scheme.kind(gvkOf(apiVersion, kind)) !== undefined),
);
const pairs = known.flatMap(({ apiVersion: from, kind, hub }) =>
  known.filter((to) => to.hub === hub && to.apiVersion !== from).map((to) => ({ kind, from, to: to.apiVersion })),
);

function objectsOf(gvk: GroupVersionKind, numRuns: number): KubeObject[] {
  return fc
    .sample(arbitraryObject(scheme.kind(gvk) as TypeDescriptor), { numRuns, seed: 20211207 })
    .map((object) => decodeJson(encodeAny({ ...object, apiVersion: formatGroupVersion(gvk), kind: gvk.kind }), gvk).object);
}

/** Round trips of random objects are stable: a second round trip changes nothing. */
test("through every pair of versions and back nothing is lost that the other version can say", () => {
  assert.ok(pairs.length > 40, String(pairs.length));
  for (const { kind, from, to } of pairs) {
    const there = parseGroupVersion(to) as GroupVersionKind;
    const back = parseGroupVersion(from) as GroupVersionKind;
    const textOf = (object: KubeObject): string => encodeJsonText(object, gvkOf(from, kind));
    for (const object of objectsOf(gvkOf(from, kind), 25)) {
      const sent = structuredClone(object);
      const once = convert(convert(object, there), back);
      const twice = convert(convert(structuredClone(once), there), back);
      assert.equal(textOf(twice), textOf(once), `${kind} ${from} by ${to}`);
      if (!comesBackOtherwise.has(`${from} ${kind}`)) assert.equal(textOf(once), textOf(sent), `${kind} ${from} by ${to}`);
    }
  }
});

/**
 * Kinds whose conversions lose or complete fields, like upstream's; the test next to each conversion covers them.
 */
const comesBackOtherwise = new Set([
  ...["v1", "v2", "v2beta1", "v2beta2"].map((version) => `autoscaling/${version} HorizontalPodAutoscaler`),
  ...["RoleBinding", "ClusterRoleBinding"].map((kind) => `rbac.authorization.k8s.io/v1alpha1 ${kind}`),
  "discovery.k8s.io/v1beta1 EndpointSlice",
  ...["networking.k8s.io/v1", "networking.k8s.io/v1beta1", "extensions/v1beta1"].map((apiVersion) => `${apiVersion} Ingress`),
]);

test("a converted object is in canonical form", () => {
  for (const { kind, from, to } of pairs) {
    const gvk = gvkOf(to, kind);
    for (const object of objectsOf(gvkOf(from, kind), 10)) {
      const converted = convert(object, gvk);
      const text = encodeJsonText(converted, gvk);
      assert.deepEqual(converted, decodeJson(text, gvk).object, `${kind} ${from} to ${to}`);
    }
  }
});

test("a conversion to the version that an object has is the object itself, of an unknown kind too", () => {
  const object = { apiVersion: "x.example/v1", kind: "Wheel", metadata: {} } as KubeObject;
  assert.equal(convert(object, { group: "x.example", version: "v1" }), object);
});

test("a conversion to an unknown version is refused with the versions that exist", () => {
  const budget = { apiVersion: "policy/v1", kind: "PodDisruptionBudget", metadata: {} } as KubeObject;
  assert.throws(() => convert(budget, { group: "policy", version: "v3" }), {
    message: "PodDisruptionBudget has no version policy/v3: it has policy/v1, policy/v1beta1",
  });
  const event = { apiVersion: "v1", kind: "Event", metadata: {} } as KubeObject;
  assert.throws(() => convert(event, { group: "apps", version: "v1" }), {
    message: "Event has no version apps/v1: it has v1, events.k8s.io/v1, events.k8s.io/v1beta1",
  });
  assert.throws(() => convert({ ...event, kind: "Wheel" }, { group: "apps", version: "v1" }), {
    message: "v1 Wheel cannot be converted",
  });
});

test("a kind without a schema is converted as its versions say, and not completed", () => {
  const wheel = {
    ...{ group: "x.example", kind: "Wheel", resource: "wheels", hub: "v2" },
    versions: [{ version: "v2" }, { version: "v1", toHub: (object: KubeObject) => ({ ...object, size: 2 }) }],
  } as unknown as (typeof resources)[number];
  const object = { apiVersion: "x.example/v1", kind: "Wheel", metadata: {}, spokes: null } as unknown as KubeObject;
  assert.deepEqual(conversionsOf([wheel]).convert(object, { group: "x.example", version: "v2" }), {
    ...object,
    apiVersion: "x.example/v2",
    size: 2,
  });
});

import assert from "node:assert/strict";
import { test } from "node:test";
import type { KubeObject } from "@coxswain/apimachinery/objects/meta/types";
import type { RuleWithOperations } from "@coxswain/apimachinery/objects/schema/kinds/admissionregistration/v1";
import type { AdmissionAttributes } from "../plugin.ts";
import { matchingVersion, selectorsMatch, selectorsOf } from "./matcher.ts";

const write = (more: Partial<AdmissionAttributes> = {}): AdmissionAttributes =>
  ({
    operation: "CREATE",
    kind: { group: "apps", version: "v1", kind: "Deployment" },
    resource: { group: "apps", version: "v1", resource: "deployments" },
    subresource: "",
    namespace: "default",
    name: "d",
    object: { metadata: { labels: { a: "new" } } } as KubeObject,
    oldObject: undefined,
    ...more,
  }) as AdmissionAttributes;
const rule = (more: Partial<RuleWithOperations> = {}): RuleWithOperations => ({
  operations: ["CREATE"],
  apiGroups: ["apps"],
  apiVersions: ["v1"],
  resources: ["deployments"],
  ...more,
});
const versions = ["v1", "v1beta1", "v1beta2"].map((version) => ({
  group: "apps",
  version,
  resource: "deployments",
  kind: "Deployment",
}));
const scale = write({ subresource: "scale" });
const namespace = write({ resource: { group: "", version: "v1", resource: "namespaces" }, namespace: "x" });
const everything = rule({ operations: ["*"], apiGroups: ["*"], apiVersions: ["*"], resources: ["*/*"] });

for (const { name, attributes = write(), rules, matchPolicy, want } of [
  { name: "its very rule", rules: [rule()], want: "v1" },
  { name: "one of its rules", rules: [rule({ operations: ["DELETE"] }), rule()], want: "v1" },
  { name: "another operation", rules: [rule({ operations: ["UPDATE", "DELETE"] })], want: undefined },
  { name: "another group", rules: [rule({ apiGroups: ["batch"] })], want: undefined },
  { name: "another version, as an equivalent", rules: [rule({ apiVersions: ["v1beta1"] })], want: "v1beta1" },
  {
    name: "two other versions, by the first rule",
    rules: [rule({ apiVersions: ["v1beta2"] }), rule({ apiVersions: ["v1beta1"] })],
    want: "v1beta2",
  },
  {
    name: "its own version after another one",
    rules: [rule({ apiVersions: ["v1beta2"] }), rule()],
    want: "v1",
  },
  { name: "another version, exactly", rules: [rule({ apiVersions: ["v1beta1"] })], matchPolicy: "Exact", want: undefined },
  { name: "a subresource, without one in the rule", attributes: scale, rules: [rule()], want: undefined },
  { name: "a subresource by name", attributes: scale, rules: [rule({ resources: ["deployments/scale"] })], want: "v1" },
  { name: "a subresource of anything", attributes: scale, rules: [rule({ resources: ["*/scale"] })], want: "v1" },
  { name: "a subresource by *", attributes: scale, rules: [rule({ resources: ["*"] })], want: undefined },
  { name: "a subresource by */*", attributes: scale, rules: [everything], want: "v1" },
  { name: "the other scope", rules: [rule({ scope: "Cluster" })], want: undefined },
  { name: "its scope", rules: [rule({ scope: "Namespaced" })], want: "v1" },
  {
    name: "a namespace, which is of the cluster",
    attributes: namespace,
    rules: [{ ...everything, scope: "Cluster" as const }],
    want: "v1",
  },
  {
    name: "a namespace, which is in none",
    attributes: namespace,
    rules: [{ ...everything, scope: "Namespaced" as const }],
    want: undefined,
  },
  {
    name: "webhook configurations",
    attributes: write({
      resource: { group: "admissionregistration.k8s.io", version: "v1", resource: "mutatingwebhookconfigurations" },
    }),
    rules: [everything],
    want: undefined,
  },
  {
    name: "validating webhook configurations",
    attributes: write({
      resource: { group: "admissionregistration.k8s.io", version: "v1", resource: "validatingwebhookconfigurations" },
    }),
    rules: [everything],
    want: undefined,
  },
  {
    name: "another group's resource that is called like webhook configurations",
    attributes: write({ resource: { group: "example.com", version: "v1", resource: "mutatingwebhookconfigurations" } }),
    rules: [everything],
    want: "v1",
  },
  {
    name: "another group's resource that is called like namespaces, in a namespace",
    attributes: write({ resource: { group: "example.com", version: "v1", resource: "namespaces" } }),
    rules: [{ ...everything, scope: "Namespaced" as const }],
    want: "v1",
  },
]) {
  test(`rules and a write with ${name}`, () => {
    const webhook = { rules, ...(matchPolicy === undefined ? {} : { matchPolicy }) };
    assert.equal(matchingVersion(webhook, attributes, versions)?.version, want);
  });
}

const old = { metadata: { labels: { a: "old" } } } as KubeObject;
for (const { name, attributes = write(), objectSelector, namespaceSelector, namespaceLabels, want } of [
  { name: "none", want: true },
  { name: "none, for a connection", attributes: write({ operation: "CONNECT" }), want: true },
  { name: "one for the new object", objectSelector: { matchLabels: { a: "new" } }, want: true },
  {
    name: "one for the old object",
    attributes: write({ oldObject: old }),
    objectSelector: { matchLabels: { a: "old" } },
    want: true,
  },
  { name: "one for neither", attributes: write({ oldObject: old }), objectSelector: { matchLabels: { a: "x" } }, want: false },
  {
    name: "one that the options of a connection cannot meet",
    attributes: write({ operation: "CONNECT" }),
    objectSelector: { matchExpressions: [{ key: "b", operator: "DoesNotExist" as const }] },
    want: false,
  },
  { name: "one for the namespace", namespaceSelector: { matchLabels: { n: "1" } }, namespaceLabels: { n: "1" }, want: true },
  { name: "one for another namespace", namespaceSelector: { matchLabels: { n: "1" } }, namespaceLabels: {}, want: false },
  { name: "one for namespaces, and an object in none", namespaceSelector: { matchLabels: { n: "1" } }, want: true },
]) {
  test(`selectors: ${name}`, () => {
    const webhook = {
      ...(objectSelector === undefined ? {} : { objectSelector }),
      ...(namespaceSelector === undefined ? {} : { namespaceSelector }),
    };
    assert.equal(selectorsMatch(selectorsOf(webhook), attributes, namespaceLabels), want);
  });
}

test("the selectors of a webhook are read once, whatever number of writes they match", () => {
  let reads = 0;
  const counted = (label: string) => ({
    get matchLabels() {
      reads++;
      return { [label]: "new" };
    },
  });
  const selectors = selectorsOf({ objectSelector: counted("a"), namespaceSelector: counted("n") });
  for (let at = 0; at < 3; at++) assert.equal(selectorsMatch(selectors, write(), { n: "new" }), true);
  assert.equal(reads, 2);
});

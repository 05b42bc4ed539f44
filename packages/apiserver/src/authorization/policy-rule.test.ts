import assert from "node:assert/strict";
import { test } from "node:test";
import type { Attributes, PolicyRule } from "./authorizer.ts";
import { ruleAllows } from "./policy-rule.ts";

const asks = (changes: Partial<Attributes>): Attributes => ({
  ...{ user: { name: "jane", groups: [] }, verb: "get", isResourceRequest: true, namespace: "web", group: "apps" },
  ...{ version: "v1", resource: "deployments", subresource: "", name: "a", path: "", ...changes },
});
const path = (text: string) => ({ isResourceRequest: false, path: text });
const all = { verbs: ["*"], apiGroups: ["*"], resources: ["*"] };

for (const { name, rule, changes = {}, want } of [
  { name: "everything", rule: all, want: true },
  { name: "everything, also of a subresource", rule: all, changes: { subresource: "scale" }, want: true },
  { name: "resources without a verb", rule: { ...all, verbs: undefined }, want: false },
  { name: "resources with an empty list of verbs", rule: { ...all, verbs: [] }, want: false },
  { name: "resources without a group", rule: { ...all, apiGroups: undefined }, want: false },
  { name: "a group without resources", rule: { ...all, resources: undefined }, want: false },
  { name: "the second of two verbs, groups, resources and names", rule: two(), want: true },
  { name: "another name than two", rule: two(), changes: { name: "c" }, want: false },
  { name: "an empty list of names, which is every name", rule: { ...all, resourceNames: [] }, want: true },
  { name: "a resource, not its subresource", rule: two(), changes: { subresource: "scale" }, want: false },
  { name: "a subresource", rule: two("deployments/scale"), changes: { subresource: "scale" }, want: true },
  { name: "a subresource, not its resource", rule: two("deployments/scale"), want: false },
  { name: "a subresource of everything", rule: two("*/scale"), changes: { subresource: "scale" }, want: true },
  { name: "another subresource of everything", rule: two("*/status"), changes: { subresource: "scale" }, want: false },
  { name: "resources for a path", rule: all, changes: path("/healthz"), want: false },
  { name: "paths for a resource", rule: { verbs: ["*"], nonResourceURLs: ["*"] }, want: false },
  { name: "every path", rule: { verbs: ["*"], nonResourceURLs: ["*"] }, changes: path("/healthz"), want: true },
  { name: "the second of two paths", rule: paths("/a", "/healthz"), changes: path("/healthz"), want: true },
  { name: "a path below a star", rule: paths("/a", "/healthz/*"), changes: path("/healthz/ping"), want: true },
  { name: "the path above a star", rule: paths("/healthz/*"), changes: path("/healthz"), want: false },
  { name: "a path that only begins alike", rule: paths("/healthz"), changes: path("/healthz/ping"), want: false },
  { name: "a path with another verb", rule: paths("/healthz"), changes: { ...path("/healthz"), verb: "post" }, want: false },
] as { name: string; rule: PolicyRule; changes?: Partial<Attributes>; want: boolean }[]) {
  test(`a rule of ${name} ${want ? "allows" : "does not allow"} it`, () => assert.equal(ruleAllows(rule, asks(changes)), want));
}

function two(resource = "deployments"): PolicyRule {
  return { verbs: ["list", "get"], apiGroups: ["", "apps"], resources: ["pods", resource], resourceNames: ["b", "a"] };
}
function paths(...nonResourceURLs: string[]): PolicyRule {
  return { verbs: ["head", "get"], nonResourceURLs };
}

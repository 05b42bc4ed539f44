import assert from "node:assert/strict";
import { test } from "node:test";
import { cleanPrefix, folderPrefix, isBuiltInGroup, storageFolder } from "./key-layout.ts";

for (const { resource, want } of [
  { resource: { group: "", resource: "pods" }, want: "/registry/pods/" },
  { resource: { group: "", resource: "nodes" }, want: "/registry/minions/" },
  { resource: { group: "", resource: "services" }, want: "/registry/services/specs/" },
  { resource: { group: "", resource: "endpoints" }, want: "/registry/services/endpoints/" },
  { resource: { group: "", resource: "replicationcontrollers" }, want: "/registry/controllers/" },
  { resource: { group: "apps", resource: "deployments" }, want: "/registry/deployments/" },
  { resource: { group: "coordination.k8s.io", resource: "leases" }, want: "/registry/leases/" },
  { resource: { group: "networking.k8s.io", resource: "ingresses" }, want: "/registry/ingress/" },
  { resource: { group: "extensions", resource: "ingresses" }, want: "/registry/ingress/" },
  { resource: { group: "extensions", resource: "podsecuritypolicies" }, want: "/registry/podsecuritypolicy/" },
  { resource: { group: "networking.k8s.io", resource: "ingressclasses" }, want: "/registry/ingressclasses/" },
  { resource: { group: "policy", resource: "podsecuritypolicies" }, want: "/registry/podsecuritypolicy/" },
  { resource: { group: "events.k8s.io", resource: "events" }, want: "/registry/events/" },
  {
    resource: { group: "apiregistration.k8s.io", resource: "apiservices" },
    want: "/registry/apiregistration.k8s.io/apiservices/",
  },
  {
    resource: { group: "apiextensions.k8s.io", resource: "customresourcedefinitions" },
    want: "/registry/apiextensions.k8s.io/customresourcedefinitions/",
  },
  { resource: { group: "example.com", resource: "widgets" }, want: "/registry/example.com/widgets/" },
  { resource: { group: "", resource: "x", storageFolder: "ranges" }, want: "/registry/ranges/" },
]) {
  test(`${resource.resource} of ${resource.group || "core"} is below ${want}`, () => {
    assert.equal(folderPrefix("/registry", storageFolder(resource)), want);
  });
}

test("the prefix may be written with or without slashes", () => {
  for (const prefix of ["registry", "/registry", "/registry/", "//registry//"]) assert.equal(cleanPrefix(prefix), "/registry");
  assert.equal(cleanPrefix("/a/b"), "/a/b");
});

test("custom resources cannot use the groups of built-in ones, and can use others", () => {
  const inK8sIo = "admissionregistration apiextensions apiregistration authentication authorization certificates coordination";
  const others =
    "discovery events flowcontrol.apiserver internal.apiserver networking node rbac.authorization scheduling storage";
  const groups = [...`${inK8sIo} ${others}`.split(" ").map((name) => `${name}.k8s.io`), "", "apps", "autoscaling", "batch"];
  for (const group of [...groups, "extensions", "policy"]) assert.equal(isBuiltInGroup(group), true, group);
  for (const group of ["k8s.io", "x.k8s.io", "example.com", "metrics.k8s.io", "core"])
    assert.equal(isBuiltInGroup(group), false, group);
});

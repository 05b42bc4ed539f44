import assert from "node:assert/strict";
import { test } from "node:test";
import { cleanPrefix, folderPrefix, storageFolder } from "./key-layout.ts";

for (const { resource, want } of [
  { resource: { group: "", resource: "pods" }, want: "/registry/pods/" },
  { resource: { group: "", resource: "nodes" }, want: "/registry/minions/" },
  { resource: { group: "", resource: "services" }, want: "/registry/services/specs/" },
  { resource: { group: "", resource: "endpoints" }, want: "/registry/services/endpoints/" },
  { resource: { group: "", resource: "replicationcontrollers" }, want: "/registry/controllers/" },
  { resource: { group: "apps", resource: "deployments" }, want: "/registry/deployments/" },
  { resource: { group: "coordination.k8s.io", resource: "leases" }, want: "/registry/leases/" },
  { resource: { group: "networking.k8s.io", resource: "ingresses" }, want: "/registry/ingress/" },
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

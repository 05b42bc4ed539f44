import assert from "node:assert/strict";
import { test } from "node:test";
import { newServedResources } from "../handlers/served-resources.ts";
import type { RegistryStore, ResourceDefinition } from "../registry/generic/resource.ts";
import { resourceNamed } from "./names.ts";

function servedResources() {
  const resources = newServedResources();
  const add = (group: string, resource: string, kind: string, more: object = {}, versions = ["v1"], isStored = true): void => {
    const definition = {
      group,
      resource,
      kind,
      singular: kind.toLowerCase(),
      hub: "v1",
      ...more,
    } as unknown as ResourceDefinition;
    for (const version of versions) resources.add(definition, { version }, isStored ? ({} as RegistryStore) : undefined);
  };
  add("a.custom.io", "deployments", "Deployment", { custom: true });
  add("apps", "deployments", "Deployment", { shortNames: ["dep", "deploy"] }, ["v1beta1", "v1"]);
  add("zoo.io", "events", "Event");
  add("events.k8s.io", "events", "Event");
  add("", "events", "Event", { shortNames: ["ev"] });
  add("authentication.k8s.io", "tokenreviews", "TokenReview", {}, ["v1"], false);
  return resources;
}

for (const [text, want] of [
  ["deployments", "deployments.v1.apps"],
  ["Deployment", "deployments.v1.apps"],
  ["DEPLOY", "deployments.v1.apps"],
  ["dep", "deployments.v1.apps"],
  ["deployments.apps", "deployments.v1.apps"],
  ["deployment.a.custom.io", "deployments.v1.a.custom.io"],
  ["deploy.a.custom.io", undefined],
  ["deployments.io", undefined],
  ["events", "events.v1."],
  ["ev", "events.v1."],
  ["events.events.k8s.io", "events.v1.events.k8s.io"],
  ["events.zoo.io", "events.v1.zoo.io"],
  ["tokenreviews", undefined],
  ["", undefined],
] as const) {
  test(`${JSON.stringify(text)} names ${want ?? "no resource that is stored"}`, () => {
    const served = resourceNamed(servedResources(), text);
    const found = served && `${served.definition.resource}.${served.version.version}.${served.definition.group}`;
    assert.equal(found, want);
  });
}

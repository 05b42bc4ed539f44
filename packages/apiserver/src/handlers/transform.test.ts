import assert from "node:assert/strict";
import { test } from "node:test";
import type { StatusError } from "@coxswain/apimachinery/objects/errors/status-error";
import type { ResourceDefinition } from "../registry/generic/resource.ts";
import { listRequestedAsObject, objectRequestedAsList, responseRequestedAsList } from "./transform.ts";

for (const { group, custom = false, object, list } of [
  { group: "", object: "core.Thing", list: "core.ThingList" },
  { group: "events.k8s.io", object: "core.Thing", list: "core.ThingList" },
  { group: "apps", object: "apps.Thing", list: "apps.ThingList" },
  { group: "rbac.authorization.k8s.io", object: "rbac.Thing", list: "rbac.ThingList" },
  { group: "internal.apiserver.k8s.io", object: "apiserverinternal.Thing", list: "apiserverinternal.ThingList" },
  { group: "example.com", custom: true, object: "unstructured.Unstructured", list: "unstructured.UnstructuredList" },
]) {
  test(`${custom ? "a custom resource" : `a kind of ${group || "the core group"}`} that is wanted as metadata of the wrong sort is named by its Go type`, () => {
    const definition = { group, kind: "Thing", listKind: "ThingList", ...(custom && { custom }) } as ResourceDefinition;
    const asObject = "you requested PartialObjectMetadata, but the requested object is a list";
    const asList = "you requested PartialObjectMetadataList, but the requested object is not a list";
    const errors = [listRequestedAsObject(definition), objectRequestedAsList(definition)] as StatusError[];
    assert.deepEqual(
      errors.map(({ code, message }) => [code, message]),
      [
        [406, `${asObject} (*${list})`],
        [406, `${asList} (*${object})`],
      ],
    );
  });
}

for (const [apiVersion, name] of [
  ["autoscaling/v1", "autoscaling.Scale"],
  ["authorization.k8s.io/v1", "authorization.Scale"],
  ["v1", "v1.Scale"],
] as const) {
  test(`an answer of ${apiVersion} that is wanted as a list of metadata is a ${name}`, () => {
    const { message } = responseRequestedAsList({ apiVersion, kind: "Scale", metadata: {} });
    assert.ok(message.endsWith(`the requested object is not a list (*${name})`), message);
  });
}

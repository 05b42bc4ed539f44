import assert from "node:assert/strict";
import { test } from "node:test";
import { decodeProtobuf } from "../objects/codec/protobuf.ts";
import type { ResourceRef } from "../objects/meta/group-version.ts";
import { deployments, nodes, pods } from "../objects/schema/kinds/resources.ts";
import { deleteBody, objectBody } from "./body.ts";

const things: ResourceRef = { group: "example.com", version: "v1", resource: "things", kind: "Thing", namespaced: true };
const scale = { apiVersion: "autoscaling/v1", kind: "Scale", metadata: { name: "a" }, spec: { replicas: 2 } };
const binding = { apiVersion: "v1", kind: "Binding", metadata: { name: "a" }, target: { kind: "Node", name: "n" } };

for (const { name, ref, object, subresource, want } of [
  { name: "an object that says nothing of its kind", ref: nodes, object: { metadata: { name: "a" } }, want: "v1 Node" },
  { name: "its status", ref: nodes, object: { metadata: { name: "a" } }, subresource: "status", want: "v1 Node" },
  { name: "a subresource's own kind", ref: pods, object: binding, subresource: "binding", want: "v1 Binding" },
  { name: "a scale", ref: deployments, object: scale, subresource: "scale", want: "autoscaling/v1 Scale" },
  { name: "a custom resource's scale", ref: things, object: scale, subresource: "scale", want: "JSON" },
  { name: "a custom resource", ref: things, object: { metadata: { name: "a" } }, want: "JSON" },
  { name: "a body of an unknown kind", ref: pods, object: { metadata: {} }, subresource: "binding", want: "JSON" },
  {
    name: "a custom resource's object on a subresource",
    ref: pods,
    object: { apiVersion: "example.com/v1", kind: "Thing", metadata: { name: "a" } },
    subresource: "things",
    want: "JSON",
  },
] as { name: string; ref: ResourceRef; object: object; subresource?: string; want: string }[]) {
  test(`${name} is sent as ${want}`, () => {
    const { contentType, bytes } = objectBody(ref, object, true, subresource);
    if (want === "JSON") {
      assert.equal(contentType, "application/json");
      assert.partialDeepStrictEqual(JSON.parse(String(bytes)), object);
      return;
    }
    assert.equal(contentType, "application/vnd.kubernetes.protobuf");
    const sent = decodeProtobuf(bytes as Buffer);
    assert.equal(`${sent.apiVersion} ${sent.kind}`, want);
    assert.partialDeepStrictEqual(sent, object);
  });
}

test("without protobuf everything is JSON and names its kind", () => {
  const { contentType, bytes } = objectBody(nodes, { metadata: { name: "a" } }, false, undefined);
  assert.equal(contentType, "application/json");
  assert.deepEqual(JSON.parse(String(bytes)), { metadata: { name: "a" }, apiVersion: "v1", kind: "Node" });
});

test("options of the deletion of a custom resource are JSON", () => {
  const { contentType, bytes } = deleteBody(things, { gracePeriodSeconds: 0 }, true);
  assert.equal(contentType, "application/json");
  assert.deepEqual(JSON.parse(String(bytes)), { kind: "DeleteOptions", apiVersion: "v1", gracePeriodSeconds: 0 });
});

test("options of a deletion keep what they say in either form", () => {
  const options = { gracePeriodSeconds: 0, preconditions: { uid: "u" }, propagationPolicy: "Background" as const };
  assert.partialDeepStrictEqual(decodeProtobuf(deleteBody(pods, options, true).bytes as Buffer), options);
  assert.partialDeepStrictEqual(JSON.parse(String(deleteBody(pods, options, false).bytes)), options);
});

import assert from "node:assert/strict";
import { test } from "node:test";
import type { KubeObject } from "@coxswain/apimachinery/objects/meta/types";
import { atOnce } from "@coxswain/apimachinery/process/event-loop/steps";
import { newObjectCodec, type StoredResource } from "./object-codec.ts";
import { unlimitedEntries } from "./testing.ts";

type Widget = KubeObject & { spec: { size?: number; width?: number; color?: string } };

/** A resource with the hub v2, stored as v1; conversions change what they are given. */
const widgets: StoredResource = {
  ...{ group: "example.com", resource: "widgets", kind: "Widget", namespaced: true, hub: "v2" },
  storage: { group: "example.com", version: "v1" },
  versions: [
    {
      version: "v1",
      defaults(object) {
        (object as Widget).spec.color ??= "red";
      },
      fromHub(object) {
        const { spec } = object as Widget;
        spec.size = spec.width!;
        delete spec.width;
        return object;
      },
      toHub(object) {
        const { spec } = object as Widget;
        spec.width = spec.size!;
        delete spec.size;
        return object;
      },
    },
    { version: "v2" },
  ],
  formerVersions: [
    {
      ...{ group: "old.example.com", version: "v1" },
      toHub(object) {
        (object as Widget).spec = { width: 99 };
        return object;
      },
    },
  ],
};
const aWidget = (spec: Widget["spec"], apiVersion = "example.com/v2"): Widget => ({
  ...{ apiVersion, kind: "Widget", metadata: { name: "a", namespace: "web", resourceVersion: "5", selfLink: "/x" } },
  spec,
});
const codecOf = (resource: StoredResource) => newObjectCodec(resource, "application/json", unlimitedEntries());
const bytesOf = (object: object) => Buffer.from(JSON.stringify(object));

test("an object is stored in the storage version, without resourceVersion and link, and is not changed by it", () => {
  const widget = aWidget({ width: 3, color: "blue" });
  const before = structuredClone(widget);
  const stored = JSON.parse(String(codecOf(widgets).toStored(widget)));
  assert.deepEqual(stored, {
    ...{ kind: "Widget", apiVersion: "example.com/v1", metadata: { name: "a", namespace: "web" } },
    spec: { size: 3, color: "blue" },
  });
  assert.deepEqual(widget, before);
});

for (const { what, stored, spec } of [
  {
    what: "the storage version, with its defaults",
    stored: aWidget({ size: 3 }, "example.com/v1"),
    spec: { width: 3, color: "red" },
  },
  { what: "the hub's version, without the defaults of another", stored: aWidget({ width: 3 }), spec: { width: 3 } },
  { what: "a former group's version", stored: aWidget({}, "old.example.com/v1"), spec: { width: 99 } },
  { what: "no version, which is the hub's", stored: { ...aWidget({ width: 3 }), apiVersion: undefined }, spec: { width: 3 } },
]) {
  test(`an object stored in ${what} is read in the hub's version`, () => {
    const read = codecOf(widgets).fromStored(bytesOf(stored)) as Widget;
    assert.deepEqual([read.apiVersion, read.kind, read.spec], ["example.com/v2", "Widget", spec]);
  });
}

test("a resource that keeps versions is stored and read as it is", () => {
  const codec = codecOf({ ...widgets, keepsVersions: true });
  const widget = aWidget({ size: 1 }, "example.com/v7");
  const read = codec.fromStored(codec.toStored(widget)) as Widget;
  assert.deepEqual([read.apiVersion, read.spec, read.metadata.resourceVersion], ["example.com/v7", { size: 1 }, undefined]);
  assert.deepEqual(codec.fromStored(bytesOf({ kind: "Widget" })).metadata, {}, "an object without metadata has empty ones");
});

test("selectable fields are name and namespace, for namespaced resources, and those of the resource", () => {
  const fields = (resource: StoredResource) => codecOf(resource).fieldsOf(aWidget({}));
  assert.deepEqual(fields(widgets), { "metadata.name": "a", "metadata.namespace": "web" });
  assert.deepEqual(fields({ ...widgets, namespaced: false, selectableFields: () => ({ "spec.x": "1" }) }), {
    "metadata.name": "a",
    "spec.x": "1",
  });
});

for (const { stored, message } of [
  { stored: "null", message: "the value is not a JSON object" },
  { stored: "[]", message: "the value is not a JSON object" },
  { stored: '"text"', message: "the value is not a JSON object" },
  { stored: '{"metadata":5}', message: "the metadata of the value are not a JSON object" },
]) {
  test(`a value in etcd that is ${stored} is refused, at once and in steps, whether versions are kept or not`, () => {
    for (const codec of [codecOf(widgets), codecOf({ ...widgets, keepsVersions: true })]) {
      assert.throws(() => codec.fromStored(Buffer.from(stored)), { message });
      assert.throws(() => atOnce(codec.fromStoredInSteps(Buffer.from(stored))), { message });
    }
  });
}

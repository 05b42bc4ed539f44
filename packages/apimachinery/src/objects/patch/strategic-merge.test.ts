import assert from "node:assert/strict";
import { test } from "node:test";
import type { TypeDescriptor } from "../schema/descriptor.ts";
import { scheme } from "../schema/scheme.ts";
import { applyStrategicMerge } from "./strategic-merge.ts";
import { createTwoWayMergePatch } from "./testing/strategic-diff.ts";

const podSpec = scheme.type("core/v1.PodSpec") as TypeDescriptor;
const objectMeta = scheme.type("meta/v1.ObjectMeta") as TypeDescriptor;
const deploymentSpec = scheme.type("apps/v1.DeploymentSpec") as TypeDescriptor;
const serviceSpec = scheme.type("core/v1.ServiceSpec") as TypeDescriptor;

for (const { name, type, original, patch, want } of [
  {
    name: "merges containers by name and keeps their order",
    type: podSpec,
    original: {
      containers: [
        { name: "a", image: "1" },
        { name: "b", image: "1" },
      ],
    },
    patch: { containers: [{ name: "b", image: "2" }] },
    want: {
      containers: [
        { name: "a", image: "1" },
        { name: "b", image: "2" },
      ],
    },
  },
  {
    // Server-only elements keep their position relative to those that the patch names.
    name: "puts a new element in front of the elements the patch does not name",
    type: podSpec,
    original: { containers: [{ name: "a" }] },
    patch: { containers: [{ name: "b" }] },
    want: { containers: [{ name: "b" }, { name: "a" }] },
  },
  {
    name: "merges into the first of several elements of one key",
    type: serviceSpec,
    original: {
      ports: [
        { name: "dns", port: 53, protocol: "UDP" },
        { name: "dns-tcp", port: 53, protocol: "TCP" },
      ],
    },
    patch: { ports: [{ port: 53, nodePort: 30053 }] },
    want: {
      ports: [
        { name: "dns", port: 53, protocol: "UDP", nodePort: 30053 },
        { name: "dns-tcp", port: 53, protocol: "TCP" },
      ],
    },
  },
  {
    name: "deletes an element by its merge key",
    type: podSpec,
    original: { containers: [{ name: "a" }, { name: "b" }] },
    patch: { containers: [{ $patch: "delete", name: "a" }] },
    want: { containers: [{ name: "b" }] },
  },
  {
    name: "replaces a list",
    type: podSpec,
    original: { containers: [{ name: "a" }, { name: "b" }] },
    patch: { containers: [{ $patch: "replace" }, { name: "c" }] },
    want: { containers: [{ name: "c" }] },
  },
  {
    name: "replaces a list, in the order that the patch names beside",
    type: podSpec,
    original: { containers: [{ name: "a" }, { name: "b" }] },
    patch: {
      "$setElementOrder/containers": [{ name: "c" }, { name: "d" }],
      containers: [{ $patch: "replace" }, { name: "c" }, { name: "d" }],
    },
    want: { containers: [{ name: "c" }, { name: "d" }] },
  },
  {
    name: "empties a list",
    type: podSpec,
    original: { containers: [{ name: "a" }, { name: "b" }] },
    patch: { containers: [{ $patch: "replace" }] },
    want: { containers: [] },
  },
  {
    name: "replaces an object",
    type: podSpec,
    original: { securityContext: { runAsUser: 1, runAsGroup: 2 } },
    patch: { securityContext: { $patch: "replace", runAsUser: 3 } },
    want: { securityContext: { runAsUser: 3 } },
  },
  {
    name: "empties an object",
    type: podSpec,
    original: { securityContext: { runAsUser: 1 } },
    patch: { securityContext: { $patch: "delete" } },
    want: { securityContext: {} },
  },
  {
    name: "replaces lists that have no merge strategy",
    type: podSpec,
    original: { tolerations: [{ key: "a" }] },
    patch: { tolerations: [{ key: "b" }] },
    want: { tolerations: [{ key: "b" }] },
  },
  {
    name: "merges an element that the patch names twice with itself",
    type: podSpec,
    original: { containers: [{ name: "b" }] },
    patch: {
      containers: [
        { name: "a", image: "1" },
        { name: "a", image: "2" },
        { name: "b", image: "3" },
      ],
    },
    want: {
      containers: [
        { name: "a", image: "2" },
        { name: "b", image: "3" },
      ],
    },
  },
  {
    name: "merges ports by their number",
    type: serviceSpec,
    original: { ports: [{ port: 80, name: "a" }] },
    patch: { ports: [{ port: 80, nodePort: 30000 }] },
    want: { ports: [{ port: 80, name: "a", nodePort: 30000 }] },
  },
  {
    name: "retains only the named keys of a union",
    type: deploymentSpec,
    original: { strategy: { type: "RollingUpdate", rollingUpdate: { maxSurge: 1 } } },
    patch: { strategy: { $retainKeys: ["type"], type: "Recreate" } },
    want: { strategy: { type: "Recreate" } },
  },
  {
    name: "merges and deletes scalars of a set",
    type: objectMeta,
    original: { finalizers: ["a", "b"] },
    patch: { "$deleteFromPrimitiveList/finalizers": ["a"], finalizers: ["c"], "$setElementOrder/finalizers": ["c", "b"] },
    want: { finalizers: ["c", "b"] },
  },
  {
    name: "deletes from a set before it adds, whatever comes first in the patch",
    type: objectMeta,
    original: { finalizers: ["a", "b"] },
    patch: { finalizers: ["a", "c"], "$deleteFromPrimitiveList/finalizers": ["a", "b"] },
    want: { finalizers: ["a", "c"] },
  },
  {
    name: "orders elements by the configured order",
    type: podSpec,
    original: { containers: [{ name: "a" }, { name: "b" }, { name: "server" }] },
    patch: { "$setElementOrder/containers": [{ name: "b" }, { name: "a" }], containers: [{ name: "a", image: "2" }] },
    want: { containers: [{ name: "b" }, { name: "a", image: "2" }, { name: "server" }] },
  },
  {
    name: "removes what is null",
    type: podSpec,
    original: { nodeName: "n", nodeSelector: { a: "1", b: "2" } },
    patch: { nodeName: null, nodeSelector: { a: null } },
    want: { nodeSelector: { b: "2" } },
  },
  {
    name: "takes content that is new as it is, directives and all",
    type: podSpec,
    original: {},
    patch: { securityContext: { $retainKeys: ["runAsUser"], runAsUser: 1 }, "$deleteFromPrimitiveList/volumes": [{ name: "v" }] },
    want: { securityContext: { $retainKeys: ["runAsUser"], runAsUser: 1 }, volumes: [{ name: "v" }] },
  },
]) {
  test(name, () => {
    const before = structuredClone({ original, patch });
    assert.deepEqual(applyStrategicMerge(original, patch, type), want);
    assert.deepEqual({ original, patch }, before, "the arguments are left as they were");
  });
}

for (const { name, patch, message } of [
  {
    name: "names the merge key that is missing",
    patch: { containers: [{ image: "x" }] },
    message: "map: map[image:x] does not contain declared merge key: name",
  },
  {
    name: "names the merge key that is missing in a deletion",
    patch: { containers: [{ $patch: "delete", image: "x" }] },
    message: "map: map[$patch:delete image:x] does not contain declared merge key: name",
  },
  {
    name: "refuses to merge lists by a directive",
    patch: { containers: [{ $patch: "merge", name: "a" }] },
    message: "merging lists cannot yet be specified in the patch",
  },
  {
    name: "refuses fields that are not retained",
    patch: { securityContext: { $retainKeys: ["runAsUser"], runAsGroup: 1 } },
    message: "invalid patch format of retainKeys",
  },
  {
    name: "refuses an order that does not fit",
    patch: { "$setElementOrder/containers": [{ name: "x" }], containers: [{ name: "a" }] },
    message: /^The order in patch list/,
  },
  {
    name: "refuses an order that is no list",
    patch: { "$setElementOrder/containers": "a" },
    message: "expected a []interface {}, but received a string",
  },
  {
    name: "refuses an order that is null",
    patch: { "$setElementOrder/containers": null },
    message: "expected a []interface {}, but received a %!s(<nil>)",
  },
  {
    name: "refuses a list that is none beside an order",
    patch: { "$setElementOrder/containers": [], containers: 1.5 },
    message: "expected a []interface {}, but received a float64",
  },
  {
    name: "refuses an order without merge keys",
    patch: { "$setElementOrder/containers": [{}] },
    message: "map: map[] does not contain declared merge key: name",
  },
  {
    name: "refuses an order of what are no objects",
    patch: { "$setElementOrder/containers": ["a"] },
    message: "value for key 0 is not a map",
  },
  {
    name: "refuses an order of what is no field",
    patch: { "$setElementOrder/none": ["a"] },
    message: 'unable to find api field in struct PodSpec for the json field "none"',
  },
  {
    name: "refuses an order of what is no list by its type",
    patch: { "$setElementOrder/affinity": [] },
    message: "expected slice or array type, but got: struct",
  },
  {
    name: "refuses an order inside a map",
    patch: { nodeSelector: { "$setElementOrder/x": [] } },
    message: "merging an object in json but data type is not struct, instead is: map",
  },
  {
    name: "refuses elements of two kinds",
    patch: { containers: ["x"] },
    message: "list element types are not identical: [[map[name:a]] [x]]",
  },
  {
    name: "refuses lists in lists",
    patch: { imagePullSecrets: [[]] },
    message: "the server rejected our request due to an error in our request",
  },
  {
    name: "refuses a directive that is no text, in Go's words",
    patch: { securityContext: { $patch: [1, null] } },
    message: "unknown patch type: [%!s(int64=1) <nil>] in map: map[$patch:[1 <nil>]]",
  },
  {
    name: "refuses the directive to replace behind elements that are in order",
    patch: { "$setElementOrder/containers": [{ name: "c" }], containers: [{ name: "c" }, { $patch: "replace" }] },
    message:
      "The order in patch list:\n[map[name:c] map[$patch:replace]]\n doesn't match $setElementOrder list:\n[map[name:c]]\n",
  },
  {
    name: "refuses a directive without its field",
    patch: { $deleteFromPrimitiveList: ["a"] },
    message: "invalid patch format of primitive list",
  },
  {
    name: "refuses an order without its field",
    patch: { $setElementOrder: ["a"] },
    message: "invalid patch format of setElementOrder list",
  },
  {
    name: "refuses an unknown directive of an element",
    patch: { containers: [{ $patch: "drop", name: "a" }] },
    message: "unknown patch type: drop in map: map[$patch:drop name:a]",
  },
  {
    name: "refuses null as an element, over which Go panics",
    patch: { imagePullSecrets: [null] },
    message: "runtime error: invalid memory address or nil pointer dereference",
  },
  {
    name: "refuses to retain what is no list",
    patch: { securityContext: { $retainKeys: "runAsUser" } },
    message: "invalid patch format of retainKeys",
  },
  {
    name: "refuses what is no object in an order, behind one that fits",
    patch: { "$setElementOrder/containers": [{ name: "a" }, "b"] },
    message: "expected a map[string]interface {}, but received a string",
  },
  {
    name: "refuses to retain what is no name, over which Go panics",
    patch: { securityContext: { $retainKeys: [{}] } },
    message: "runtime error: hash of unhashable type map[string]interface {}",
  },
]) {
  test(name, () => {
    const original = {
      containers: [{ name: "a" }],
      securityContext: { runAsUser: 1 },
      nodeSelector: { a: "1" },
      imagePullSecrets: [],
    };
    assert.throws(() => applyStrategicMerge(original, patch, podSpec), { message });
  });
}

test("merges a hundred thousand elements and deletions in linear time", () => {
  const names = Array.from({ length: 100_000 }, (_, i) => `v${i}`);
  const original = { volumes: names.map((name) => ({ name })) };
  const patch = { volumes: names.map((name, i) => (i % 2 ? { name, emptyDir: {} } : { $patch: "delete", name })) };
  const merged = applyStrategicMerge(original, patch, podSpec) as { volumes: unknown[] };
  assert.equal(merged.volumes.length, 50_000);
});

for (const { name, type, original, modified, want } of [
  {
    name: "says nothing when nothing changed",
    type: podSpec,
    original: { containers: [{ name: "a" }] },
    modified: { containers: [{ name: "a" }] },
    want: {},
  },
  {
    name: "says what changed in an element, by its key",
    type: podSpec,
    original: { containers: [{ name: "a", image: "1" }, { name: "b" }] },
    modified: { containers: [{ name: "a", image: "2" }, { name: "b" }] },
    want: { "$setElementOrder/containers": [{ name: "a" }, { name: "b" }], containers: [{ image: "2", name: "a" }] },
  },
  {
    name: "deletes by merge key",
    type: podSpec,
    original: { containers: [{ name: "a" }, { name: "b" }] },
    modified: { containers: [{ name: "b" }] },
    want: { "$setElementOrder/containers": [{ name: "b" }], containers: [{ $patch: "delete", name: "a" }] },
  },
  { name: "removes fields with null", type: podSpec, original: { nodeName: "a" }, modified: {}, want: { nodeName: null } },
  {
    name: "deletes scalars",
    type: objectMeta,
    original: { finalizers: ["a", "b"] },
    modified: { finalizers: ["b"] },
    want: { "$deleteFromPrimitiveList/finalizers": ["a"], "$setElementOrder/finalizers": ["b"] },
  },
  {
    name: "retains the keys of a union",
    type: deploymentSpec,
    original: { strategy: { type: "RollingUpdate", rollingUpdate: {} } },
    modified: { strategy: { type: "Recreate" } },
    want: { strategy: { $retainKeys: ["type"], type: "Recreate", rollingUpdate: null } },
  },
]) {
  test(`a difference ${name}`, () => {
    const patch = createTwoWayMergePatch(original, modified, type);
    assert.deepEqual(patch, want);
    assert.deepEqual(applyStrategicMerge(original, patch, type), modified);
  });
}

test("a patch has to be an object; what it patches is an empty one when it is none", () => {
  for (const patch of [[], "a", null, 1]) {
    assert.throws(() => applyStrategicMerge({}, patch, podSpec), { code: 400, message: "invalid JSON document" });
  }
  assert.deepEqual(applyStrategicMerge(null, { nodeName: "n" }, podSpec), { nodeName: "n" });
});

test("an order of a list that is neither there nor in the patch changes nothing", () => {
  const order = { "$setElementOrder/containers": [{ name: "a" }] };
  assert.deepEqual(applyStrategicMerge({ nodeName: "n" }, order, podSpec), { nodeName: "n" });
  assert.deepEqual(applyStrategicMerge({}, { ...order, containers: [{ name: "a" }] }, podSpec), { containers: [{ name: "a" }] });
});

import assert from "node:assert/strict";
import { test } from "node:test";
import { arbitraryObject } from "../../../testing/arbitrary-object.ts";
import fc from "../../../testing/fast-check.ts";
import { decodeJson } from "../../codec/json.ts";
import { encodeAny } from "../../codec/json-encode.ts";
import { formatGroupVersion, type GroupVersionKind } from "../../meta/group-version.ts";
import type { TypeDescriptor } from "../../schema/descriptor.ts";
import { scheme } from "../../schema/scheme.ts";
import { type ApplyType, applyTypeOf, deducedType } from "./apply-type.ts";
import { compare, withoutFields } from "./compare.ts";
import { createdFields } from "./created-fields.ts";
import { difference, setOf, toFieldsV1, union } from "./field-set.ts";

const stripped = setOf(["f:apiVersion"], ["f:kind"], ["f:metadata"], ["f:metadata", "f:name"], ["f:metadata", "f:uid"]);
const ignored = setOf(["f:status"], ["f:spec", "f:paused"]);

/** The general algorithm; undefined when it throws. */
function byComparison(gvk: GroupVersionKind, type: ApplyType, object: unknown): string | undefined {
  const nothing = { apiVersion: formatGroupVersion(gvk), kind: gvk.kind, metadata: {} };
  try {
    const { added, modified } = withoutFields(compare(type, nothing, object), ignored);
    return JSON.stringify(toFieldsV1(difference(union(modified, added), stripped)));
  } catch {
    return undefined;
  }
}

test("a walk finds the same fields as a comparison with an empty object", () => {
  let plain = 0;
  for (const gvk of scheme.kinds()) {
    const descriptor = scheme.kind(gvk) as TypeDescriptor;
    const type = applyTypeOf(descriptor);
    for (const sent of fc.sample(arbitraryObject(descriptor), { numRuns: 4, seed: 20211207 })) {
      const { object } = decodeJson(encodeAny({ ...sent, apiVersion: formatGroupVersion(gvk), kind: gvk.kind }), gvk);
      const found = createdFields(type, object, ignored, stripped);
      if (found === undefined) continue;
      plain++;
      assert.equal(
        found,
        byComparison(gvk, type, object),
        `${gvk.kind} ${JSON.stringify(sent, (_, v) => (typeof v === "bigint" ? String(v) : v))}`,
      );
    }
  }
  assert.ok(plain > 400, `${plain} plain cases`);
});

test("fields without a schema and lists with duplicate keys are left to the comparison", () => {
  const pod = applyTypeOf(scheme.kind({ group: "", version: "v1", kind: "Pod" }) as TypeDescriptor);
  const container = { name: "web" };
  assert.equal(createdFields(pod, { spec: { containers: [container, container] } }, ignored, stripped), undefined);
  assert.equal(createdFields(deducedType, { spec: {} }, ignored, stripped), undefined);
});

test("a field with the zero value that an empty object has is not owned, one with another value is", () => {
  const type = applyTypeOf(scheme.kind({ group: "scheduling.k8s.io", version: "v1", kind: "PriorityClass" }) as TypeDescriptor);
  for (const [value, want] of [
    [0, '{"f:description":{}}'],
    [7, '{"f:description":{},"f:value":{}}'],
  ] as const)
    assert.equal(createdFields(type, { value, description: "x" }, ignored, stripped), want);
});

test("a map of many keys is left to the comparison, which works in steps", () => {
  const map = applyTypeOf(scheme.kind({ group: "", version: "v1", kind: "ConfigMap" }) as TypeDescriptor);
  const dataOf = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, at) => [`k${at}`, ""]));
  assert.match(createdFields(map, { data: dataOf(2048) }, ignored, stripped) ?? "", /f:k2047/);
  assert.equal(createdFields(map, { data: dataOf(2049) }, ignored, stripped), undefined);
});

import assert from "node:assert/strict";
import { test } from "node:test";
import { deepClone } from "../meta/deep-equal.ts";
import { sharedFields, textOfFields } from "./fields-v1.ts";
import { decodeProtobuf, encodeProtobuf } from "./protobuf.ts";

const kind = { group: "", version: "v1", kind: "ConfigMap" };
const text = '{"f:data":{".":{},"f:<a>":{},"f:__proto__":{}}}';
const aConfigMap = (fieldsV1: unknown) =>
  ({
    ...kind,
    apiVersion: "v1",
    metadata: { name: "a", managedFields: [{ manager: "m", fieldsType: "FieldsV1", fieldsV1 }] },
  }) as never;
const fieldsOf = (bytes: Buffer): Record<string, unknown> =>
  decodeProtobuf(bytes).metadata.managedFields?.[0]?.fieldsV1 as Record<string, unknown>;

test("equal texts give the same frozen object", () => {
  const bytes = encodeProtobuf(aConfigMap(JSON.parse(text)), kind);
  const fields = fieldsOf(bytes);
  assert.equal(fieldsOf(bytes), fields);
  assert.equal(JSON.stringify(fields), text);
  assert.throws(() => Object.assign(fields, { "f:more": {} }), TypeError);
  assert.throws(() => Object.assign(fields["f:data"] as object, { "f:more": {} }), TypeError);
  const copy = deepClone(fields) as Record<string, unknown>;
  copy["f:more"] = {};
  assert.equal(textOfFields(copy), undefined);
});

test("shared fields are written as they were read", () => {
  const bytes = encodeProtobuf(aConfigMap(JSON.parse(text)), kind);
  assert.equal(textOfFields(sharedFields(text)), text);
  assert.ok(encodeProtobuf(aConfigMap(sharedFields(text)), kind).equals(bytes));
  assert.ok(encodeProtobuf(decodeProtobuf(bytes), kind).equals(bytes));
});

test("FieldsV1 text that is not an object is refused", () => {
  for (const wrong of ["", "[]", "1", "{"]) assert.throws(() => sharedFields(wrong));
});

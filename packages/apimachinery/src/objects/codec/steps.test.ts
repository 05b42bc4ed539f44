/** Encoding and decoding in steps give the same result as at once, for every kind. */
import assert from "node:assert/strict";
import { test } from "node:test";
import protobuf from "protobufjs/minimal.js";
import { atOnce, type Steps } from "../../process/event-loop/steps.ts";
import { arbitraryObject } from "../../testing/arbitrary-object.ts";
import fc from "../../testing/fast-check.ts";
import { randomOf } from "../../testing/random.ts";
import { deepClone, deepCloneInSteps, deepEqual, deepEqualInSteps } from "../meta/deep-equal.ts";
import type { GroupVersionKind } from "../meta/group-version.ts";
import type { KubeObject } from "../meta/types.ts";
import type { TypeDescriptor } from "../schema/descriptor.ts";
import { scheme } from "../schema/scheme.ts";
import { decodeJson, encodeJsonText } from "./json.ts";
import { encodeAny, sortedKeys, sortedKeysInSteps } from "./json-encode.ts";
import { encodeJsonTextInSteps, encodeValueInSteps } from "./json-encode-steps.ts";
import {
  decodeProtobuf,
  decodeUnknown,
  encodeMessage,
  encodeProtobuf,
  encodeProtobufInSteps,
  hasProtobufForm,
} from "./protobuf.ts";
import { readMessage } from "./protobuf-decode.ts";
import { readMessageInSteps } from "./protobuf-decode-steps.ts";
import { messageBytesInSteps } from "./protobuf-encode-steps.ts";
import { decodeProtobufReusing, decodeProtobufReusingInSteps } from "./protobuf-reuse.ts";

const many = 9_000;
const manyOf = <T>(count: number, make: (at: number) => T): T[] => Array.from({ length: count }, (_, at) => make(at));
const labels = Object.fromEntries(Array.from({ length: many }, (_, at) => [`k${at}`, "v".repeat(at % 7)]));
/** Runs the steps, of which there must be at least two. @returns their result */
function stepped<T>(steps: Steps<T>): T {
  let yields = 0;
  for (;;) {
    const step = steps.next();
    if (step.done) {
      assert.ok(yields > 0, "it yields");
      return step.value;
    }
    yields++;
  }
}

const typeOf = (gvk: GroupVersionKind): TypeDescriptor => scheme.kind(gvk) as TypeDescriptor;

test("every kind has the same JSON and protobuf in steps", () => {
  for (const gvk of scheme.kinds().filter(hasProtobufForm)) {
    const type = typeOf(gvk);
    for (const sample of fc.sample(arbitraryObject(type), { numRuns: 20, seed: 7 })) {
      const { object } = decodeJson(encodeAny({ ...sample, kind: gvk.kind }), gvk);
      const fields = object as unknown as Record<string, unknown>;
      assert.equal(atOnce(encodeValueInSteps(object, type)), encodeJsonText(object, gvk));
      const bytes = encodeMessage(object, type);
      assert.ok(atOnce(messageBytesInSteps(fields, type)).equals(bytes));
      assert.deepEqual(atOnce(readMessageInSteps(bytes, type)), readMessage(bytes, type));
    }
  }
});

function compare(object: KubeObject, gvk: GroupVersionKind): void {
  assert.equal(stepped(encodeJsonTextInSteps(object, gvk)), encodeJsonText(object, gvk));
  const bytes = encodeProtobuf(object, gvk);
  assert.ok(stepped(encodeProtobufInSteps(object, gvk)).equals(bytes));
  const { raw } = decodeUnknown(bytes);
  assert.deepEqual(stepped(readMessageInSteps(raw, typeOf(gvk))), readMessage(raw, typeOf(gvk)));
}

const env = Array.from({ length: many }, (_, at) => ({ name: `e${at}`, value: "v" }));
const quantities = Object.fromEntries(Array.from({ length: many }, (_, at) => [`count/k${at}.x`, `${at}`]));
const schemas = Object.fromEntries(Array.from({ length: many }, (_, at) => [`p${at}`, { type: "string" }]));
const addresses = Array.from({ length: many }, (_, at) => ({ ip: `10.0.${at >> 8}.${at & 255}` }));
const version = { name: "v1", served: true, storage: true, schema: { openAPIV3Schema: { type: "object", properties: schemas } } };
const large: readonly Record<string, unknown>[] = [
  { apiVersion: "v1", kind: "Pod", spec: { containers: [{ name: "a", env }, { name: "b" }], nodeName: "n" } },
  { apiVersion: "apps/v1", kind: "Deployment", spec: { template: { spec: { containers: [{ name: "a", env }] } } } },
  { apiVersion: "v1", kind: "ResourceQuota", spec: { hard: quantities } },
  { apiVersion: "v1", kind: "Endpoints", subsets: [{ addresses, ports: [{ port: 1 }] }, { addresses }] },
  { apiVersion: "apiextensions.k8s.io/v1", kind: "CustomResourceDefinition", spec: { group: "g", versions: [version] } },
  { apiVersion: "v1", kind: "Event", involvedObject: { kind: "Pod" }, metadata: { name: "e", labels }, message: "<&>" },
];
for (const value of large) {
  const gvk = scheme.kinds().find(({ kind, group, version: of }) => {
    return kind === value["kind"] && value["apiVersion"] === (group === "" ? of : `${group}/${of}`);
  });
  assert.ok(gvk);
  const { object } = decodeJson(encodeAny({ metadata: { name: "x" }, ...value }), gvk);

  test(`a large part inside of a ${gvk.kind} is the same in steps`, () => compare(object, gvk));

  test(`malformed bytes of a ${gvk.kind} are refused with the same words in steps`, () => {
    const { raw } = decodeUnknown(encodeProtobuf(object));
    for (const part of [0.2, 0.5, 0.9]) {
      const at = Math.floor(raw.length * part);
      for (const bad of [raw.subarray(0, at), withByte(raw, at)]) {
        assert.deepEqual(
          outcome(() => atOnce(readMessageInSteps(bad, typeOf(gvk)))),
          outcome(() => readMessage(bad, typeOf(gvk))),
        );
      }
    }
    assert.throws(() => atOnce(readMessageInSteps(raw, typeOf(gvk), { maxElements: 100 })), { code: 413 });
  });

  // Lists of large items, which are counted apart from all other values.
  if (gvk.kind === "Deployment" || gvk.kind === "Endpoints")
    test(`as many values of a ${gvk.kind} are read in steps as at once`, () => {
      const { raw } = decodeUnknown(encodeProtobuf(object));
      let [few, enough] = [many, 2 * many + 100];
      const fits = (maxElements: number): boolean =>
        typeof outcome(() => readMessage(raw, typeOf(gvk), { maxElements })) !== "string";
      while (enough - few > 1) {
        const middle = (few + enough) >> 1;
        if (fits(middle)) enough = middle;
        else few = middle;
      }
      atOnce(readMessageInSteps(raw, typeOf(gvk), { maxElements: enough }));
      assert.throws(() => atOnce(readMessageInSteps(raw, typeOf(gvk), { maxElements: enough - 1 })), { code: 413 });
    });

  test(`parts of a ${gvk.kind} that come twice are joined in steps as at once`, () => {
    const { raw } = decodeUnknown(encodeProtobuf(object));
    const twice = Buffer.concat([raw, raw]);
    assert.deepEqual(stepped(readMessageInSteps(twice, typeOf(gvk))), readMessage(twice, typeOf(gvk)));
  });
}

/** A field whose value is bytes. */
const fieldOf = (number: number, value: Uint8Array): Uint8Array =>
  protobuf.Writer.create()
    .uint32((number << 3) | 2)
    .bytes(value)
    .finish();

test("a large part that holds nothing known is absent, unless a pointer refers to it", () => {
  const unknown = fieldOf(2_000, Buffer.alloc(64 * 1024));
  for (const [gvk, number, want] of [
    [{ group: "apps", version: "v1", kind: "Deployment" }, 3, {}],
    [{ group: "autoscaling", version: "v1", kind: "Scale" }, 3, {}],
  ] as const) {
    const bytes = fieldOf(number, unknown);
    const once = readMessage(bytes, typeOf(gvk));
    assert.deepEqual(once["status"] ?? {}, want);
    assert.deepEqual(stepped(readMessageInSteps(bytes, typeOf(gvk))), once);
  }
  const schema = scheme.type("apiextensions/v1.JSONSchemaProps") as TypeDescriptor; // cast: a struct
  assert.deepEqual(stepped(readMessageInSteps(fieldOf(28, unknown), schema)), { not: {} });
});

test("large messages are nested to the same depth in steps, and end where they say", () => {
  const type = scheme.type("apiextensions/v1.JSONSchemaProps") as TypeDescriptor; // cast: a struct
  const text = fieldOf(4, Buffer.alloc(64 * 1024, "d"));
  let deep: Uint8Array = text;
  for (let depth = 1; depth < 1_000; depth++) deep = fieldOf(28, deep);
  atOnce(readMessageInSteps(deep, type));
  const deeper = fieldOf(28, deep);
  for (const read of [() => atOnce(readMessageInSteps(deeper, type)), () => readMessage(deeper, type)])
    assert.throws(read, { message: "message is nested too deep" });
  // The inner message is a byte shorter than its last field.
  const short = fieldOf(28, text.subarray(0, -1));
  for (const bad of [Buffer.concat([short, text.subarray(-1)]), Buffer.concat([short, fieldOf(4, Buffer.alloc(9))])])
    for (const read of [() => atOnce(readMessageInSteps(bad, type)), () => readMessage(bad, type)])
      assert.throws(read, { message: "unexpected EOF" });
});

test("large messages beside each other on a deep level are not counted as nested", () => {
  const headOf = (field: number, length: number): Uint8Array =>
    protobuf.Writer.create()
      .uint32((field << 3) | 2)
      .uint32(length)
      .finish();
  const [description, allOf, not] = [4, 25, 28];
  const text = Buffer.alloc(64 * 1024, "d");
  const one = Buffer.concat([headOf(description, text.length), text]);
  const parts = Array.from({ length: 40 }, () => [headOf(allOf, one.length), one]).flat();
  let length = parts.reduce((sum, part) => sum + part.length, 0);
  for (let depth = 0; depth < 970; depth++) {
    const head = headOf(not, length);
    parts.unshift(head);
    length += head.length;
  }
  const schema = Buffer.concat(parts);
  const type = scheme.type("apiextensions/v1.JSONSchemaProps") as TypeDescriptor; // cast: a struct
  let value = stepped(readMessageInSteps(schema, type)) as { not?: object; allOf?: unknown[] }; // cast: a schema
  while (value.not !== undefined) value = value.not;
  assert.equal(value.allOf?.length, 40);
});

for (const { name, count } of [
  { name: "a small object", count: 1 },
  { name: "an object that is read in steps", count: 20_000 },
]) {
  test(`managed fields of ${name} are left out on request, and nothing else is`, () => {
    const data = Object.fromEntries(manyOf(count, (at) => [`k${at}`, "v"]));
    const fieldsV1 = Object.fromEntries(manyOf(count, (at) => [`f:omitted-${at}`, {}]));
    // The large entry is the last: omitting a small one after it would remove both.
    const managedFields = [{ manager: "n" }, { manager: "m", operation: "Update", fieldsType: "FieldsV1", fieldsV1 }];
    const bytes = encodeProtobuf({ apiVersion: "v1", kind: "ConfigMap", metadata: { name: "x", managedFields, uid: "u" }, data });
    const { metadata, ...rest } = decodeProtobuf(bytes);
    assert.equal(metadata.managedFields?.length, 2);
    const { managedFields: _, ...others } = metadata;
    assert.deepEqual(decodeProtobuf(bytes, undefined, { omitsManagedFields: true }), { ...rest, metadata: others });
  });
}

for (const { name, object } of [
  {
    name: "the fields of a manager",
    object: {
      ...{ apiVersion: "v1", kind: "ConfigMap" },
      metadata: {
        name: "x",
        managedFields: [
          { manager: "m", operation: "Update", fieldsV1: Object.fromEntries(manyOf(20_000, (at) => [`f:k${at}`, {}])) },
        ],
      },
    },
  },
  {
    name: "the data of a revision",
    object: {
      ...{ apiVersion: "apps/v1", kind: "ControllerRevision", metadata: { name: "x" }, revision: 1 },
      data: Object.fromEntries(manyOf(20_000, (at) => [`k${at}`, at])),
    },
  },
]) {
  test(`${name}, one JSON text, are the same in steps`, () => {
    const { raw } = decodeUnknown(encodeProtobuf(object));
    const [group, version] = object.apiVersion === "v1" ? ["", "v1"] : (object.apiVersion.split("/") as [string, string]);
    const type = typeOf({ group, version, kind: object.kind });
    const steps = readMessageInSteps(raw, type);
    let yields = 0;
    for (let step = steps.next(); ; step = steps.next()) {
      if (step.done) {
        assert.deepEqual(step.value, readMessage(raw, type));
        break;
      }
      yields++;
    }
    assert.ok(yields >= 5, `${yields} yields`);
  });
}

test("an update of a large object in steps shares unchanged parts", () => {
  const before = { ...large[0], metadata: { name: "x", labels } } as unknown as KubeObject;
  const bytes = encodeProtobuf(before);
  const next = encodeProtobuf({ ...before, metadata: { name: "y", labels } });
  const seen = stepped(decodeProtobufReusingInSteps(next, { bytes, object: before }));
  assert.deepEqual(seen, decodeProtobufReusing(next, { bytes, object: before }));
  assert.equal((seen as unknown as { spec: object }).spec, large[0]?.["spec"]);
});

const anyShape = {
  a: { labels, list: env, gone: undefined, __proto__x: [] },
  "": [[]],
  x: null,
  b: [{}, labels, [labels], "<"],
  n: 1.5,
};
Object.defineProperty(anyShape, "__proto__", { value: { labels }, enumerable: true, configurable: true, writable: true });

test("an object of no known kind is the same in steps: text, copy, comparison", () => {
  const object = anyShape as unknown as KubeObject;
  assert.equal(stepped(encodeJsonTextInSteps(object)), encodeAny(object));
  const copy = stepped(deepCloneInSteps(object));
  assert.deepEqual(copy, deepClone(object));
  assert.notEqual((copy as unknown as typeof anyShape).a.labels, labels);
  assert.equal(stepped(deepEqualInSteps(copy, object)), true);
  for (const other of [
    { ...anyShape, n: 2 },
    { ...anyShape, more: 1 },
    { ...anyShape, b: [...anyShape.b, 1] },
    { ...anyShape, a: { ...anyShape.a, labels: { ...labels, k7: "other" } } },
    { ...anyShape, x: {} },
    { ...anyShape, "": {} },
    [anyShape],
    null,
  ]) {
    assert.equal(atOnce(deepEqualInSteps(object, other)), deepEqual(object, other));
    assert.equal(atOnce(deepEqualInSteps(object, other)), false);
  }
  assert.equal(stepped(deepEqualInSteps(object, { ...anyShape, gone: undefined })), true);
});

test("keys are sorted by their bytes, in steps and at once", () => {
  const random = randomOf(5);
  const parts = ["a", "b", "\u00e9", "\uffee", "\ue000", "\ud83d\ude00", "\ud800", "\u{10ffff}", "z"];
  const key = () => Array.from({ length: 4 }, () => parts[Math.floor(random() * parts.length)]).join("");
  const map = Object.fromEntries(Array.from({ length: 20_000 }, (_, at) => [`${key()}${at}`, 1]));
  const sorted = Object.keys(map).sort((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)));
  assert.deepEqual(sortedKeys(map), sorted);
  assert.deepEqual(stepped(sortedKeysInSteps(map)), sorted);
});

function withByte(bytes: Uint8Array, at: number): Uint8Array {
  const copy = Uint8Array.from(bytes);
  copy[at] = 0xff;
  return copy;
}

function outcome(read: () => unknown): unknown {
  try {
    return read();
  } catch (err) {
    return (err as Error).message;
  }
}

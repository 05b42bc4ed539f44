import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "../../testing/fast-check.ts";
import type { TypeDescriptor } from "../schema/descriptor.ts";
import { scheme } from "../schema/scheme.ts";
import { decodeJson, encodeJsonText } from "./json.ts";
import {
  decodeProtobuf,
  decodeUnknown,
  encodeMessage,
  encodeProtobuf,
  encodeUnknown,
  hasProtobufForm,
  insertResourceVersion,
} from "./protobuf.ts";
import { readMessage } from "./protobuf-decode.ts";

const hex = (text: string): Buffer => Buffer.from(text.replaceAll(/\s/g, ""), "hex");

test("writes every field that is no pointer, sorted maps, and the envelope", () => {
  const bytes = encodeProtobuf({ apiVersion: "v1", kind: "ConfigMap", metadata: { name: "a" }, data: { c: "d", b: "" } });
  assert.deepEqual(
    bytes,
    hex(`6b387300 0a0f 0a027631 1209 436f6e6669674d6170
         1224 0a13 0a0161 1200 1a00 2200 2a00 3200 3800 4200 7a00
              1205 0a0162 1200  1206 0a0163 120164
         1a00 2200`),
  );
});

for (const { name, type, value, want } of [
  {
    name: "a time as seconds and nanoseconds",
    type: "meta/v1.ManagedFieldsEntry",
    value: { time: "1970-01-01T00:00:05Z" },
    want: "0a00 1200 1a00 2204 08051000 3200 4200",
  },
  {
    name: "a quantity as text",
    type: "core/v1.LimitRangeItem",
    value: { max: { cpu: "500m" } },
    want: "0a00 120d 0a03637075 1206 0a04 3530306d",
  },
  { name: "an integer of int-or-string", type: "core/v1.TCPSocketAction", value: { port: 80 }, want: "0a06 0800 1050 1a00 1200" },
  {
    name: "text of int-or-string",
    type: "core/v1.TCPSocketAction",
    value: { port: "web" },
    want: "0a09 0801 1000 1a03776562 1200",
  },
  {
    name: "a negative integer in ten bytes",
    type: "core/v1.NodeDaemonEndpoints",
    value: { kubeletEndpoint: { Port: -1 } },
    want: "0a0b 08 ffffffffffffffffff01",
  },
  {
    name: "an inlined struct as a message",
    type: "core/v1.SecretKeySelector",
    value: { name: "s", key: "k" },
    want: "0a03 0a0173 12016b",
  },
  {
    name: "a named slice type as a message",
    type: "meta/v1.APIResource",
    value: { name: "pods", verbs: ["get"] },
    want: "0a04706f6473 1000 1a00 2205 0a03676574 3200 4200 4a00 5200",
  },
  {
    name: "raw JSON as bytes",
    type: "apps/v1.ControllerRevision",
    value: { data: { a: 1 }, revision: 2 },
    want: "0a12 0a00 1200 1a00 2200 2a00 3200 3800 4200 7a00 1209 0a07 7b2261223a317d 1802",
  },
]) {
  test(`writes ${name}`, () => {
    const descriptor = scheme.type(type) as TypeDescriptor;
    const bytes = encodeMessage(value, descriptor);
    assert.equal(bytes.toString("hex"), want.replaceAll(" ", ""));
    assert.equal(encodeJsonText(readMessage(bytes, descriptor), descriptor), encodeJsonText(value, descriptor));
  });
}

const objects = [
  {
    apiVersion: "v1",
    kind: "Pod",
    metadata: {
      name: "a",
      creationTimestamp: "2021-12-07T18:16:20Z",
      generation: 9007199254740993n,
      labels: { __proto__x: "1" },
    },
    spec: {
      containers: [
        {
          name: "c",
          resources: { limits: { cpu: "1" } },
          ports: [{ containerPort: 80 }],
          livenessProbe: { httpGet: { port: "web" } },
        },
      ],
      terminationGracePeriodSeconds: 0,
      volumes: [{ name: "v", emptyDir: {} }],
      securityContext: { supplementalGroups: [1, 2] },
    },
    status: { startTime: "2021-12-07T18:16:20Z", phase: "Running" },
  },
  {
    apiVersion: "coordination.k8s.io/v1",
    kind: "Lease",
    metadata: { name: "l" },
    spec: { renewTime: "2021-12-07T18:16:20.000123Z", leaseDurationSeconds: 15 },
  },
  { apiVersion: "apps/v1", kind: "ReplicaSet", metadata: {}, spec: { template: { metadata: {}, spec: { containers: [] } } } },
  {
    apiVersion: "apiextensions.k8s.io/v1",
    kind: "CustomResourceDefinition",
    metadata: { name: "x" },
    spec: {
      group: "g",
      names: { plural: "xs", kind: "X" },
      scope: "Namespaced",
      versions: [
        {
          name: "v1",
          served: true,
          storage: true,
          schema: {
            openAPIV3Schema: {
              type: "object",
              minimum: -1.5,
              maximum: 0.5,
              default: { a: [1] },
              properties: { a: { items: { type: "string" }, enum: [null, 1, "x"], additionalProperties: false } },
              additionalProperties: { type: "string" },
              dependencies: { a: ["b"], c: { type: "object" } },
            },
          },
        },
      ],
    },
  },
];
for (const object of objects) {
  test(`gives ${object.kind} the same shape from protobuf as from JSON`, () => {
    const [group, version] = object.apiVersion.includes("/")
      ? (object.apiVersion.split("/") as [string, string])
      : ["", object.apiVersion];
    const fromJson = decodeJson(encodeJsonText(object), { group, version, kind: object.kind }).object;
    const fromProtobuf = decodeProtobuf(encodeProtobuf(object));
    assert.deepEqual(fromProtobuf, fromJson);
    assert.equal(encodeJsonText(fromProtobuf), encodeJsonText(object));
  });
}

const configMap = { group: "", version: "v1", kind: "ConfigMap" };
const enveloped = (raw: string, kind = "ConfigMap"): string => {
  const type = `0a02763112${hexOf(kind)}`;
  return `6b3873000a${length(type)}${type}12${length(raw)}${raw}`;
};
const length = (hex: string): string => (hex.length / 2).toString(16).padStart(2, "0");
const hexOf = (text: string): string => length("00".repeat(text.length)) + Buffer.from(text).toString("hex");
const unrecognized = (why: string, hex: string): string =>
  `the object provided is unrecognized (must be of type ConfigMap): ${why} (${hex})`;
const unhandled = (why: string): string => `ConfigMap in version "v1" cannot be handled as a ConfigMap: ${why}`;

/** Expected messages were recorded from upstream's kube-apiserver. */
for (const { name, hex, message } of [
  { name: "nothing", hex: "", message: unrecognized("empty data", "<empty>") },
  { name: "no more than the prefix", hex: "6b387300", message: unrecognized("empty body", "6b387300") },
  {
    name: "other bytes",
    hex: "6a756e6b",
    message: unrecognized("provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]", "6a756e6b"),
  },
  ...[
    ["ffffff", "unexpected EOF"],
    ["0a020a05", "unexpected EOF"],
    ["0200", "proto: Unknown: illegal tag 0 (wire type 2)"],
    ["0c", "proto: Unknown: wiretype end group for non-group"],
    ["0801", "proto: wrong wireType = 0 for field TypeMeta"],
    ["ffffffffffffffffffffff", "proto: integer overflow"],
  ].map(([hex, why]) => ({
    name: `an envelope of ${hex}`,
    hex: `6b387300${hex}`,
    message: unrecognized(why as string, `6b387300${hex}`),
  })),
  ...[
    ["ffffff", "unexpected EOF"],
    ["7b7d", "unexpected EOF"],
    ["0801", "proto: wrong wireType = 0 for field ObjectMeta"],
    ["0200", "proto: ConfigMap: illegal tag 0 (wire type 2)"],
    ["ffffffffffffffffffffff", "proto: integer overflow"],
  ].map(([hex, why]) => ({ name: `a message of ${hex}`, hex: enveloped(hex as string), message: unhandled(why as string) })),
  {
    name: "an unknown kind",
    hex: enveloped("", "Foo"),
    message:
      'Foo in version "v1" cannot be handled as a ConfigMap: no kind "Foo" is registered for version "v1" in scheme "k8s.io/kubernetes/pkg/api/legacyscheme/scheme.go:30"',
  },
]) {
  test(`refuses ${name} in upstream's words`, () => {
    assert.throws(() => decodeProtobuf(Buffer.from(hex, "hex"), configMap), { code: 400, message });
  });
}

test("passes over groups of unknown fields, and what is in them", () => {
  // Field 15 is a group with a varint, a string and a nested group.
  const object = decodeProtobuf(Buffer.from(enveloped("7b08011201610b0c7c"), "hex"), configMap);
  assert.equal(object.kind, "ConfigMap");
});

test("fields missing in the envelope are those of the expected kind", () => {
  const raw = decodeUnknown(encodeProtobuf({ apiVersion: "v1", kind: "ConfigMap", metadata: { name: "a" } })).raw;
  const bare = encodeUnknown({ apiVersion: "", kind: "", raw });
  assert.deepEqual(decodeProtobuf(bare, { group: "", version: "v1", kind: "ConfigMap" }), {
    apiVersion: "v1",
    kind: "ConfigMap",
    metadata: { name: "a" },
  });
});

test("refuses protobuf for tables and custom resources", () => {
  assert.equal(hasProtobufForm({ group: "meta.k8s.io", version: "v1", kind: "Table" }), false);
  assert.equal(hasProtobufForm({ group: "example.com", version: "v1", kind: "Foo" }), false);
  assert.throws(() => encodeProtobuf({ apiVersion: "meta.k8s.io/v1", kind: "Table" }));
});

for (const [name, bytes] of [
  ["no prefix", hex("0a00")],
  ["a length beyond the end", hex("6b387300 0aff7f")],
  ["a truncated message", encodeProtobuf(objects[0] as object).subarray(0, 120)],
  ["a kind that does not exist", encodeUnknown({ apiVersion: "v1", kind: "Nothing", raw: Buffer.alloc(0) })],
  ["a wrong wire type", encodeUnknown({ apiVersion: "v1", kind: "ConfigMap", raw: hex("0801") })],
  ["groups", encodeUnknown({ apiVersion: "v1", kind: "ConfigMap", raw: Buffer.alloc(100_000, 0xfb) })],
  [
    "a time of no year",
    encodeUnknown({ apiVersion: "v1", kind: "ConfigMap", raw: hex("0a0a 4208 08ffffffffffffff7f".replaceAll(" ", "")) }),
  ],
] as const) {
  test(`answers 400 to ${name}`, () => assert.throws(() => decodeProtobuf(bytes), { code: 400 }));
}

test("answers 400 to schemas nested without end", () => {
  let schema: Buffer = Buffer.from([]);
  const nest = (inner: Buffer, number: number): Buffer => {
    const length: number[] = [];
    for (let rest = inner.length; ; rest >>>= 7) {
      length.push(rest < 0x80 ? rest : (rest & 0x7f) | 0x80);
      if (rest < 0x80) break;
    }
    return Buffer.concat([
      Buffer.from(number < 16 ? [(number << 3) | 2] : [((number << 3) & 0x7f) | 0x82, number >> 4]),
      Buffer.from(length),
      inner,
    ]);
  };
  for (let i = 0; i < 3_000; i++) schema = nest(schema, 28); // not
  const type = scheme.type("apiextensions/v1.JSONSchemaProps") as TypeDescriptor;
  assert.throws(() => readMessage(schema, type), { message: "message is nested too deep" });
});

test("random bytes are decoded or refused with 400", () => {
  const whole = encodeProtobuf(objects[0] as object);
  fc.assert(
    fc.property(fc.array(fc.tuple(fc.nat(whole.length - 1), fc.integer({ min: 0, max: 255 })), { maxLength: 8 }), (changes) => {
      const bytes = Buffer.from(whole);
      for (const [at, value] of changes) bytes[at] = value;
      try {
        decodeProtobuf(bytes);
      } catch (err) {
        assert.equal((err as { code?: number }).code, 400, String((err as Error).stack));
      }
    }),
    { numRuns: 2000 },
  );
});

test("raw JSON comes back with the bytes that Go's clients send, which compare them", () => {
  const data =
    '{"spec":{"template":{"$patch":"replace","command":["a \\u0026\\u0026 b \\u003cx\\u003e"],"metadata":{"creationTimestamp":null}}}}';
  const revision = {
    apiVersion: "apps/v1",
    kind: "ControllerRevision",
    metadata: { name: "r" },
    data: JSON.parse(data),
    revision: 1,
  };
  const bytes = encodeProtobuf(revision);
  assert.ok(bytes.includes(data));
  assert.ok(encodeProtobuf(decodeProtobuf(bytes)).equals(bytes));
});

test("reads only the metadata of every kind when the rest is not wanted", () => {
  for (const object of objects) {
    const { apiVersion, kind, metadata } = decodeProtobuf(encodeProtobuf(object));
    const read = decodeProtobuf(encodeProtobuf(object), undefined, { readsMetadataOnly: true });
    assert.deepEqual(read, { apiVersion, kind, ...(metadata && { metadata }) });
  }
});

test("a resourceVersion inserted into the bytes of any kind gives those of the object with it", () => {
  const stored = scheme.kinds().filter((gvk) => hasProtobufForm(gvk) && scheme.kind(gvk)?.message[0]?.name === "metadata");
  const kinds = stored.filter(({ kind }) => !kind.endsWith("List"));
  assert.ok(kinds.length > 80, String(kinds.length));
  for (const gvk of kinds) {
    const metadata = { name: "n", generateName: "g", namespace: "s", uid: "u", generation: 3, labels: { a: "b" } };
    for (const one of [metadata, { name: "n" }, {}]) {
      const want = encodeProtobuf({ metadata: { ...one, resourceVersion: "123456" } }, gvk);
      assert.ok(insertResourceVersion(encodeProtobuf({ metadata: one }, gvk), gvk, "123456")?.equals(want), gvk.kind);
    }
  }
});

test("a resourceVersion is inserted also where it makes a length one byte longer", () => {
  for (const size of [0, 60, 100, 105, 110, 120, 125, 16_350, 16_380, 2_097_120]) {
    for (let more = 0; more < 8; more++) {
      for (const object of [
        { metadata: { name: "x".repeat(size + more) } },
        { metadata: { name: "n" }, data: { a: "x".repeat(size + more) } },
      ]) {
        const want = encodeProtobuf({ ...object, metadata: { ...object.metadata, resourceVersion: "4294967295" } }, configMap);
        const made = insertResourceVersion(encodeProtobuf(object, configMap), configMap, "4294967295");
        assert.ok(made?.equals(want), `${size + more}`);
      }
    }
  }
});

for (const { name, bytes } of [
  { name: "of another kind", bytes: encodeProtobuf({ metadata: {} }, { ...configMap, kind: "Secret" }) },
  { name: "of another version", bytes: encodeUnknown({ apiVersion: "v2", kind: "ConfigMap", raw: hex("0a02 0a00") }) },
  { name: "that have one already", bytes: encodeProtobuf({ metadata: { resourceVersion: "1" } }, configMap) },
  { name: "of JSON", bytes: Buffer.from('{"apiVersion":"v1","kind":"ConfigMap","metadata":{}}') },
  { name: "without metadata", bytes: encodeUnknown({ apiVersion: "v1", kind: "ConfigMap", raw: hex("1205 0a0162 1200") }) },
  {
    name: "whose metadata lack empty texts",
    bytes: encodeUnknown({ apiVersion: "v1", kind: "ConfigMap", raw: hex("0a05 0a0161 3200") }),
  },
  { name: "that are empty", bytes: Buffer.alloc(0) },
])
  test(`no resourceVersion is inserted into bytes ${name}`, () => {
    assert.equal(insertResourceVersion(bytes, configMap, "7"), undefined);
  });

test("answers 400 to a cut-off object of which only the metadata is read", () => {
  const whole = encodeUnknown({ apiVersion: "v1", kind: "ConfigMap", raw: hex("0a03 0a0161 1205 0a01") });
  assert.throws(() => decodeProtobuf(whole, undefined, { readsMetadataOnly: true }), { code: 400 });
});

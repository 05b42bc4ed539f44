import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { test } from "node:test";
import { gzipSync } from "node:zlib";
import { escapeHtml, newObjectRecorder, recordedObject, type SentObject } from "./recorded-object.ts";

const managed = { name: "a", managedFields: [{ manager: "kubectl" }] };
const anAnswer = (object: object, more: Partial<SentObject> = {}): SentObject => ({
  ...{ source: "answer", mediaType: "application/json", gzip: false, omitManagedFields: true, recordsObject: true },
  bytes: Buffer.from(JSON.stringify(object)),
  ...more,
});
const recorded = (sent: SentObject) => {
  const { json } = recordedObject(sent, 1024 * 1024);
  return json === undefined ? undefined : JSON.parse(String(json));
};

for (const { name, object, want } of [
  { name: "an object", object: { kind: "Pod", metadata: managed }, want: { kind: "Pod", metadata: { name: "a" } } },
  {
    name: "every item of a list",
    object: { kind: "PodList", items: [{ metadata: managed }, null, { metadata: managed }] },
    want: { kind: "PodList", items: [{ metadata: { name: "a" } }, null, { metadata: { name: "a" } }] },
  },
  {
    name: "every row of a table",
    object: {
      kind: "Table",
      rows: [{ cells: [1], object: { metadata: managed } }, { cells: [2] }, { object: { metadata: managed } }],
    },
    want: {
      kind: "Table",
      rows: [{ cells: [1], object: { metadata: { name: "a" } } }, { cells: [2] }, { object: { metadata: { name: "a" } } }],
    },
  },
]) {
  test(`managed fields are left out of ${name}, where the policy omits them`, () => {
    assert.deepEqual(recorded(anAnswer(object)), want);
    assert.deepEqual(recorded(anAnswer(object, { gzip: true, bytes: gzipSync(JSON.stringify(object)) })), want);
    assert.deepEqual(recorded(anAnswer(object, { source: "request" })), want);
    assert.deepEqual(recorded(anAnswer(object, { omitManagedFields: false })), object);
  });
}

test("of an answer whose object is not recorded only a Status is read", () => {
  const status = { kind: "Status", status: "Failure", reason: "NotFound", code: 404 };
  const found = recordedObject(anAnswer(status, { recordsObject: false }), 1024);
  assert.deepEqual(found, { status: { status: "Failure", reason: "NotFound" } });
  assert.deepEqual(recordedObject(anAnswer({ kind: "Pod" }, { recordsObject: false }), 1024), {});
});

for (const { name, data } of [
  { name: "a small one", data: "x".repeat(300 * 1024) },
  { name: "a large one, in the worker", data: randomBytes(300 * 1024).toString("base64") },
]) {
  test(`an object that is too large when it is decompressed is not recorded: ${name}`, async () => {
    const object = { kind: "Pod", metadata: { name: "a" }, data };
    const recorder = newObjectRecorder({ maxObjectBytes: 250 * 1024 });
    const sent = anAnswer(object, { gzip: true, bytes: gzipSync(JSON.stringify(object)) });
    await assert.rejects(async () => recorder.convert(sent), /larger than/);
  });
}

test("objects are held up to the limit, and what is released makes room", () => {
  const recorder = newObjectRecorder({ maxHeldBytes: 10 });
  assert.deepEqual([recorder.reserve(10), recorder.reserve(1)], [true, false]);
  recorder.release(4);
  assert.deepEqual([recorder.reserve(5), recorder.reserve(4), recorder.reserve(1)], [false, true, false]);
});

test("an event has the escapes of Go's encoder", () => {
  assert.equal(escapeHtml('"<a>&\u2028\u2029é"'), '"\\u003ca\\u003e\\u0026\\u2028\\u2029é"');
});

const status = { kind: "Status", apiVersion: "v1", metadata: {}, status: "Failure", reason: "NotFound", code: 404 };
for (const [name, sent] of [
  [
    "YAML",
    anAnswer(status, {
      mediaType: "application/yaml",
      bytes: Buffer.from(`apiVersion: v1\nkind: Status\nreason: NotFound\nstatus: Failure\n`),
    }),
  ],
  ["indented JSON", anAnswer(status, { bytes: Buffer.from(JSON.stringify(status, null, 2)) })],
] as const) {
  test(`a Status is found in ${name}`, () => {
    assert.deepEqual(recordedObject({ ...sent, recordsObject: false }, 1024), {
      status: { status: "Failure", reason: "NotFound" },
    });
    assert.equal(recorded(sent).reason, "NotFound");
  });
}

test("a patch is recorded on one line in the order of its fields, YAML as sorted JSON, and other text not at all", () => {
  const patch = (text: string) => {
    const { json } = recordedObject({ ...anAnswer({}), source: "patch", bytes: Buffer.from(text) }, 1024);
    return json && String(json);
  };
  assert.equal(patch('{ "b" : "x y\\" z",\n  "a": [1, 2] }\n'), '{"b":"x y\\" z","a":[1,2]}');
  assert.equal(patch("b: 1\na: [x]\n"), '{"a":["x"],"b":1}');
  assert.equal(patch("{"), undefined);
});

test("what is no API object is not recorded", () => {
  assert.equal(recorded(anAnswer({ paths: ["/"] })), undefined);
  assert.equal(recorded(anAnswer({}, { mediaType: "text/plain", bytes: Buffer.from("a log") })), undefined);
});

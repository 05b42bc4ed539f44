import assert from "node:assert/strict";
import { test } from "node:test";
import { convert, type Format } from "./convert.ts";

const json = Buffer.from(
  '{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"a","creationTimestamp":null},"data":{"k":"v"}}',
);

test("goes through all three encodings and back", () => {
  let bytes: Buffer = json;
  for (const format of ["protobuf", "yaml", "protobuf", "json"] satisfies Format[]) bytes = convert(bytes, format);
  assert.deepEqual(JSON.parse(bytes.toString()), JSON.parse(json.toString()));
});

test("reads a value as etcdctl prints it, behind its key", () => {
  const value = Buffer.concat([Buffer.from("/registry/configmaps/default/a\n"), convert(json, "protobuf"), Buffer.from("\n")]);
  assert.match(convert(value, "yaml").toString(), /^apiVersion: v1\n/);
});

test("takes a version for objects that name none", () => {
  assert.match(convert(Buffer.from("kind: ConfigMap\nmetadata:\n  name: a\n"), "json", "v1").toString(), /"apiVersion": "v1"/);
  assert.throws(() => convert(Buffer.from("kind: ConfigMap\n"), "json"), { code: 400 });
});

test("says that a custom resource has no protobuf form", () => {
  assert.throws(() => convert(Buffer.from('{"kind":"Foo","apiVersion":"example.com/v1"}'), "protobuf"), /has no protobuf form/);
});

import assert from "node:assert/strict";
import { test } from "node:test";
import type { KubeObject, Unstructured } from "../../meta/types.ts";
import { hasLastApplied, lastAppliedAnnotation, withLastApplied } from "./last-applied.ts";

const config = { apiVersion: "v1", kind: "ConfigMap", data: { a: "<1>" } } as unknown as Unstructured;
const having = (annotations?: Record<string, string>): KubeObject => ({
  metadata: { name: "x", ...(annotations !== undefined && { annotations }) },
});

test("the annotation is the configuration, beside the object's other annotations", () => {
  const object = having({ other: "1", [lastAppliedAnnotation]: "old" });
  const annotations = withLastApplied(object, config).metadata.annotations ?? {};
  assert.deepEqual(JSON.parse(annotations[lastAppliedAnnotation] ?? ""), config);
  assert.ok(annotations[lastAppliedAnnotation]?.endsWith("}\n"));
  assert.equal(annotations["other"], "1");
  assert.equal(object.metadata.annotations?.[lastAppliedAnnotation], "old");
});

test("a configuration that has the annotation itself is written without it, and with its other annotations", () => {
  const own = { ...config, metadata: { name: "x", annotations: { [lastAppliedAnnotation]: "x", mine: "1" } } };
  const written = withLastApplied(having(), own).metadata.annotations?.[lastAppliedAnnotation] ?? "";
  assert.deepEqual(JSON.parse(written).metadata, { name: "x", annotations: { mine: "1" } });
});

test("annotations have 256 KiB together, else the object goes without the configuration", () => {
  const written = withLastApplied(having(), config).metadata.annotations?.[lastAppliedAnnotation] ?? "";
  const left = 256 * 1024 - written.length - lastAppliedAnnotation.length - "é".length - 1;
  const most = withLastApplied(having({ é: "y".repeat(left) }), config);
  assert.equal(hasLastApplied(most), true);
  const tooMuch = withLastApplied(having({ é: "y".repeat(left + 1) }), config);
  assert.deepEqual(Object.keys(tooMuch.metadata.annotations ?? {}), ["é"]);
});

test("an empty annotation counts as none", () => {
  assert.equal(hasLastApplied(having({ [lastAppliedAnnotation]: "{}" })), true);
  for (const object of [having(), having({}), having({ [lastAppliedAnnotation]: "" }), having({ constructor: "x" })])
    assert.equal(hasLastApplied(object), false);
});

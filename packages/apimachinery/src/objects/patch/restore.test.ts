import assert from "node:assert/strict";
import { test } from "node:test";
import { atOnce } from "../../process/event-loop/steps.ts";
import type { TypeDescriptor } from "../schema/descriptor.ts";
import { scheme } from "../schema/scheme.ts";
import { structOf } from "./patch-schema.ts";
import { checkingRestorable } from "./restore.ts";

const deployment = structOf(scheme.type("apps/v1.Deployment") as TypeDescriptor);
const configMap = structOf(scheme.type("core/v1.ConfigMap") as TypeDescriptor);
const inPod = (spec: object): object => ({ spec: { template: { spec } } });

// Error texts are those of upstream's kube-apiserver.
for (const { value, type = deployment, want } of [
  { value: { metadata: 1 }, want: "cannot restore struct from: int64" },
  { value: { metadata: { finalizers: true } }, want: "cannot restore slice from bool" },
  { value: { metadata: { labels: [] } }, want: "cannot restore map from slice" },
  { value: { metadata: { labels: { a: 1 } } }, want: "cannot convert int64 to string" },
  { value: { metadata: { creationTimestamp: true } }, want: "json: cannot unmarshal bool into Go value of type string" },
  { value: { spec: { replicas: "x" } }, want: "unrecognized type: int32" },
  { value: { spec: { replicas: 1.5 } }, want: "cannot convert float64 to int32" },
  { value: { spec: { replicas: 4_294_967_296 } }, want: "cannot convert int64 to int32" },
  { value: { spec: { replicas: 2_147_483_648 } }, want: "cannot convert int64 to int32" },
  { value: { spec: { replicas: -2_147_483_649 } }, want: "cannot convert int64 to int32" },
  { value: { spec: { paused: 1 } }, want: "unrecognized type: bool" },
  { value: inPod({ nodeName: 1 }), want: "cannot convert int64 to string" },
  { value: inPod({ nodeName: 1.5 }), want: "unrecognized type: string" },
  { value: inPod({ tolerations: ["a"] }), want: "cannot restore struct from: string" },
  {
    value: { spec: { strategy: { rollingUpdate: { maxSurge: true } } } },
    want: "json: cannot unmarshal bool into Go value of type int32",
  },
  { value: { binaryData: { a: "!!" } }, type: configMap, want: "error decoding from json: illegal base64 data at input byte 0" },
  { value: { binaryData: { a: 1 } }, type: configMap, want: "cannot restore slice from int64" },
]) {
  test(`${JSON.stringify(value)}: ${want}`, () => {
    assert.throws(() => atOnce(checkingRestorable(value, type)), { message: want });
  });
}

test("nulls, unknown fields and valid data are no error", () => {
  for (const replicas of [2_147_483_647, -2_147_483_648])
    assert.doesNotThrow(() => atOnce(checkingRestorable({ spec: { replicas } }, deployment)));
  const value = { metadata: null, spec: { replicas: null, template: { spec: { containers: [null] } } }, x: 1 };
  assert.doesNotThrow(() => atOnce(checkingRestorable(value, deployment)));
});

test("many values are checked in steps", () => {
  const data = Object.fromEntries(Array.from({ length: 20_000 }, (_, i) => [`k${i}`, "v"]));
  assert.ok([...checkingRestorable({ data }, configMap)].length >= 9);
});

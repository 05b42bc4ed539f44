import assert from "node:assert/strict";
import { test } from "node:test";
import { decodeObject, encodeObject } from "../objects/codec/codec.ts";
import { decodeJson, encodeJsonText } from "../objects/codec/json.ts";
import { encodeAny } from "../objects/codec/json-encode.ts";
import { yamlMediaType } from "../objects/codec/negotiate.ts";
import { decodeProtobuf, encodeProtobuf, hasProtobufForm } from "../objects/codec/protobuf.ts";
import { decodeProtobufReusing } from "../objects/codec/protobuf-reuse.ts";
import { formatGroupVersion, type GroupVersionKind } from "../objects/meta/group-version.ts";
import type { TypeDescriptor } from "../objects/schema/descriptor.ts";
import { scheme } from "../objects/schema/scheme.ts";
import { arbitraryObject } from "./arbitrary-object.ts";
import { cpuMsOf } from "./cpu-time.ts";
import fc from "./fast-check.ts";
import { randomOf } from "./random.ts";

const kinds = scheme.kinds();
const nameOf = (gvk: GroupVersionKind): string => `${formatGroupVersion(gvk)} ${gvk.kind}`;
const some = (gvk: GroupVersionKind, numRuns: number): Record<string, unknown>[] =>
  fc
    .sample(arbitraryObject(scheme.kind(gvk) as TypeDescriptor), { numRuns, seed: 20211207 })
    // Some kinds of `v1` are in the table of meta.
    .map((object) => ({ ...object, apiVersion: formatGroupVersion(gvk), kind: gvk.kind }));

test("every kind is the same after a round trip through protobuf", () => {
  assert.ok(kinds.length > 200, String(kinds.length));
  for (const gvk of kinds.filter(hasProtobufForm)) {
    for (const sent of some(gvk, 6)) {
      const { object } = decodeJson(encodeAny(sent), gvk);
      const text = encodeJsonText(object, gvk);
      const back = decodeProtobuf(encodeProtobuf(object, gvk));
      assert.equal(encodeJsonText(back, gvk), text, nameOf(gvk));
      assert.deepEqual(back, object, nameOf(gvk));
    }
  }
});

test("every kind decodes to the same object with an earlier state, whose equal parts it shares", () => {
  const random = randomOf(20211207);
  let lent = 0;
  for (const gvk of kinds.filter(hasProtobufForm)) {
    const states = some(gvk, 4).map((sent) => decodeProtobuf(encodeProtobuf(decodeJson(encodeAny(sent), gvk).object, gvk)));
    for (const object of states) {
      for (const other of states) {
        const next: Record<string, unknown> = { ...object };
        for (const [name, value] of Object.entries(other)) if (random() < 0.3) next[name] = value;
        const bytes = encodeProtobuf(next, gvk);
        const found = decodeProtobufReusing(bytes, { object, bytes: encodeProtobuf(object, gvk) });
        assert.deepEqual(found, decodeProtobuf(bytes), nameOf(gvk));
        for (const [name, value] of Object.entries(object)) {
          if (typeof value === "object" && value === (found as unknown as Record<string, unknown>)[name]) lent++;
        }
        assert.ok(found.metadata === undefined || found.metadata !== object.metadata);
      }
    }
  }
  assert.ok(lent > 500, String(lent));
});

test("every kind is the same after a round trip through JSON and YAML", () => {
  for (const gvk of kinds) {
    for (const sent of some(gvk, 2)) {
      const { object } = decodeJson(encodeAny(sent), gvk);
      const text = encodeJsonText(object, gvk);
      assert.equal(encodeJsonText(decodeJson(text, gvk).object, gvk), text, nameOf(gvk));
      const yaml = encodeObject(object, yamlMediaType);
      const back = decodeObject(yaml, yamlMediaType, gvk).object;
      // The YAML writer sorts keys of values without schema, so re-encode before comparing.
      assert.deepEqual(decodeJson(encodeJsonText(back, gvk), gvk).object, object, `${nameOf(gvk)}\n${yaml}`);
    }
  }
});

test("damaged protobuf of every kind is decoded or refused with 400, and soon", () => {
  const random = randomOf(42);
  const below = (n: number): number => Math.floor(random() * n);
  for (const gvk of kinds.filter(hasProtobufForm)) {
    for (const sent of some(gvk, 3)) {
      const whole = encodeProtobuf(decodeJson(encodeAny(sent), gvk).object, gvk);
      for (let run = 0; run < 12; run++) {
        let bytes = Buffer.from(whole);
        for (let change = below(6); change >= 0; change--) bytes[4 + below(bytes.length - 4)] = below(256);
        if (run % 3 === 1) bytes = bytes.subarray(0, below(bytes.length));
        if (run % 3 === 2) {
          const at = below(bytes.length);
          bytes = Buffer.concat([bytes.subarray(0, at), whole.subarray(below(whole.length)), bytes.subarray(at)]);
        }
        const tookMs = cpuMsOf(() => {
          try {
            decodeProtobuf(bytes, gvk);
          } catch (err) {
            assert.equal((err as { code?: number }).code, 400, `${nameOf(gvk)} ${bytes.toString("hex")} ${(err as Error).stack}`);
          }
        });
        assert.ok(tookMs < 50, `${nameOf(gvk)} took ${tookMs} ms: ${bytes.toString("hex")}`);
      }
    }
  }
});

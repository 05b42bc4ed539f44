import assert from "node:assert/strict";
import { test } from "node:test";
import { arbitraryObject } from "../../testing/arbitrary-object.ts";
import fc from "../../testing/fast-check.ts";
import { randomOf } from "../../testing/random.ts";
import type { TypeDescriptor } from "../schema/descriptor.ts";
import { scheme } from "../schema/scheme.ts";
import { decodeObject, encodeObject } from "./codec.ts";
import { decodeJson } from "./json.ts";
import { encodeAny } from "./json-encode.ts";
import { jsonMediaType, type MediaType, protobufMediaType, yamlMediaType } from "./negotiate.ts";
import { hasProtobufForm } from "./protobuf.ts";

/** Bodies per media type; a million with COX_TEST_LONG. */
const runs: Readonly<Record<MediaType, number>> = process.env["COX_TEST_LONG"]
  ? { [jsonMediaType]: 1_000_000, [yamlMediaType]: 1_000_000, [protobufMediaType]: 1_000_000 }
  : { [jsonMediaType]: 20_000, [yamlMediaType]: 3_000, [protobufMediaType]: 20_000 };
const seed = 20211207;
/** Per body of a few hundred bytes; anything above is a hang, even on a loaded machine. */
const maxCpuMs = 1000;

const kinds = scheme.kinds().filter(hasProtobufForm);
const seeds = kinds.flatMap((gvk) =>
  fc
    .sample(arbitraryObject(scheme.kind(gvk) as TypeDescriptor), { numRuns: 6, seed })
    .map((object) => ({ gvk, object: decodeJson(encodeAny({ ...object, kind: gvk.kind }), gvk).object })),
);
const tokens = [
  '"',
  "{",
  "}",
  "[",
  "]",
  ":",
  ",",
  "__proto__",
  "constructor",
  "\\u0000",
  "&a ",
  "*a",
  "<<: ",
  "!!",
  "|\n",
  "- ",
  "? ",
  "\t",
  "%",
].map((text) => Buffer.from(text));
const methodsBefore = [Object.prototype, Array.prototype, String.prototype, Function.prototype].map(ownNames);

function ownNames(prototype: object): string {
  return Reflect.ownKeys(prototype).map(String).join();
}

/** Random mutations: bytes changed, removed, repeated or moved, keywords inserted, the tail of another body appended. */
function mutated(bytes: Buffer, other: Buffer, below: (n: number) => number): Buffer {
  let result: Buffer = Buffer.from(bytes);
  for (let change = below(4); change >= 0; change--) {
    const at = below(result.length + 1);
    const until = Math.min(result.length, at + below(20));
    const [head, tail] = [result.subarray(0, at), result.subarray(at)];
    switch (below(6)) {
      case 0:
        if (at < result.length) result[at] = below(256);
        break;
      case 1:
        result = Buffer.concat([head, result.subarray(until)]);
        break;
      case 2:
        result = Buffer.concat([result.subarray(0, until), tail]);
        break;
      case 3:
        result = Buffer.concat([head, tokens[below(tokens.length)] as Buffer, tail]);
        break;
      case 4:
        result = Buffer.concat([head, other.subarray(below(other.length))]);
        break;
      default:
        result = Buffer.from(head);
    }
  }
  return result;
}

for (const [mediaType, count] of Object.entries(runs)) {
  test(`${count} damaged bodies of ${mediaType} are decoded or refused with 4xx, soon, and change no prototype`, () => {
    const random = randomOf(seed);
    const below = (n: number): number => Math.floor(random() * n);
    const bodies = seeds
      .map(({ gvk, object }) => ({ gvk, bytes: encodeObject(object, mediaType) }))
      .filter(({ bytes }) => bytes.length < 400); // short bodies: faster, and mutations more often hit structure
    for (let run = 0; run < count; run++) {
      const { gvk, bytes } = bodies[below(bodies.length)] as (typeof bodies)[number];
      const { bytes: other } = bodies[below(bodies.length)] as (typeof bodies)[number];
      const body = mutated(bytes, other, below);
      const start = performance.now();
      const cpu = process.cpuUsage();
      try {
        decodeObject(body, mediaType, gvk, { strict: run % 2 === 0 ? "ignore" : "warn" });
      } catch (err) {
        const code = (err as { code?: unknown }).code;
        assert.ok(typeof code === "number" && code >= 400 && code < 500, `${body.toString("base64")} ${(err as Error).stack}`);
      }
      if (performance.now() - start < maxCpuMs) continue;
      assert.ok(process.cpuUsage(cpu).user < maxCpuMs * 1000, `took too long: ${body.toString("base64")}`);
    }
    assert.deepEqual([Object.prototype, Array.prototype, String.prototype, Function.prototype].map(ownNames), methodsBefore);
  });
}

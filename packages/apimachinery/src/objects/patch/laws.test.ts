/** Property tests of patches. */
import assert from "node:assert/strict";
import { test } from "node:test";
import jsonpatch, { type Operation } from "fast-json-patch";
import { arbitraryObject } from "../../testing/arbitrary-object.ts";
import fc from "../../testing/fast-check.ts";
import { decodeJson } from "../codec/json.ts";
import { encodeAny } from "../codec/json-encode.ts";
import { deepClone } from "../meta/deep-equal.ts";
import type { TypeDescriptor } from "../schema/descriptor.ts";
import { scheme } from "../schema/scheme.ts";
import { applyJsonPatch } from "./json-patch.ts";
import { applyMergePatch } from "./merge-patch.ts";
import { applyStrategicMerge } from "./strategic-merge.ts";
import { createTwoWayMergePatch } from "./testing/strategic-diff.ts";

const seed = 20211207;
const key = fc.constantFrom("a", "b", "c/d", "e~f", "0");
const { value } = fc.letrec((tie) => ({
  value: fc.oneof(
    { maxDepth: 4 },
    fc.constantFrom(null, true, 0, 1.5, "", "x"),
    fc.array(tie("value"), { maxLength: 3 }),
    fc.dictionary(key, tie("value"), { maxKeys: 3, noNullPrototype: true }),
  ),
}));
const document = fc.dictionary(key, value, { maxKeys: 4, noNullPrototype: true }) as fc.Arbitrary<Record<string, unknown>>;

/** All existing paths, and paths one level below. */
function pathsOf(at: unknown, path = ""): string[] {
  if (typeof at !== "object" || at === null) return [path];
  const steps = Array.isArray(at)
    ? [...at.keys().map(String), "-", String(at.length), String(at.length + 1)]
    : [...Object.keys(at), "new"];
  return [
    path,
    ...steps.flatMap((step) => pathsOf((at as Record<string, unknown>)[step], `${path}/${jsonpatch.escapePathComponent(step)}`)),
  ];
}

interface Choice {
  readonly op: "add" | "remove" | "replace" | "move" | "copy" | "test";
  readonly path: number;
  readonly from: number;
  readonly value: unknown;
}

const choices: fc.Arbitrary<Choice[]> = fc.array(
  fc.record({
    op: fc.constantFrom("add", "remove", "replace", "move", "copy", "test"),
    path: fc.nat(1000),
    from: fc.nat(1000),
    value,
  }) as fc.Arbitrary<Choice>,
  { minLength: 1, maxLength: 8 },
);

test("a JSON patch does what fast-json-patch does with it, or both refuse it", () => {
  const counts = { applied: 0, refused: 0 };
  const check = (before: Record<string, unknown>, steps: readonly Choice[]): void => {
    let expected: unknown = structuredClone(before);
    const operations: Operation[] = [];
    let refused = false;
    for (const { op, path, from, value: operand } of steps) {
      const paths = pathsOf(expected);
      const operation = { op, path: paths[path % paths.length], from: paths[from % paths.length], value: operand } as Operation;
      if (!isComparable(operation)) continue;
      operations.push(operation);
      try {
        expected = jsonpatch.applyOperation(expected, structuredClone(operation), true, false).newDocument;
      } catch {
        refused = true;
        break;
      }
    }
    const apply = () => applyJsonPatch(before, JSON.stringify(operations));
    counts[refused ? "refused" : "applied"]++;
    if (refused) assert.throws(apply, { code: 422 }, JSON.stringify({ before, operations }));
    else assert.deepEqual(apply(), expected, JSON.stringify({ before, operations }));
  };
  fc.assert(fc.property(document, choices, check), { numRuns: 3000, seed });
  assert.ok(counts.applied > 300 && counts.refused > 300, JSON.stringify(counts));
});

/** Excludes operations where upstream's library, which we follow, differs from the reference library. */
function isComparable({ op, path, ...rest }: Operation): boolean {
  const from = (rest as { from?: string }).from ?? "";
  // Moving or copying beyond the end of a list: an error by RFC 6902, which the reference library does not detect.
  if ((op === "move" || op === "copy") && /\/\d+$/.test(path)) return false;
  if (path === "" || ((op === "move" || op === "copy") && (from === "" || from.endsWith("/-")))) return false;
  if (op === "test" && (rest as { value?: unknown }).value === null) return false; // upstream treats a missing value as null
  // Removing a list element shifts the following ones, possibly the target.
  if (op === "move" && (path.startsWith(`${from}/`) || /\/\d+$/.test(from))) return false;
  return op === "add" || op === "move" || op === "copy" || !path.endsWith("/-");
}

test("a merge patch that is applied again changes nothing, and {} never does", () => {
  fc.assert(
    fc.property(document, document, (before, patch) => {
      const once = applyMergePatch(before, patch);
      assert.deepEqual(applyMergePatch(once, patch), once);
      assert.deepEqual(applyMergePatch(before, {}), before);
    }),
    { numRuns: 2000, seed },
  );
});

test("a strategic merge patch made of two objects leads from one to the other, and applied again changes nothing", () => {
  const kinds = ["Pod", "Service", "Node", "ReplicationController"].map((kind) => ({ group: "", version: "v1", kind }));
  for (const gvk of [...kinds, { group: "apps", version: "v1", kind: "Deployment" }]) {
    const type = scheme.kind(gvk) as TypeDescriptor;
    const objects = fc
      .sample(arbitraryObject(type), { numRuns: 80, seed })
      .map((object) => withKeys(decodeJson(encodeAny(object), gvk).object, type));
    for (let i = 1; i < objects.length; i++) {
      const [from, to] = [objects[i - 1], objects[i]] as [object, object];
      const patch = createTwoWayMergePatch(deepClone(from), deepClone(to), type);
      const once = applyStrategicMerge(deepClone(from), deepClone(patch), type);
      assert.deepEqual(once, to, `${gvk.kind} ${i} ${encodeAny(patch)}`);
      assert.deepEqual(applyStrategicMerge(deepClone(once), deepClone(patch), type), once, `${gvk.kind} ${i}`);
      assert.deepEqual(applyStrategicMerge(deepClone(from), {}, type), from);
    }
  }
});

/** Makes the merge keys of list elements unique, as the API requires. */
function withKeys<T>(at: T, type: TypeDescriptor): T {
  const object = at as Record<string, unknown>;
  for (const field of type.fields) {
    const inner = object[field.name];
    if (inner === undefined || inner === null) continue;
    if (field.type.kind === "struct") withKeys(inner, field.type.struct);
    if (field.type.kind !== "list" || !Array.isArray(inner)) continue;
    const { element } = field.type;
    if (element.kind === "struct") for (const item of inner) withKeys(item, element.struct);
    if (!field.patchStrategy.includes("merge")) continue;
    const mergeKey = field.patchMergeKey;
    if (mergeKey === undefined) object[field.name] = [...new Set(inner)];
    else
      for (const [i, item] of inner.entries())
        (item as Record<string, unknown>)[mergeKey] = mergeKey.includes("ort") ? i + 1 : `k${i}`;
  }
  return at;
}

/** Patches: the input is a JSON list of a document and a patch. */
import assert from "node:assert/strict";
import { parseJson } from "@coxswain/apimachinery/objects/codec/json";
import { encodeAny } from "@coxswain/apimachinery/objects/codec/json-encode";
import { applyTypeOf } from "@coxswain/apimachinery/objects/patch/apply/apply-type";
import { equal, readFieldsV1, toFieldsV1, union } from "@coxswain/apimachinery/objects/patch/apply/field-set";
import { fieldSetOf, mergeInSteps, removeFieldsInSteps } from "@coxswain/apimachinery/objects/patch/apply/typed-value";
import { TypedValueError, validateTyped } from "@coxswain/apimachinery/objects/patch/apply/validate";
import { applyJsonPatch } from "@coxswain/apimachinery/objects/patch/json-patch";
import { applyMergePatch, createMergePatch } from "@coxswain/apimachinery/objects/patch/merge-patch";
import { applyStrategicMerge } from "@coxswain/apimachinery/objects/patch/strategic-merge";
import { scheme } from "@coxswain/apimachinery/objects/schema/scheme";
import { atOnce } from "@coxswain/apimachinery/process/event-loop/steps";
import { deployment, pod } from "../objects.ts";
import type { Target } from "../target.ts";

const podType = scheme.kind({ group: "", version: "v1", kind: "Pod" })!;
const podApplyType = applyTypeOf(podType);
const json = (value: unknown): string => encodeAny(value).toString();
const words = [
  '"containers":',
  '"name":"web"',
  "null",
  "[]",
  "{}",
  '"metadata":',
  '"spec":',
  '"$patch":"delete"',
  '"$patch":"replace"',
  '"$retainKeys":["name"]',
  '"__proto__":',
  '"ports":[{"containerPort":80}]',
];
const more = [
  '"$setElementOrder/containers":[{"name":"web"}]',
  '"$deleteFromPrimitiveList/finalizers":["a"]',
  '{"op":"test","path":"',
  '"from":"/',
  "/-",
  "~1",
  "~0",
  "/0",
];

function pairOf(input: Buffer): [document: unknown, patch: unknown] {
  const pair = parseJson(input);
  return Array.isArray(pair) ? [pair[0], pair[1]] : [{}, pair];
}

const isObject = (value: unknown): value is object => typeof value === "object" && value !== null && !Array.isArray(value);

export const targets: readonly Target[] = [
  {
    name: "json-patch",
    seeds: [
      json([pod, [{ op: "replace", path: "/spec/containers/0/image", value: "a" }]]),
      json([
        { a: [1, { "b/c": 2 }] },
        [
          { op: "add", path: "/a/-", value: 1 },
          { op: "move", from: "/a/0", path: "/x" },
          { op: "copy", from: "/a/0/b~1c", path: "/y" },
          { op: "test", path: "/y", value: 2 },
          { op: "remove", path: "/x" },
        ],
      ]),
    ],
    dictionary: [...words, ...more],
    run(input) {
      const [document, patch] = pairOf(input);
      const before = json(document);
      try {
        applyJsonPatch(document, json(patch));
      } finally {
        assert.equal(json(document), before, "the document stays as it was");
      }
    },
  },
  {
    name: "merge-patch",
    seeds: [json([pod, { spec: { containers: null } }]), json([deployment, { metadata: { labels: { a: "b" } } }])],
    dictionary: words,
    run(input) {
      const [document, patch] = pairOf(input);
      const once = applyMergePatch(document, patch);
      assert.deepEqual(applyMergePatch(once, patch), once, "twice is once");
      if (isObject(document) && isObject(once) && !json(once).includes("null")) {
        const difference = createMergePatch(document, once);
        assert.deepEqual(difference === undefined ? document : applyMergePatch(document, difference), once);
      }
    },
  },
  {
    name: "strategic-merge",
    seeds: [
      json([
        pod,
        {
          spec: {
            containers: [
              { name: "web", image: "b" },
              { name: "c", $patch: "delete" },
            ],
          },
        },
      ]),
      json([pod, { metadata: { $retainKeys: ["name"], name: "a" }, spec: { "$setElementOrder/containers": [{ name: "web" }] } }]),
    ],
    dictionary: [...words, ...more],
    declares: [Error],
    run(input) {
      const [document, patch] = pairOf(input);
      const before = json([document, patch]);
      if (!isObject(document) || !isObject(patch)) return;
      try {
        applyStrategicMerge(document, patch, podType);
      } finally {
        assert.equal(json([document, patch]), before, "both stay as they were");
      }
    },
  },
  {
    name: "apply",
    seeds: [json([pod, pod]), json([pod, { spec: { containers: [{ name: "web", ports: [{ containerPort: 81 }] }] } }])],
    dictionary: words,
    declares: [TypedValueError],
    run(input) {
      const [live, config] = pairOf(input);
      if (!isObject(live) || !isObject(config)) return;
      validateTyped(podApplyType, live);
      validateTyped(podApplyType, config);
      const set = fieldSetOf(podApplyType, config);
      assert.ok(
        equal(readFieldsV1(parseJson(encodeAny(toFieldsV1(set))) as Record<string, unknown>), set), // cast: fieldsV1 is an object
        "fields are read as they are written",
      );
      const merged = atOnce(mergeInSteps(podApplyType, live, config));
      validateTyped(podApplyType, merged);
      atOnce(removeFieldsInSteps(podApplyType, merged, set));
    },
  },
  {
    name: "fields-v1",
    seeds: [
      '{"f:spec":{"f:containers":{"k:{\\"name\\":\\"web\\"}":{".":{},"f:image":{}}}}}',
      '{"f:metadata":{"f:finalizers":{"v:\\"a\\"":{}}},"i:0":{}}',
      '{"f:spec":{"f:replicas":9007199254740993}}',
    ],
    dictionary: ['"f:', '"k:{', '"v:', '"i:1', '".":{}', '\\"'],
    declares: [Error, SyntaxError],
    run(input) {
      const fields = parseJson(input);
      if (!isObject(fields)) return;
      const set = readFieldsV1(fields as Record<string, unknown>); // cast: isObject has excluded all but objects
      assert.ok(equal(readFieldsV1(parseJson(encodeAny(toFieldsV1(set))) as Record<string, unknown>), set)); // cast: fieldsV1 is an object
      assert.ok(equal(union(set, set), set));
    },
  },
];

import assert from "node:assert/strict";
import { test } from "node:test";
import type { Taint, Toleration } from "../objects/schema/kinds/core/v1.ts";
import fc from "../testing/fast-check.ts";
import { labelOf } from "./labels.ts";
import { Tolerations, tolerates, tolerationText } from "./tolerations.ts";

const taint: Taint = { key: "a", value: "1", effect: "NoSchedule" };

for (const [name, toleration, want] of [
  ["the same key, value and effect", { key: "a", operator: "Equal", value: "1", effect: "NoSchedule" }, true],
  ["no operator", { key: "a", value: "1", effect: "NoSchedule" }, true],
  ["an empty operator", { key: "a", operator: "", value: "1", effect: "NoSchedule" }, true],
  ["no effect", { key: "a", value: "1" }, true],
  ["another effect", { key: "a", value: "1", effect: "NoExecute" }, false],
  ["another value", { key: "a", value: "2", effect: "NoSchedule" }, false],
  ["no value", { key: "a", effect: "NoSchedule" }, false],
  ["another key", { key: "b", operator: "Exists", effect: "NoSchedule" }, false],
  ["its key's existence", { key: "a", operator: "Exists", effect: "NoSchedule" }, true],
  ["its key's existence, whatever the value", { key: "a", operator: "Exists", value: "2" }, true],
  ["any key", { operator: "Exists" }, true],
  ["any key of another effect", { operator: "Exists", effect: "NoExecute" }, false],
  ["its value under any key", { value: "1" }, true],
  ["an operator that does not exist", { key: "a", operator: "In", value: "1", effect: "NoSchedule" }, false],
] as [string, Toleration, boolean][]) {
  test(`a toleration of ${name} ${want ? "matches" : "does not match"}, alone and among many`, () => {
    assert.equal(tolerates(toleration, taint), want);
    assert.equal(new Tolerations([toleration]).tolerate(taint), want);
    const many = [...others(16), toleration];
    assert.equal(new Tolerations(many).firstFor(taint), want ? toleration : undefined);
  });
}

const others = (count: number): Toleration[] =>
  Array.from({ length: count }, (_, i) => ({ key: `other-${i}`, operator: "Exists" }));

test("a value that is absent is the empty one", () => {
  assert.equal(tolerates({ key: "a", value: "" }, { key: "a", effect: "NoSchedule" }), true);
  assert.equal(tolerates({ key: "a" }, { key: "a", value: "", effect: "NoSchedule" }), true);
  assert.equal(new Tolerations([...others(20), { key: "a" }]).tolerate({ key: "a", value: "", effect: "NoSchedule" }), true);
});

test("the first of many tolerations that match is found, as if they were compared one by one", () => {
  const key = fc.constantFrom("", "a", "b");
  const effect = fc.constantFrom("", "NoSchedule", "NoExecute");
  const value = fc.constantFrom("", "1");
  const toleration = fc.record(
    { key, effect, value, operator: fc.constantFrom("", "Equal", "Exists", "In") },
    { requiredKeys: [] },
  );
  fc.assert(
    fc.property(fc.array(toleration, { minLength: 14, maxLength: 18 }), fc.record({ key, effect, value }), (list, of) => {
      // Cast: the types list only the operators and effects that exist.
      const [all, one] = [list as Toleration[], of as Taint];
      assert.equal(
        new Tolerations(all).firstFor(one),
        all.find((each) => tolerates(each, one)),
      );
    }),
  );
});

test("the first taint of the effects that is not tolerated is returned", () => {
  const tolerations = new Tolerations([{ key: "a", operator: "Exists" }]);
  const taints: Taint[] = [
    taint,
    { key: "b", effect: "PreferNoSchedule" },
    { key: "c", effect: "NoExecute" },
    { key: "d", effect: "NoExecute" },
  ];
  assert.equal(tolerations.firstUntolerated(taints, ["NoSchedule", "NoExecute"])?.key, "c");
  assert.equal(tolerations.firstUntolerated(taints, ["NoSchedule"]), undefined);
  assert.equal(tolerations.firstUntolerated(taints, ["PreferNoSchedule"])?.key, "b");
  assert.equal(new Tolerations().firstUntolerated(taints, ["NoSchedule"])?.key, "a");
});

test("tolerations have the same text when they are equal, each field counts", () => {
  const one: Toleration = { key: "a", operator: "Equal", value: "1", effect: "NoExecute", tolerationSeconds: 5 };
  assert.equal(tolerationText(one), tolerationText({ ...one }));
  const different = [
    one,
    { ...one, key: "b" },
    { ...one, operator: "Exists" },
    { ...one, value: "2" },
    { ...one, effect: "NoSchedule" },
    { ...one, tolerationSeconds: 0 },
    { ...one, tolerationSeconds: undefined },
  ] as Toleration[];
  assert.equal(new Set(different.map(tolerationText)).size, different.length);
});

test("a label is found by its own name only", () => {
  assert.equal(labelOf({ a: "" }, "a"), "");
  assert.deepEqual([labelOf({}, "constructor"), labelOf(undefined, "a")], [undefined, undefined]);
});

import assert from "node:assert/strict";
import { test } from "node:test";
import type { Taint, Toleration } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { aPod } from "@coxswain/apimachinery/testing/builders";
import { cpuMsOf } from "@coxswain/apimachinery/testing/cpu-time";
import { toleratedForMs } from "./tolerations.ts";

const taint = (key: string): Taint => ({ key, effect: "NoExecute" });
const aPodWith = (tolerations: readonly Toleration[]) =>
  aPod({ name: "a", spec: { containers: [], tolerations: [...tolerations] } });
const during = (key: string, tolerationSeconds: number): Toleration => ({ key, operator: "Exists", tolerationSeconds });
const rest = Array.from({ length: 30 }, (_, i): Toleration => ({ key: `r${i}`, operator: "Exists", tolerationSeconds: 1 }));

for (const { name, tolerations, want } of [
  { name: "of its key that is the first of two", tolerations: [during("a", 20), during("a", 10)], want: 20_000 },
  { name: "of every key before one of its key", tolerations: [during("", 5), during("a", 10)], want: 5_000 },
  { name: "of its key before one of every key", tolerations: [during("a", 10), during("", 5)], want: 10_000 },
  { name: "of its key without a limit", tolerations: [{ key: "a", operator: "Exists" }], want: Number.POSITIVE_INFINITY },
  { name: "of another key", tolerations: [during("b", 5)], want: 0 },
  { name: "of another value", tolerations: [{ key: "a", operator: "Equal", value: "x" }], want: 0 },
] as const) {
  for (const [many, more] of [
    ["", []],
    [" among many", rest],
  ] as const) {
    test(`a toleration ${name}${many} lets a pod stay for ${want} ms`, () =>
      assert.equal(toleratedForMs(aPodWith([...tolerations, ...more]), [taint("a")]), want));
  }
}

test("10,000 taints and as many tolerations are compared in little time", () => {
  const keys = Array.from({ length: 10_000 }, (_, i) => `t${i}`);
  const pod = aPodWith(keys.toReversed().map((key) => during(key, 30)));
  const tookMs = cpuMsOf(() => assert.equal(toleratedForMs(pod, keys.map(taint)), 30_000));
  assert.ok(tookMs < 300, `${tookMs} ms`);
});

import assert from "node:assert/strict";
import { test } from "node:test";
import type { Node } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { strategiesOf } from "../../../testing/kind-rules.ts";
import { prepareUpdate } from "../../../testing/run-strategy.ts";

const { strategy: nodeStrategy, statusStrategy: nodeStatusStrategy } = strategiesOf<Node>("nodes");

const source = { configMap: { namespace: "a", name: "b", kubeletConfigKey: "k" } };
const aNode = (used: boolean): Node => ({
  metadata: { name: "n" },
  spec: used ? { configSource: source } : {},
  status: used ? { config: { assigned: source } } : {},
});
const context = (enabled: boolean) => ({ featureEnabled: () => enabled }) as never;

for (const { gate, before, kept } of [
  { gate: true, before: false, kept: true },
  { gate: true, before: true, kept: true },
  { gate: false, before: true, kept: true },
  { gate: false, before: false, kept: false },
]) {
  const what = `${gate ? "with" : "without"} its gate, where it was ${before ? "" : "not "}used before`;
  test(`the source of a node's configuration is ${kept ? "kept" : "dropped"} ${what}`, () => {
    const next = aNode(true);
    prepareUpdate(nodeStrategy, next, aNode(before), context(gate));
    assert.equal(next.spec?.configSource !== undefined, kept);
    const status = aNode(true);
    prepareUpdate(nodeStatusStrategy, status, aNode(before), context(gate));
    assert.equal(status.status?.config !== undefined, kept);
  });
}

test("a new node has a source of its configuration, and reports it, only with the gate", () => {
  for (const gate of [true, false]) {
    const next = aNode(true);
    nodeStrategy.prepareForCreate?.(next, context(gate));
    assert.deepEqual([next.spec?.configSource !== undefined, next.status?.config !== undefined], [gate, gate]);
  }
});

test("an update of a node leaves its status, one of the status its spec", () => {
  const next = aNode(true);
  prepareUpdate(nodeStrategy, next, { ...aNode(true), status: { phase: "Running" } }, context(true));
  assert.deepEqual(next.status, { phase: "Running" });
  const status = aNode(true);
  prepareUpdate(nodeStatusStrategy, status, { ...aNode(true), spec: { podCIDR: "10.0.0.0/24" } }, context(true));
  assert.deepEqual(status.spec, { podCIDR: "10.0.0.0/24" });
});

test("a new and a changed node that have a source of their configuration warn of it", () => {
  const text = "spec.configSource: deprecated in v1.22, support removal is planned in v1.23";
  for (const [used, want] of [
    [true, [text]],
    [false, []],
  ] as const) {
    assert.deepEqual(nodeStrategy.warningsOnCreate?.(aNode(used), context(true)), want);
    assert.deepEqual(nodeStrategy.warningsOnUpdate?.(aNode(used), aNode(used), context(true)), want);
  }
});

import assert from "node:assert/strict";
import { test } from "node:test";
import type { Pod } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { behaviourOf, checkRules, type PodMatch, type PodRule, ruleOf } from "./pod-rules.ts";

const pod = {
  metadata: { name: "web-7-abc", namespace: "shop", labels: { app: "web", tier: "front" }, annotations: { note: "x" } },
  spec: {
    nodeName: "n1",
    containers: [
      { name: "a", image: "nginx:1.25" },
      { name: "b", image: "registry.example/log/agent:2" },
    ],
  },
} as unknown as Pod;

for (const [match, want] of [
  [{}, true],
  [{ namespace: "shop" }, true],
  [{ namespace: "default" }, false],
  [{ node: "n1" }, true],
  [{ node: "n2" }, false],
  [{ labels: { app: "web", tier: "front" } }, true],
  [{ labels: { app: "web", tier: "back" } }, false],
  [{ annotations: { note: "x" } }, true],
  [{ annotations: { app: "web" } }, false],
  [{ name: "web-7-abc" }, true],
  [{ name: "web-7" }, false],
  [{ name: "web-*" }, true],
  [{ name: "*-abc" }, true],
  [{ name: "*" }, true],
  [{ name: "web-*-abc" }, true],
  [{ name: "w*7*c" }, true],
  [{ name: "w*7*7*c" }, false],
  [{ name: "web-7-abc*abc" }, false],
  [{ name: "*-7-*" }, true],
  [{ name: "b-*" }, false],
  [{ image: "nginx:*" }, true],
  [{ image: "*/log/agent:2" }, true],
  [{ image: "redis:*" }, false],
  [{ namespace: "shop", name: "web-*", labels: { app: "db" } }, false],
] as [PodMatch, boolean][]) {
  test(`${JSON.stringify(match)} ${want ? "selects" : "does not select"} the pod`, () => {
    const rule: PodRule = { match, startAfter: 7 };
    assert.equal(ruleOf(pod, [rule]) === rule, want);
  });
}

test("the first rule that selects a pod is its rule, and the usual one without any", () => {
  const rules: PodRule[] = [{ match: { namespace: "other" } }, { match: { namespace: "shop" } }, {}];
  assert.equal(ruleOf(pod, rules), rules[1]);
  assert.deepEqual(ruleOf(pod, []), {});
});

test("without a rule pods are ready at once, and end after a second unless they are restarted always", () => {
  const usual = { startMs: 0, readyMs: 0, ends: undefined, waits: undefined, stopMs: 0 };
  assert.deepEqual(behaviourOf({}, "Always"), usual);
  for (const policy of ["Never", "OnFailure"])
    assert.deepEqual(behaviourOf({}, policy), { ...usual, ends: { afterMs: 1_000, exitCode: 0, reason: undefined } });
});

test("what a rule says is taken in milliseconds", () => {
  const rule: PodRule = {
    ...{ startAfter: "1s", readyAfter: "2s", stopAfter: "3s" },
    ends: { after: "4s", exitCode: 5, reason: "OOMKilled" },
    waits: { reason: "ImagePullBackOff" },
  };
  assert.deepEqual(behaviourOf(rule, "Always"), {
    ...{ startMs: 1_000, readyMs: 2_000, stopMs: 3_000 },
    ends: { afterMs: 4_000, exitCode: 5, reason: "OOMKilled" },
    waits: { reason: "ImagePullBackOff", message: "" },
  });
  assert.deepEqual(behaviourOf({ readyAfter: "never", ends: "never" }, "Never"), behaviourOf({ readyAfter: "never" }, "Always"));
  assert.equal(behaviourOf({ readyAfter: "never" }, "Always").readyMs, undefined);
});

for (const [rule, message] of [
  [{ startAfter: "soon" }, /^Error: rule 2 of pods: "soon" is not a duration/],
  [{ readyAfter: -1 }, /^Error: rule 2 of pods: -1 is not a duration/],
  [{ stopAfter: "x" }, /^Error: rule 2 of pods: "x" is not a duration/],
  [{ ends: { after: "y" } }, /^Error: rule 2 of pods: "y" is not a duration/],
  [{ stages: [{ name: "s", next: {} }] }, /^Error: rule 2 of pods: stage "s": next: nothing happens/],
  [{ usage: { cpu: "much" } }, /^Error: rule 2 of pods: usage: "much" is no amount of cpu/],
] as [PodRule, RegExp][]) {
  test(`a rule is refused by its number: ${JSON.stringify(rule)}`, () => assert.throws(() => checkRules([{}, rule]), message));
}

import assert from "node:assert/strict";
import { test } from "node:test";
import type { PodAffinityTerm } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { aTestPod } from "../testing/test-cluster.ts";
import { matchesAffinityTerm, parseAffinity } from "./affinity-terms.ts";

const term = (topologyKey: string, more: Partial<PodAffinityTerm> = {}): PodAffinityTerm => ({
  topologyKey,
  labelSelector: { matchLabels: { app: "web" } },
  ...more,
});
const list = (...keys: string[]) => ({
  requiredDuringSchedulingIgnoredDuringExecution: keys.map((key) => term(key)),
  preferredDuringSchedulingIgnoredDuringExecution: keys.map((key, i) => ({
    weight: i + 1,
    podAffinityTerm: term(`preferred-${key}`),
  })),
});

test("all terms of each kind are read, in their order", () => {
  const terms = parseAffinity(
    aTestPod("web", { spec: { affinity: { podAffinity: list("a", "b"), podAntiAffinity: list("c", "d") } } }),
  );
  assert.ok(terms);
  assert.deepEqual(
    [terms.required, terms.requiredAnti, terms.preferred, terms.preferredAnti].map((parsed) =>
      parsed.map(({ topologyKey }) => topologyKey),
    ),
    [
      ["a", "b"],
      ["c", "d"],
      ["preferred-a", "preferred-b"],
      ["preferred-c", "preferred-d"],
    ],
  );
  assert.deepEqual(
    terms.preferredAnti.map(({ weight }) => weight),
    [1, 2],
  );
});

for (const { name, more, own, other, labelled } of [
  { name: "neither names nor a selector: the pod's own namespace", more: {}, own: true, other: false, labelled: false },
  { name: "names", more: { namespaces: ["other"] }, own: false, other: true, labelled: false },
  {
    name: "a selector without names: not the pod's own namespace as such",
    more: { namespaceSelector: { matchLabels: { team: "one" } } },
    own: false,
    other: false,
    labelled: true,
  },
  {
    name: "names and a selector: both",
    more: { namespaces: ["other"], namespaceSelector: { matchLabels: { team: "one" } } },
    own: false,
    other: true,
    labelled: true,
  },
]) {
  test(`namespaces of a term with ${name}`, () => {
    const required = [term("zone", more)];
    const affinity = { podAffinity: { requiredDuringSchedulingIgnoredDuringExecution: required } };
    const parsed = parseAffinity(aTestPod("web", { spec: { affinity } }))?.required[0];
    assert.ok(parsed);
    const isIn = (namespace: string, labels = {}) =>
      matchesAffinityTerm(parsed, aTestPod("db", { namespace, labels: { app: "web" } }), labels);
    assert.deepEqual([isIn("default"), isIn("other"), isIn("third", { team: "one" })], [own, other, labelled]);
  });
}

test("a pod without terms has no affinity", () => {
  assert.equal(parseAffinity(aTestPod("web")), undefined);
  assert.equal(parseAffinity(aTestPod("web", { spec: { affinity: { podAffinity: {}, podAntiAffinity: {} } } })), undefined);
});

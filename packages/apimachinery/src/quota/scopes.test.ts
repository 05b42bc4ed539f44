import assert from "node:assert/strict";
import { test } from "node:test";
import type { Pod, PodSpec } from "../objects/schema/kinds/core/v1.ts";
import { podMatchesScope, scopesOf } from "./scopes.ts";

const aPod = (spec: Partial<PodSpec> = {}): Pod => ({
  metadata: { name: "p" },
  spec: { containers: [{ name: "c", image: "i" }], ...spec },
});
const term = { topologyKey: "zone" };
const elsewhere = { ...term, namespaces: ["other"] };
const preferring = (podAffinityTerm: object) => ({
  podAntiAffinity: {
    preferredDuringSchedulingIgnoredDuringExecution: [
      { weight: 1, podAffinityTerm },
      { weight: 1, podAffinityTerm: term },
    ],
  },
});

for (const { scope, operator = "Exists", values, spec, want } of [
  { scope: "Terminating", spec: { activeDeadlineSeconds: 0 }, want: true },
  { scope: "Terminating", spec: {}, want: false },
  { scope: "NotTerminating", spec: { activeDeadlineSeconds: 0 }, want: false },
  { scope: "NotTerminating", spec: {}, want: true },
  { scope: "BestEffort", spec: {}, want: true },
  { scope: "NotBestEffort", spec: {}, want: false },
  {
    scope: "NotBestEffort",
    spec: { containers: [{ name: "c", image: "i", resources: { requests: { cpu: "1" } } }] },
    want: true,
  },
  { scope: "PriorityClass", operator: "In", values: ["a", "b"], spec: { priorityClassName: "b" }, want: true },
  { scope: "PriorityClass", operator: "In", values: ["a", "b"], spec: { priorityClassName: "c" }, want: false },
  { scope: "PriorityClass", operator: "In", values: [""], spec: {}, want: false },
  { scope: "PriorityClass", operator: "NotIn", values: ["a", "b"], spec: { priorityClassName: "b" }, want: false },
  { scope: "PriorityClass", operator: "NotIn", values: ["a", "b"], spec: { priorityClassName: "c" }, want: true },
  { scope: "PriorityClass", operator: "NotIn", values: ["a"], spec: {}, want: true },
  { scope: "PriorityClass", operator: "NotIn", values: [""], spec: {}, want: true },
  { scope: "PriorityClass", operator: "Exists", spec: { priorityClassName: "c" }, want: true },
  { scope: "PriorityClass", operator: "Exists", spec: {}, want: false },
  { scope: "PriorityClass", operator: "DoesNotExist", spec: {}, want: true },
  { scope: "PriorityClass", operator: "Is", spec: {}, want: false },
  { scope: "PriorityClass", operator: "DoesNotExist", spec: { priorityClassName: "c" }, want: false },
  { scope: "CrossNamespacePodAffinity", spec: { affinity: preferring(term) }, want: false },
  { scope: "CrossNamespacePodAffinity", spec: { affinity: preferring(elsewhere) }, want: true },
  { scope: "CrossNamespacePodAffinity", spec: { affinity: preferring({ ...term, namespaceSelector: {} }) }, want: true },
  {
    scope: "CrossNamespacePodAffinity",
    spec: { affinity: { podAffinity: { requiredDuringSchedulingIgnoredDuringExecution: [term, elsewhere] } } },
    want: true,
  },
  { scope: "Unknown", spec: {}, want: false },
]) {
  test(`${scope} ${operator} ${values ?? ""} is ${want ? "" : "not "}met by a pod with ${JSON.stringify(spec)}`, () => {
    assert.equal(podMatchesScope(aPod(spec as Partial<PodSpec>), { scopeName: scope, operator, values: values ?? [] }), want);
  });
}

test("the scopes of a quota are its plain ones and its expressions", () => {
  const matchExpressions = [{ scopeName: "PriorityClass", operator: "In", values: ["a"] }];
  assert.deepEqual(scopesOf({ scopes: ["Terminating", "BestEffort"], scopeSelector: { matchExpressions } }), [
    { scopeName: "Terminating", operator: "Exists" },
    { scopeName: "BestEffort", operator: "Exists" },
    ...matchExpressions,
  ]);
  assert.deepEqual(scopesOf(undefined), []);
});

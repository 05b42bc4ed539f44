import assert from "node:assert/strict";
import { test } from "node:test";
import type { Pod } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import type { PodDisruptionBudget } from "@coxswain/apimachinery/objects/schema/kinds/policy/v1";
import { newPodInfo } from "../cache/node-info.ts";
import type { Victims } from "../extenders/extender.ts";
import { aTestPod } from "../testing/test-cluster.ts";
import { pickNode } from "./pick-node.ts";
import { compareImportance, splitByBudgets } from "./victims.ts";

const pod = (name: string, priority: number, startTime?: string): Pod =>
  aTestPod(name, { priority, status: startTime === undefined ? {} : { startTime } });
const victims = (violations: number, ...pods: Pod[]): Victims => ({ violations, pods });
const early = "2024-01-01T00:00:00Z";
const late = "2024-01-01T01:00:00Z";

for (const { name, candidates, want } of [
  { name: "none without candidates", candidates: {}, want: undefined },
  {
    name: "first the one with fewer violated budgets",
    candidates: { a: victims(1, pod("1", 0)), b: victims(0, pod("2", 9)) },
    want: "b",
  },
  {
    name: "then the one whose highest victim priority is lower",
    candidates: { a: victims(0, pod("1", 5)), b: victims(0, pod("2", 4), pod("3", 4)) },
    want: "b",
  },
  {
    name: "the first victim counts as the most important, one that violates a budget if there are any",
    candidates: { a: victims(1, pod("1", 3), pod("2", 9)), b: victims(1, pod("3", 4), pod("4", 4)) },
    want: "a",
  },
  {
    name: "then the lower sum of priorities",
    candidates: { a: victims(0, pod("1", 5), pod("2", 5)), b: victims(0, pod("3", 5), pod("4", 1)) },
    want: "b",
  },
  {
    name: "more victims of negative priority are not better than fewer",
    candidates: { a: victims(0, pod("1", -5), pod("2", -5)), b: victims(0, pod("3", -5)) },
    want: "b",
  },
  {
    name: "then the fewer victims",
    candidates: { a: victims(0, pod("1", 5), pod("2", -(2 ** 31))), b: victims(0, pod("3", 5)) },
    want: "b",
  },
  {
    name: "only start times of victims of the highest priority count, of these the earliest",
    candidates: {
      a: victims(0, pod("1", 5, late), pod("2", 5, early), pod("3", 1, late)),
      b: victims(0, pod("4", 5, late), pod("5", 5, late), pod("6", 1, early)),
    },
    want: "b",
  },
  {
    name: "candidates with equal first criteria are compared by the second",
    candidates: { a: victims(1, pod("1", 1)), b: victims(0, pod("2", 9)), c: victims(0, pod("3", 8)) },
    want: "c",
  },
  {
    name: "then the one whose highest-priority victim started last",
    candidates: { a: victims(0, pod("1", 5, early)), b: victims(0, pod("2", 5, late)) },
    want: "b",
  },
  { name: "then the first", candidates: { a: victims(0, pod("1", 5, early)), b: victims(0, pod("2", 5, early)) }, want: "a" },
]) {
  test(`picks a node: ${name}`, () => assert.equal(pickNode(new Map(Object.entries(candidates))), want));
}

test("the more important pod has the higher priority, or runs longer", () => {
  const sorted = [pod("new", 1), pod("late", 1, late), pod("urgent", 2, late), pod("early", 1, early)].toSorted(
    compareImportance,
  );
  assert.deepEqual(
    sorted.map(({ metadata }) => metadata.name),
    ["urgent", "early", "late", "new"],
  );
});

const budget = (disruptionsAllowed: number, matchLabels: Record<string, string> | undefined, more: object = {}) => ({
  metadata: { name: "budget", namespace: "default" },
  spec: { selector: { matchLabels: matchLabels ?? {} } },
  status: { disruptionsAllowed, currentHealthy: 1, desiredHealthy: 1, expectedPods: 1, ...more },
});
const web = { app: "web" };

const withoutApp = { matchExpressions: [{ key: "app", operator: "DoesNotExist" }] };

for (const { name, budgets, labels = web, want } of [
  { name: "without budgets no pod", budgets: [], want: [] },
  { name: "the budget is used up one by one", budgets: [budget(1, web)], want: ["2", "3"] },
  { name: "an empty selector selects no pod", budgets: [budget(0, undefined)], want: [] },
  {
    name: "a budget without disruptionsAllowed allows no disruption",
    budgets: [{ ...budget(0, web), status: undefined }],
    want: ["1", "2", "3"],
  },
  {
    name: "a malformed budget protects no pod, and the next one does",
    budgets: [
      { ...budget(0, web), spec: { selector: { matchExpressions: [{ key: "app", operator: "Near", values: ["web"] }] } } },
      budget(2, web),
    ],
    want: ["3"],
  },
  {
    name: "a budget of another namespace protects no pod, and the next one does",
    budgets: [{ ...budget(0, web), metadata: { name: "budget", namespace: "other" } }, budget(2, web)],
    want: ["3"],
  },
  {
    name: "a pod that one budget has counted already is counted by the next",
    budgets: [budget(3, web, { disruptedPods: { "1": early } }), budget(0, web)],
    want: ["1", "2", "3"],
  },
  { name: "each of two budgets counts", budgets: [budget(2, web), budget(1, web)], want: ["2", "3"] },
  { name: "each of two budgets counts, in whatever order", budgets: [budget(1, web), budget(2, web)], want: ["2", "3"] },
  { name: "a budget that selects other labels protects no pod", budgets: [budget(0, { app: "db" })], want: [] },
  {
    name: "a pod that is counted already is not counted again",
    budgets: [budget(1, web, { disruptedPods: { "1": early } })],
    want: ["3"],
  },
  {
    name: "a selector of pods that lack a label selects those with other labels",
    budgets: [{ ...budget(0, web), spec: { selector: withoutApp } }],
    labels: { tier: "web" },
    want: ["1", "2", "3"],
  },
  {
    name: "a pod without labels is selected by none",
    budgets: [{ ...budget(0, web), spec: { selector: withoutApp } }],
    labels: {},
    want: [],
  },
] as { name: string; budgets: PodDisruptionBudget[]; labels?: Record<string, string>; want: string[] }[]) {
  test(`pods that violate a budget: ${name}`, () => {
    const pods = ["1", "2", "3"].map((each) => newPodInfo(aTestPod(each, { labels })));
    const { violating, others } = splitByBudgets(pods, budgets);
    assert.deepEqual(
      violating.map(({ pod: each }) => each.metadata.name),
      want,
    );
    assert.equal(violating.length + others.length, 3);
  });
}

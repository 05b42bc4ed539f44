import assert from "node:assert/strict";
import { test } from "node:test";
import type { PodDisruptionBudget } from "@coxswain/apimachinery/objects/schema/kinds/policy/v1";
import { newPodInfo } from "../cache/node-info.ts";
import { aTestPod } from "../testing/test-cluster.ts";
import { splitByBudgets } from "./victims.ts";

const budget = (matchLabels: Record<string, string>, disruptionsAllowed: number, status: object = {}) =>
  ({
    apiVersion: "policy/v1",
    kind: "PodDisruptionBudget",
    metadata: { name: "budget", namespace: "default" },
    spec: { selector: { matchLabels } },
    status: { disruptionsAllowed, ...status },
  }) as unknown as PodDisruptionBudget;
const pod = (name: string, labels: Record<string, string>) => newPodInfo(aTestPod(name, { labels }));
const split = (budgets: PodDisruptionBudget[], ...pods: ReturnType<typeof pod>[]) => {
  const { violating, others } = splitByBudgets(pods, budgets);
  const names = (infos: typeof violating) => infos.map((info) => info.pod.metadata.name);
  return [names(violating), names(others)];
};

test("a pod counts against all of its budgets, also after one that it violates", () => {
  const budgets = [budget({ app: "web" }, 0), budget({ tier: "front" }, 1)];
  assert.deepEqual(split(budgets, pod("both", { app: "web", tier: "front" }), pod("one", { tier: "front" })), [
    ["both", "one"],
    [],
  ]);
});

test("as many evictions as the budget allows do not violate it", () => {
  const web = { app: "web" };
  assert.deepEqual(split([budget(web, 2)], pod("a", web), pod("b", web), pod("c", web), pod("d", { app: "db" })), [
    ["c"],
    ["a", "b", "d"],
  ]);
});

test("a pod whose disruption the budget has already counted does not count again", () => {
  const web = { app: "web" };
  const disruptedPods = { a: "2022-01-01T00:00:00Z" };
  assert.deepEqual(split([budget(web, 1, { disruptedPods })], pod("a", web), pod("b", web)), [[], ["a", "b"]]);
});

test("an empty selector matches no pod, and neither does any selector a pod without labels", () => {
  const absent = budget({}, 0);
  absent.spec = { selector: { matchExpressions: [{ key: "app", operator: "DoesNotExist" }] } };
  assert.deepEqual(split([budget({}, 0), absent], pod("a", { app: "web" }), pod("b", {})), [[], ["a", "b"]]);
});

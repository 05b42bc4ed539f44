import assert from "node:assert/strict";
import { test } from "node:test";
import type { Decision } from "@coxswain/apimachinery/decisions/decision";
import { pods } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { startScheduler } from "./testing/running-scheduler.ts";

type Running = Awaited<ReturnType<typeof startScheduler>>;

function reported({ decisions }: Running, name: string): Decision | undefined {
  return decisions.of({ group: "", resource: "pods", kind: "Pod", namespace: "default", name, uid: "" })[0];
}

test("reports the smallest shortage, taints and other rejections, each with the number of nodes", async (t) => {
  const running = await startScheduler(t);
  const { names, step } = running;
  names.node("a", { cpu: "1" });
  names.node("b", { cpu: "500m" });
  names.node("c", { cpu: "200m" });
  for (const name of ["d", "e"]) names.node(name, { spec: { taints: [{ key: "x", value: "y", effect: "NoSchedule" }] } });
  names.node("f", { spec: { unschedulable: true } });
  await step();
  names.pod("web", { cpu: "1300m" });
  await step();
  const decision = reported(running, "web");
  assert.partialDeepStrictEqual(decision, {
    ...{ component: "kube-scheduler", source: "scheduler", verdict: "refused", reason: "NoNodeFits", count: 1 },
    remedy: "lower the requests, remove other pods, or add a node",
    nextTryAt: "2022-01-01T00:01:00Z",
  });
  const parts = decision?.summary.split("; ").sort();
  assert.deepEqual(parts, [
    "does not tolerate the taint x=y:NoSchedule of 2 of 6 nodes",
    "needs 300m more CPU on any of 3 nodes",
    "node(s) were unschedulable: 1 of 6 nodes",
    "preempting pods of lower priority would not help",
  ]);
  const { refused, lastAttempt } = (decision?.details ?? {}) as { refused: { node: string }[]; lastAttempt: string };
  assert.deepEqual(
    refused.find(({ node }) => node === "b"),
    { node: "b", plugin: "NodeResourcesFit", reasons: ["Insufficient cpu"], missing: { cpu: "800m" } },
  );
  assert.match(lastAttempt, /^0\/6 nodes are available: /);
});

test("reports that the eviction of one pod would suffice, names it apart from the summary, and fits when it is deleted", async (t) => {
  const running = await startScheduler(t);
  const { client, names, step } = running;
  names.node("a", { cpu: "4" });
  names.pod("big", { on: "a", cpu: "3" });
  names.pod("small", { on: "a", cpu: "500m" });
  names.pod("web", { cpu: "2" });
  await step();
  const decision = reported(running, "web");
  assert.equal(decision?.reason, "InsufficientResources");
  assert.match(
    decision?.summary ?? "",
    /needs 1500m more CPU on the only node; would fit if pod big of namespace default on node a were gone/,
  );
  assert.match(decision?.plain ?? "", /needs 1500m more CPU on the only node; would fit if one other pod were gone/);
  assert.doesNotMatch(decision?.plain ?? "", /big/);
  assert.deepEqual(
    decision?.related?.map(({ kind, name }) => [kind, name]),
    [
      ["Pod", "big"],
      ["Node", "a"],
    ],
  );
  client.remove(pods, "default/big");
  await step();
  assert.match(reported(running, "web")?.summary ?? "", /fits the only node now, and will be tried again/);
  await step(2_000);
  assert.partialDeepStrictEqual(reported(running, "web"), { verdict: "done", reason: "Scheduled" });
});

test("two pods that each exclude the pod are not reported as one pod less", async (t) => {
  const running = await startScheduler(t);
  const { names, step } = running;
  const labels = { app: "rival" };
  const terms = [{ topologyKey: "kubernetes.io/hostname", labelSelector: { matchLabels: labels } }];
  const affinity = { podAntiAffinity: { requiredDuringSchedulingIgnoredDuringExecution: terms } };
  names.node("a", { cpu: "4" });
  names.pod("one", { on: "a", labels });
  names.pod("two", { on: "a", labels });
  names.pod("web", { spec: { affinity } });
  await step();
  assert.equal(reported(running, "web")?.reason, "PodAffinityMismatch");
  assert.doesNotMatch(reported(running, "web")?.summary ?? "", /would fit/);
});

test("reports that the preemption policy forbids preemption, and that victims are still terminating", async (t) => {
  const running = await startScheduler(t);
  const { client, names, step } = running;
  names.node("a");
  names.pod("old", { on: "a", cpu: "4" });
  names.pod("modest", { cpu: "4", priority: 10, spec: { preemptionPolicy: "Never" } });
  await step();
  assert.match(reported(running, "modest")?.summary ?? "", /its preemption policy forbids preemption/);
  client.react("delete", "pods", () => ({}));
  names.pod("urgent", { cpu: "4", priority: 10 });
  await step();
  assert.match(reported(running, "urgent")?.summary ?? "", /it waits until pods of lower priority have ended/);
});

test("reports the best three nodes of a pod that has one, and forgets a deleted pod", async (t) => {
  const running = await startScheduler(t);
  const { client, names, step } = running;
  for (const [i, name] of ["a", "b", "c", "d"].entries()) names.node(name, { cpu: String(4 + 4 * i) });
  await step();
  names.pod("web");
  await step();
  const decision = reported(running, "web");
  assert.equal(decision?.plain, "placed on the best of 4 nodes that fit, of 4 looked at");
  const { best } = (decision?.details ?? {}) as { best: { node: string; score: number }[] };
  assert.equal(best.length, 3);
  const scores = best.map(({ node, score }) => `${node} ${score}`).join(", ");
  assert.equal(decision?.summary, `${decision?.plain}; scores: ${scores}`);
  assert.deepEqual(
    decision?.related?.map(({ resource, name }) => `${resource} ${name}`),
    best.map(({ node }) => `nodes ${node}`),
  );
  assert.equal(best[0]?.node, names.where("web"));
  assert.ok((best[0]?.score ?? 0) >= (best[1]?.score ?? 0) && (best[1]?.score ?? 0) >= (best[2]?.score ?? 0));
  client.remove(pods, "default/web");
  await step();
  assert.equal(reported(running, "web"), undefined);
});

test("reports a cluster without nodes, what a binding waits for, and a binding that failed", async (t) => {
  const running = await startScheduler(t);
  const { client, names, step } = running;
  names.pod("web");
  await step();
  assert.partialDeepStrictEqual(reported(running, "web"), { reason: "NoNodes", summary: "there are no nodes in the cluster" });
  const { promise, reject } = Promise.withResolvers<never>();
  client.react("create", "pods", ({ subresource }) => (subresource === "binding" ? promise : undefined));
  names.node("a");
  await step(2_000);
  assert.partialDeepStrictEqual(reported(running, "web"), { verdict: "waiting", reason: "Binding" });
  reject(new Error("etcd is away"));
  await step();
  assert.partialDeepStrictEqual(reported(running, "web"), { verdict: "failed", reason: "SchedulerError" });
  assert.match(reported(running, "web")?.summary ?? "", /etcd is away/);
});

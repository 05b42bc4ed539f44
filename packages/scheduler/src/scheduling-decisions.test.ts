import assert from "node:assert/strict";
import { test } from "node:test";
import { type Decision, objectRef } from "@coxswain/apimachinery/decisions/decision";
import { DecisionLog } from "@coxswain/apimachinery/decisions/decision-log";
import type { Container } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { nodes, pods } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { newFakeClock } from "@coxswain/apimachinery/process/clock/fake-clock";
import { hasFields } from "@coxswain/apimachinery/testing/has-fields";
import { FitError } from "./framework/status.ts";
import { SchedulingDecisions } from "./scheduling-decisions.ts";
import { startScheduler } from "./testing/running-scheduler.ts";
import { aTestNode, aTestPod } from "./testing/test-cluster.ts";

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
  await step(10_000);
  names.pod("web", { cpu: "1300m" });
  await step();
  const decision = reported(running, "web");
  assert.partialDeepStrictEqual(decision, {
    ...{ component: "kube-scheduler", source: "scheduler", verdict: "refused", reason: "NoNodeFits", count: 1 },
    remedy: "lower the requests, remove other pods, or add a node",
    nextTryAt: "2022-01-01T00:01:10Z",
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

test("of pods that would each make room the one of the lowest priority is named", async (t) => {
  const running = await startScheduler(t);
  const { names, step } = running;
  names.node("a", { cpu: "4" });
  for (const [name, priority] of Object.entries({ vital: 20, humble: 1, useful: 10 }))
    names.pod(name, { on: "a", cpu: "1300m", priority });
  names.pod("web", { cpu: "1" });
  await step();
  assert.match(reported(running, "web")?.summary ?? "", /would fit if pod humble of namespace default on node a were gone/);
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

const requesting = (requests: Record<string, string>): { containers: Container[] } => ({
  containers: [{ name: "main", image: "busybox", resources: { requests } }],
});
const gpu = "example.com/gpu";

for (const { name, there, wanted, want, missing } of [
  {
    name: "memory, rounded up to MiB",
    wanted: { memory: String(8 * 2 ** 30 + 1.5 * 2 ** 20) },
    want: "needs 2Mi more memory",
    missing: { memory: "2Mi" },
  },
  {
    name: "less than a MiB of memory, in bytes",
    wanted: { memory: String(8 * 2 ** 30 + 7) },
    want: "needs 7 more memory",
    missing: { memory: "7" },
  },
  { name: "room for a pod", there: {}, wanted: {}, want: "needs 1 more pods", missing: { pods: "1" } },
  {
    name: "an extended resource, of which some is taken",
    there: { [gpu]: "1" },
    wanted: { [gpu]: "3" },
    want: `needs 2 more ${gpu}`,
    missing: { [gpu]: "2" },
  },
] as { name: string; there?: Record<string, string>; wanted: Record<string, string>; want: string; missing: object }[]) {
  test(`reports what is short: ${name}`, async (t) => {
    const running = await startScheduler(t);
    const { client, names, step } = running;
    const node = aTestNode("a", { pods: name === "room for a pod" ? "1" : "10" });
    const allocatable = { ...node.status?.allocatable, [gpu]: "2" };
    client.put(nodes, { apiVersion: "v1", kind: "Node", ...node, status: { ...node.status, allocatable } });
    if (there !== undefined) names.pod("there", { on: "a", spec: requesting(there) });
    await step();
    names.pod("web", { spec: requesting(wanted) });
    await step();
    const { summary = "", details } = reported(running, "web") ?? {};
    assert.ok(summary.startsWith(`${want} on the only node`), summary);
    hasFields(details, { refused: [{ node: "a", missing }] });
  });
}

for (const { point, plugin, want } of [
  { point: "PreBind", plugin: "VolumeBinding", want: "a node was selected, and the pod waits for its volumes to be bound" },
  { point: "Permit", plugin: "VolumeBinding", want: "a node was selected, and the pod waits for VolumeBinding (Permit)" },
  { point: "Permit", plugin: "Gang", want: "a node was selected, and the pod waits for Gang (Permit)" },
  { point: "PreBind", plugin: "Other", want: "a node was selected, and the pod waits for Other (PreBind)" },
  { point: "Bind", plugin: "", want: "a node was selected, and the pod is being bound to it" },
]) {
  test(`reports what a binding waits for in ${point} ${plugin}, when it is asked`, () => {
    const log = new DecisionLog({ component: "kube-scheduler", clock: newFakeClock() });
    const progress = { point: "", plugin: "" };
    const pod = aTestPod("web");
    new SchedulingDecisions(log).binding(pod, progress);
    Object.assign(progress, { point, plugin });
    assert.equal(log.of(objectRef(pods, pod))[0]?.summary, want);
  });
}

test("reports a taint without a value as kubectl writes it", async (t) => {
  const running = await startScheduler(t);
  running.names.node("a", { spec: { taints: [{ key: "x", effect: "NoExecute" }] } });
  await running.step();
  running.names.pod("web");
  await running.step();
  assert.match(reported(running, "web")?.summary ?? "", /does not tolerate the taint x:NoExecute of the only node/);
});

test("counts all nodes that refuse a pod, and reports twenty of them one by one", async (t) => {
  const running = await startScheduler(t);
  for (let i = 0; i < 25; i++) running.names.node(`n${i}`, { cpu: "1" });
  await running.step();
  running.names.pod("web", { cpu: "2" });
  await running.step();
  const { summary, details } = reported(running, "web") ?? {};
  assert.match(summary ?? "", /needs 1 more CPU on any of 25 nodes/);
  assert.equal((details as { refused: unknown[] }).refused.length, 20);
});

test("of several pods each of which would make room the one of the lowest priority is named", async (t) => {
  const running = await startScheduler(t);
  const { names, step } = running;
  names.node("a");
  for (const [name, priority] of Object.entries({ high: 7, low: 3, middle: 5 })) names.pod(name, { on: "a", cpu: "1", priority });
  await step();
  names.pod("web", { cpu: "2" });
  await step();
  assert.match(reported(running, "web")?.summary ?? "", /would fit if pod low of namespace default on node a were gone/);
});

test("whose end would make room is looked for on nodes where that can help, not on the first ones", async (t) => {
  const running = await startScheduler(t);
  const { names, step } = running;
  for (let i = 0; i < 12; i++) names.node(`cordoned${i}`, { spec: { unschedulable: true } });
  names.node("full");
  names.pod("big", { on: "full", cpu: "4" });
  await step();
  names.pod("web", { cpu: "2" });
  await step();
  assert.match(reported(running, "web")?.summary ?? "", /would fit if pod big of namespace default on node full were gone/);
});

test("a pod that fits one of the nodes now is not told whose end would make room on another", async (t) => {
  const running = await startScheduler(t);
  const { client, names, step } = running;
  for (const name of ["a", "b"]) {
    names.node(name);
    names.pod(`big-${name}`, { on: name, cpu: "3" });
  }
  await step();
  names.pod("web", { cpu: "2" });
  await step();
  client.remove(pods, "default/big-a");
  await step();
  const { summary = "", related } = reported(running, "web") ?? {};
  assert.match(summary, /^fits 1 of 2 nodes now, and will be tried again; needs 1 more CPU/);
  assert.doesNotMatch(summary, /would fit/);
  assert.equal(related, undefined);
});

test("counts the nodes that were looked at, also those that do not fit", async (t) => {
  const running = await startScheduler(t);
  for (const [name, cpu] of Object.entries({ a: "1", b: "4", c: "1" })) running.names.node(name, { cpu });
  await running.step();
  running.names.pod("web", { cpu: "2" });
  await running.step();
  assert.equal(reported(running, "web")?.summary, "placed on the only node that fits, of 3 looked at");
});

test("a large pod is not compared with the nodes again for its decision: the reasons of its last cycle are reported", async (t) => {
  const running = await startScheduler(t);
  running.names.node("a", { cpu: "1" });
  await running.step();
  const tolerations = Array.from({ length: 600 }, (_, i) => ({ key: `k${i}`, operator: "Exists" as const }));
  running.names.pod("web", { cpu: "2", spec: { tolerations } });
  await running.step();
  assert.match(reported(running, "web")?.summary ?? "", /^0\/1 nodes are available: 1 Insufficient cpu\.;/);
});

test("the outcome of the preemption is told in both texts, beside the details of the diagnosis", () => {
  const log = new DecisionLog({ component: "kube-scheduler", clock: newFakeClock() });
  const pod = aTestPod("web");
  const refusal = { code: "Unschedulable", reasons: ["no"], plugin: "NodePorts" } as const;
  new SchedulingDecisions(log).refused(pod, new FitError(1, new Map([["a", refusal]])), {
    diagnose: () => ({ summary: "of node a", plain: "of a node", details: { fitting: 0 } }),
    preemption: "no preemption took place",
    nextTryMs: () => undefined,
  });
  assert.partialDeepStrictEqual(log.of(objectRef(pods, pod))[0], {
    reason: "HostPortTaken",
    summary: "of node a; no preemption took place",
    plain: "of a node; no preemption took place",
    details: { fitting: 0, lastAttempt: "0/1 nodes are available: 1 no." },
  });
});

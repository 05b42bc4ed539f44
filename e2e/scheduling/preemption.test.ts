import assert from "node:assert/strict";
import { test } from "node:test";
import type { Event } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import {
  events,
  podDisruptionBudgets,
  pods,
  priorityClasses,
  serviceAccounts,
} from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { waitFor } from "../framework/wait-for.ts";
import { type SchedulingCluster, startScheduling } from "./scheduler-process.ts";

async function prepare({ server }: SchedulingCluster): Promise<void> {
  const { client } = server;
  for (const [name, value] of [
    ["low", 1],
    ["high", 100],
  ] as const) {
    const priorityClass = { apiVersion: "scheduling.k8s.io/v1", kind: "PriorityClass", metadata: { name }, value };
    await client.create(priorityClasses, priorityClass);
  }
  await client.create(serviceAccounts, {
    apiVersion: "v1",
    kind: "ServiceAccount",
    metadata: { name: "default", namespace: "default" },
  });
}

const isOn = (cluster: SchedulingCluster, pod: string, node: string) =>
  waitFor(`${pod} to be on ${node}`, async () => (await cluster.pod(pod)).spec.nodeName === node);

test("an important pod takes the place of lesser ones, least harm first, and waits until they are gone", async (t) => {
  const cluster = await startScheduling(t);
  const { client } = cluster.server;
  await prepare(cluster);
  await cluster.addNode("guarded", "2");
  await cluster.addPod("guarded", "2", { priorityClassName: "low" });
  await isOn(cluster, "guarded", "guarded");
  await client.patch(
    pods,
    { namespace: "default", name: "guarded" },
    { type: "merge", body: { metadata: { labels: { app: "g" } } } },
  );
  await client.create(podDisruptionBudgets, {
    apiVersion: "policy/v1",
    kind: "PodDisruptionBudget",
    metadata: { name: "guard", namespace: "default" },
    spec: { minAvailable: 1, selector: { matchLabels: { app: "g" } } },
  });
  await cluster.addNode("free", "2");
  await cluster.addPod("one", "1", { priorityClassName: "low" });
  await cluster.addPod("two", "1", { priorityClassName: "low" });
  await isOn(cluster, "one", "free");
  await isOn(cluster, "two", "free");

  await cluster.addPod("urgent", "1", { priorityClassName: "high" });
  const nominated = await waitFor("a nomination", async () => {
    const { status } = await cluster.pod("urgent");
    return status?.nominatedNodeName ? status : undefined;
  });
  assert.equal(nominated.nominatedNodeName, "free");
  const condition = nominated.conditions?.find(({ type }) => type === "PodScheduled");
  assert.equal(condition?.reason, "Unschedulable");
  assert.equal(condition?.message, "0/2 nodes are available: 2 Insufficient cpu.");

  const going = await waitFor("one victim to be going", async () => {
    const all = await Promise.all(["guarded", "one", "two"].map(cluster.pod));
    const marked = all.flatMap(({ metadata }) => (metadata.deletionTimestamp ? (metadata.name ?? "") : []));
    return marked.length > 0 ? marked : undefined;
  });
  assert.equal(going.length, 1);
  assert.notEqual(going[0], "guarded");
  const reported = await waitFor("an event for the victim", async () => {
    const { items } = await client.list<Event>(events, { namespace: "default" });
    return items.find(({ reason }) => reason === "Preempted");
  });
  assert.equal(reported.message, "Preempted by default/urgent on node free");
  assert.equal(reported.involvedObject.name, going[0]);

  // There is no kubelet: the test removes terminated pods.
  await client.delete(pods, { namespace: "default", name: going[0] ?? "" }, { gracePeriodSeconds: 0 });
  await isOn(cluster, "urgent", "free");
  assert.doesNotMatch(cluster.log(), /forbidden/i);
});

test("a pod with preemptionPolicy Never preempts no pod", async (t) => {
  const cluster = await startScheduling(t);
  await prepare(cluster);
  await cluster.addNode("a", "1");
  await cluster.addPod("low", "1", { priorityClassName: "low" });
  await isOn(cluster, "low", "a");
  await cluster.server.client.create(priorityClasses, {
    apiVersion: "scheduling.k8s.io/v1",
    kind: "PriorityClass",
    metadata: { name: "patient" },
    value: 1_000,
    preemptionPolicy: "Never",
  });
  await cluster.addPod("patient", "1", { priorityClassName: "patient" });
  await waitFor("a refusal", async () => (await cluster.pod("patient")).status?.conditions?.[0]?.reason === "Unschedulable");
  const { status } = await cluster.pod("patient");
  assert.equal(status?.nominatedNodeName, undefined);
  assert.equal((await cluster.pod("low")).metadata.deletionTimestamp, undefined);
});

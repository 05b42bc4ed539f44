import assert from "node:assert/strict";
import { test } from "node:test";
import type { Client } from "@coxswain/apimachinery/client/client";
import { isNotFound } from "@coxswain/apimachinery/objects/errors/predicates";
import { notFound, tooManyRequests } from "@coxswain/apimachinery/objects/errors/status-error";
import type { Pod } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { pods } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { drain, podsToEvict, setSchedulable } from "./drain.ts";

const pod = (
  name: string,
  controller: string | undefined,
  more: { phase?: string; annotations?: Record<string, string> } = {},
): Pod => ({
  metadata: {
    ...{ name, namespace: "default" },
    ...(more.annotations && { annotations: more.annotations }),
    ownerReferences:
      controller === undefined
        ? [{ apiVersion: "v1", kind: "Other", name: "o", uid: "o" }]
        : [{ apiVersion: "apps/v1", kind: controller, name: "c", uid: "c", controller: true }],
  },
  spec: { containers: [] },
  status: { phase: more.phase ?? "Running" },
});

test("only pods that a controller recreates elsewhere are evicted", () => {
  const found = [
    pod("web", "ReplicaSet"),
    pod("waiting", "StatefulSet", { phase: "Pending" }),
    pod("agent", "DaemonSet"),
    pod("static", "Node", { annotations: { "kubernetes.io/config.mirror": "x" } }),
    pod("done", undefined, { phase: "Succeeded" }),
    pod("failed", "Job", { phase: "Failed" }),
  ];
  assert.deepEqual(
    podsToEvict(found).map(({ metadata }) => metadata.name),
    ["web", "waiting"],
  );
  assert.deepEqual(podsToEvict([]), []);
});

test("the error names all pods without a controller; an owner that is not the controller does not count", () => {
  assert.throws(() => podsToEvict([pod("a", undefined), pod("web", "ReplicaSet"), pod("b", undefined)]), {
    message: /^pod default\/a has no controller.*\npod default\/b has no controller/,
    exitCode: 1,
  });
});

/** A cluster in which evictions of a pod are answered in turn by errors; an evicted pod is gone at the next list. */
function aCluster(found: readonly Pod[], refusals: Readonly<Record<string, readonly Error[]>> = {}) {
  const calls: string[] = [];
  const left = new Map(
    found.map((one) => [one.metadata.name ?? "", { ...one, metadata: { ...one.metadata, uid: one.metadata.name ?? "" } }]),
  );
  const tried: Record<string, number> = {};
  const client = {
    list: async ({ resource }: { resource: string }, target: object, { fieldSelector }: { fieldSelector: string }) => {
      calls.push(`list ${resource} ${JSON.stringify(target)} ${fieldSelector}`);
      return { items: [...left.values()] };
    },
    patch: async ({ resource }: { resource: string }, { name }: { name: string }, change: object) =>
      void calls.push(`patch ${resource} ${name} ${JSON.stringify(change)}`),
    create: async (
      { resource }: { resource: string },
      body: object,
      { name, subresource }: { name: string; subresource: string },
    ) => {
      calls.push(`create ${resource} ${name}/${subresource} ${JSON.stringify(body)}`);
      tried[name] = (tried[name] ?? 0) + 1;
      const refusal = refusals[name]?.[tried[name] - 1];
      if (refusal !== undefined) {
        if (isNotFound(refusal)) left.delete(name);
        throw refusal;
      }
      left.delete(name);
    },
  } as unknown as Client; // cast: nothing else is called
  return { client, calls };
}

const budget = tooManyRequests("Cannot evict pod as it would violate the pod's disruption budget.", 0);
const list = "list pods {} spec.nodeName=n1";
const evict = (name: string): string =>
  `create pods ${name}/eviction ${JSON.stringify({ apiVersion: "policy/v1", kind: "Eviction", metadata: { name, namespace: "default" } })}`;

test("a node is cordoned, its pods are evicted, and those that a budget keeps are asked for again", async () => {
  const { client, calls } = aCluster([pod("a", "ReplicaSet"), pod("agent", "DaemonSet"), pod("b", "ReplicaSet")], {
    a: [budget],
    b: [notFound(pods, "b")],
  });
  await drain({ client, nodeName: "n1", timeoutMs: 60_000 });
  const cordon = 'patch nodes n1 {"type":"merge","body":{"spec":{"unschedulable":true}}}';
  assert.deepEqual(calls, [list, cordon, list, evict("a"), evict("b"), list, evict("a"), list]);
});

test("an evicted pod that takes its time is not evicted again; after the limit those that remain are named", async () => {
  const all = [pod("slow", "ReplicaSet"), pod("kept", "ReplicaSet")];
  const evictions: string[] = [];
  const client = {
    list: async () => ({ items: all.map((one) => ({ ...one, metadata: { ...one.metadata, uid: one.metadata.name } })) }),
    patch: async () => {},
    create: async (_: object, __: object, { name }: { name: string }) => {
      evictions.push(name);
      if (name === "kept") throw budget;
    },
  } as unknown as Client; // cast: nothing else is called
  await assert.rejects(drain({ client, nodeName: "n1", timeoutMs: 500 }), {
    message: "waited 0.5s for the pods of n1 to end\nremaining: default/slow, default/kept (a PodDisruptionBudget keeps it)",
    exitCode: 1,
  });
  assert.deepEqual(evictions, ["slow", "kept", "kept"]);
});

test("a pod without a controller is an error before the node is cordoned, and one that comes later ends the wait", async () => {
  const first = aCluster([pod("alone", undefined)]);
  await assert.rejects(
    drain({ client: first.client, nodeName: "n1", timeoutMs: 60_000 }),
    /^Error: pod default\/alone has no controller/,
  );
  assert.deepEqual(first.calls, [list]);
  let lists = 0;
  const client = {
    list: async () => ({ items: ++lists === 1 ? [] : [pod("late", undefined)] }),
    patch: async () => {},
  } as unknown as Client; // cast: nothing else is called
  await assert.rejects(drain({ client, nodeName: "n1", timeoutMs: 60_000 }), /^Error: pod default\/late has no controller/);
  assert.equal(lists, 2);
});

test("an eviction that fails otherwise is tried again until the limit, and its reason is told", async () => {
  const { client } = aCluster([pod("a", "ReplicaSet")], { a: Array.from({ length: 9 }, () => new Error("etcd is away")) });
  await assert.rejects(drain({ client, nodeName: "n1", timeoutMs: 1 }), {
    message: "waited 0.001s for the pods of n1 to end: etcd is away\nremaining: default/a",
  });
});

test("a node becomes schedulable again by the removal of the field", async () => {
  const { client, calls } = aCluster([]);
  await setSchedulable(client, "n1", true);
  assert.deepEqual(calls, ['patch nodes n1 {"type":"merge","body":{"spec":{"unschedulable":null}}}']);
});

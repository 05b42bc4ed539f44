/** Pods with as many tolerations, terms, constraints or ports as a request allows: no event-loop turn of a cycle exceeds 100 ms, with threefold slack. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Node, PodSpec } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import {
  persistentVolumeClaims,
  persistentVolumes,
  podDisruptionBudgets,
  pods as podsRef,
  storageClasses,
} from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { newFakeClock } from "@coxswain/apimachinery/process/clock/fake-clock";
import { Turns } from "@coxswain/apimachinery/process/event-loop/turns";
import { discardLogger } from "@coxswain/apimachinery/process/logging/logger";
import { cpuMsOf, leastOf, longestTurnOf } from "@coxswain/apimachinery/testing/cpu-time";
import { ClusterCache } from "./cache/cluster-cache.ts";
import { newPodInfo } from "./cache/node-info.ts";
import type { CycleState } from "./framework/cycle-state.ts";
import { FitError } from "./framework/status.ts";
import { runPreFilter } from "./profile.ts";
import { type QueuedPod, SchedulingQueue } from "./queue/scheduling-queue.ts";
import { aTestNode, aTestPod, newTestCluster } from "./testing/test-cluster.ts";

const longestTurnMs = 300;
const many = <T>(count: number, item: (at: number) => T): T[] => Array.from({ length: count }, (_, at) => item(at));
const nodes: Node[] = many(200, (at) =>
  aTestNode(`n${at}`, {
    labels: { zone: `z${at % 3}` },
    spec: { taints: [{ key: "dedicated", value: "x", effect: "NoSchedule" }] },
  }),
);
const pods = many(nodes.length, (at) => aTestPod(`a${at}`, { on: `n${at}`, labels: { app: "web" } }));
const tolerations = [{ key: "dedicated", operator: "Exists" as const }];
const labelSelector = (at: number) => ({ matchLabels: { [`k${at}`]: "v" } });

const cases: Readonly<Record<string, Partial<PodSpec>>> = {
  "50,000 tolerations": {
    tolerations: [...many(50_000, (at) => ({ key: `k${at}`, operator: "Exists" as const })), ...tolerations],
  },
  "50,000 labels of nodes": { nodeSelector: Object.fromEntries(many(50_000, (at) => [`k${at}`, "v"])) },
  "20,000 terms of node affinity": {
    affinity: {
      nodeAffinity: {
        requiredDuringSchedulingIgnoredDuringExecution: {
          nodeSelectorTerms: many(20_000, (at) => ({ matchExpressions: [{ key: `k${at}`, operator: "Exists" as const }] })),
        },
      },
    },
  },
  "10,000 spread constraints": {
    topologySpreadConstraints: many(10_000, (at) => ({
      ...{ maxSkew: 1, topologyKey: at === 0 ? "zone" : `t${at}`, whenUnsatisfiable: "ScheduleAnyway" as const },
      labelSelector: labelSelector(at),
    })),
  },
  "10,000 terms of pod affinity": {
    affinity: {
      podAffinity: {
        preferredDuringSchedulingIgnoredDuringExecution: many(10_000, (at) => ({
          ...{ weight: 1, podAffinityTerm: { topologyKey: "zone", labelSelector: labelSelector(at) } },
        })),
      },
    },
  },
  "10,000 ports of the host": {
    containers: [{ name: "c", image: "i", ports: many(10_000, (at) => ({ containerPort: at + 1, hostPort: at + 1 })) }],
  },
};

for (const [name, spec] of Object.entries(cases)) {
  test(`a pod of ${name} is decided upon without a long turn`, async (t) => {
    const cluster = newTestCluster({ nodes, pods, turns: new Turns() });
    const longest = await longestTurnOf(longestTurnMs, async (round) => {
      await cluster.place(aTestPod(`large${round}`, { spec: { tolerations, ...spec }, cpu: "10m" }));
    });
    t.diagnostic(`${longest} ms`);
    assert.ok(longest < longestTurnMs, `a turn of ${longest} ms`);
  });
}

test("50,000 pods that wait are moved on by one event in a short turn", async (t) => {
  const mayHelp = () => true;
  const compare = () => 0;
  const longest = await leastOf(longestTurnMs, async () => {
    const queue = new SchedulingQueue({ clock: newFakeClock(), log: discardLogger, compare, mayHelp });
    for (let at = 0; at < 50_000; at++) {
      queue.add(aTestPod(`p${at}`));
      queue.addUnschedulable((await queue.pop()) as QueuedPod, queue.cycle);
    }
    return cpuMsOf(() => queue.wakeUp("Pod/Delete"));
  });
  t.diagnostic(`${longest} ms`);
  assert.ok(longest < longestTurnMs, `${longest} ms`);
});

test("10,000 pods with anti-affinity on one node that does not exist are counted and forgotten in linear time", async (t) => {
  const anti = { topologyKey: "zone", labelSelector: {} };
  const affinity = { podAntiAffinity: { requiredDuringSchedulingIgnoredDuringExecution: [anti] } };
  const preferred = {
    podAntiAffinity: { preferredDuringSchedulingIgnoredDuringExecution: [{ weight: 1, podAffinityTerm: anti }] },
  };
  const longest = await leastOf(longestTurnMs, async () => {
    const cache = new ClusterCache(newFakeClock());
    const all = many(10_000, (at) => aTestPod(`g${at}`, { on: "gone", spec: { affinity: at % 2 === 0 ? preferred : affinity } }));
    const ms = cpuMsOf(() => {
      for (const pod of all) cache.setPod(pod);
      assert.equal(cache.snapshot().hasRequiredAntiAffinity(), true);
      for (const pod of all) if (pod.spec.affinity === affinity) cache.removePod(pod);
      assert.equal(cache.snapshot().hasRequiredAntiAffinity(), false);
      assert.equal(cache.snapshot().hasAffinity(), true);
      for (const pod of all) cache.removePod(pod);
      assert.equal(cache.snapshot().hasAffinity(), false);
    });
    return ms;
  });
  t.diagnostic(`${longest} ms`);
  assert.ok(longest < longestTurnMs, `${longest} ms`);
});

test("a pod of 20,000 terms of node affinity is compared with those of its terms that name a node's labels", async () => {
  const nodes = many(1_000, (at) => aTestNode(`n${at}`, { labels: { rack: `r${at}` } }));
  const cluster = newTestCluster({ nodes });
  const affinity = {
    nodeAffinity: {
      requiredDuringSchedulingIgnoredDuringExecution: {
        nodeSelectorTerms: many(20_000, (at) => ({
          matchExpressions: [{ key: "rack", operator: "In" as const, values: [`r${at + 999}`, `s${at}`] }],
        })),
      },
    },
  };
  const before = process.threadCpuUsage();
  assert.equal(await cluster.place(aTestPod("x", { spec: { affinity } })), "n999");
  const { user } = process.threadCpuUsage(before);
  assert.ok(user < 1_000_000, `${user / 1000} ms`); // 20 million comparisons take 2 s and more
});

test("pods of 5,000 disks of four monitors each are compared without a long turn", async (t) => {
  const disks = (name: string) =>
    many(5_000, (at) => ({ name: `v${at}`, rbd: { monitors: ["a", "b", "c", "d"].map((one) => one + at), image: name } }));
  const placed = many(3, (at) => aTestPod(`r${at}`, { on: "n0", spec: { volumes: disks(`i${at}`) } }));
  const cluster = newTestCluster({ nodes: [aTestNode("n0")], pods: placed, turns: new Turns() });
  const longest = await longestTurnOf(longestTurnMs, async (round) => {
    assert.equal(await cluster.place(aTestPod(`large${round}`, { spec: { volumes: disks("own") } })), "n0");
  });
  t.diagnostic(`${longest} ms`);
  assert.ok(longest < longestTurnMs, `a turn of ${longest} ms`);
});

for (const { name, claims, bound } of [
  { name: "10,000 volumes of one claim that waits", claims: 1, bound: false },
  { name: "500 claims that wait", claims: 500, bound: false },
  { name: "1,000 claims that are bound", claims: 1_000, bound: true },
])
  test(`a pod of ${name} is decided upon without a long turn, beside 2,000 volumes`, async (t) => {
    const spec = { storageClassName: "local", accessModes: ["ReadWriteOnce"] };
    const volumes = many(2_000, (at) => ({
      metadata: { name: `pv${at}` },
      spec: { ...spec, capacity: { storage: `${(at % 50) + 1}Gi` }, nodeAffinity: onNode(bound ? 0 : at % nodes.length) },
      status: { phase: bound ? "Bound" : "Available" },
    }));
    const annotations: Record<string, string> = bound ? { "pv.kubernetes.io/bind-completed": "yes" } : {};
    const claimed = many(claims, (at) => ({
      metadata: { name: `c${at}`, namespace: "default", annotations },
      spec: { ...spec, resources: { requests: { storage: "1Gi" } }, ...(bound && { volumeName: `pv${at}` }) },
    }));
    const storageClass = { metadata: { name: "local" }, provisioner: "p", volumeBindingMode: "WaitForFirstConsumer" };
    const objects = [
      ...volumes.map((one) => [persistentVolumes, one] as const),
      ...claimed.map((one) => [persistentVolumeClaims, one] as const),
      [storageClasses, storageClass] as const,
    ];
    const cluster = newTestCluster({ nodes: nodes.slice(0, 20), objects, turns: new Turns() });
    const uses = many(claims === 1 ? 10_000 : claims, (at) => ({
      name: `v${at}`,
      persistentVolumeClaim: { claimName: `c${at % claims}` },
    }));
    const longest = await longestTurnOf(longestTurnMs, async (round) => {
      assert.match(await cluster.place(aTestPod(`large${round}`, { spec: { tolerations, volumes: uses } })), /^n\d+$/);
    });
    t.diagnostic(`${longest} ms`);
    assert.ok(longest < longestTurnMs, `a turn of ${longest} ms`);
  });

/** Node affinity to one node by its zone. */
function onNode(at: number) {
  const values = [`z${at % 3}`];
  return { required: { nodeSelectorTerms: [{ matchExpressions: [{ key: "zone", operator: "In" as const, values }] }] } };
}

test("preemption on 1,000 nodes, each with 40 pods of a disruption budget, takes no long turn", async (t) => {
  const nodes = many(1_000, (at) => aTestNode(`n${at}`, { cpu: "4" }));
  const placed = nodes.flatMap((_, node) =>
    many(40, (at) => aTestPod(`p${node}-${at}`, { on: `n${node}`, cpu: "100m", labels: { app: "web" } })),
  );
  const budget = {
    metadata: { name: "b", namespace: "default" },
    spec: { selector: { matchLabels: { app: "web" } } },
    status: { disruptionsAllowed: 0 },
  };
  const urgent = aTestPod("urgent", { cpu: "4", priority: 10 });
  const objects = [[podsRef, urgent] as const, [podDisruptionBudgets, budget] as const];
  const cluster = newTestCluster({ nodes, pods: placed, objects, turns: new Turns() });
  const snapshot = cluster.snapshot();
  const refusal = await cluster.decide(urgent).catch((err: unknown) => err);
  assert.ok(refusal instanceof FitError);
  const longest = await longestTurnOf(longestTurnMs, async () => {
    const state: CycleState = new Map();
    runPreFilter(cluster.profile, state, newPodInfo(urgent), snapshot);
    const [preemption] = cluster.profile.at.postFilter;
    const found = await preemption?.postFilter?.(state, newPodInfo(urgent), refusal.statuses, snapshot);
    assert.ok(found?.nominatedNode);
  });
  t.diagnostic(`${longest} ms`);
  assert.ok(longest < longestTurnMs, `a turn of ${longest} ms`);
});

import assert from "node:assert/strict";
import { tmpdir } from "node:os";
import { test } from "node:test";
import type { NodePod } from "../pod/pod.ts";
import { type ContainerRuntime, sandboxState } from "../runtime/runtime.ts";
import { resourceMetrics } from "./metrics.ts";
import { newCpuSampler, summary } from "./stats.ts";

const statOf = (uid: string, name: string, cpu: number, { timestamp = 5e9, writable = 0 } = {}) => ({
  attributes: {
    id: `${uid}-${name}`,
    labels: {
      "io.kubernetes.pod.uid": uid,
      "io.kubernetes.pod.name": uid,
      "io.kubernetes.pod.namespace": "default",
      "io.kubernetes.container.name": name,
    },
  },
  cpu: { timestamp, usageCoreNanoSeconds: { value: cpu } },
  memory: { timestamp, workingSetBytes: { value: cpu * 10 } },
  writableLayer: { timestamp, usedBytes: { value: writable }, inodesUsed: { value: 1 } },
});
const podOf = (uid: string, volumes: object[] = []): NodePod =>
  ({ metadata: { name: uid, namespace: "default", uid }, spec: { containers: [], volumes } }) as unknown as NodePod;

/** @param sandboxes Pod-level statistics; undefined: the runtime is queried for containers only */
function summaryOf(
  pods: readonly NodePod[],
  containers: readonly object[],
  volumes: readonly string[] = [],
  sandboxes?: object[],
) {
  const runtime = {
    listContainerStats: async () => containers,
    listContainers: async () => [{ id: "a-one", createdAt: 3_500_000_000 }],
    listPodSandboxStats: async () => sandboxes,
    listPodSandboxes: async () => ["gone", "a"].map((id) => ({ id, state: sandboxState.ready })),
  } as unknown as ContainerRuntime;
  const usageOf = (name: string) => ({ name, at: 0, usedBytes: 100, inodesUsed: 10 });
  return summary(
    {
      ...{ runtime, nodeName: "n", rootDir: tmpdir(), startedAt: 0, now: () => 0, ofSandboxes: sandboxes !== undefined },
      pods: () => pods,
      volumes: () => volumes.map(usageOf) as never,
    },
    newCpuSampler(),
  );
}

test("a pod's usage is the sum of its containers'", async () => {
  const { pods } = await summaryOf([podOf("a")], [statOf("a", "one", 3), statOf("a", "two", 4)]);
  assert.deepEqual(
    pods.map(({ cpu, memory, containers }) => [cpu.usageCoreNanoSeconds, memory.workingSetBytes, containers.length]),
    [[7, 70, 2]],
  );
});

test("a container started when the runtime created it", async () => {
  const stats = await summaryOf([podOf("a")], [statOf("a", "one", 3), statOf("a", "gone", 4)]);
  assert.deepEqual(
    stats.pods[0]?.containers.map(({ startTime }) => Date.parse(startTime)),
    [3_000, 5_000], // whole seconds; of a container that is no longer listed, the time of its statistics
  );
  const lines = resourceMetrics(stats).split("\n");
  assert.ok(lines.includes('container_start_time_seconds{container="one",namespace="default",pod="a"} 3 3000'));
});

test("pods that are not of the node and containers that do not run yet are not in the summary", async () => {
  const containers = [statOf("gone", "one", 3), statOf("a", "one", 4), statOf("a", "waiting", 5, { timestamp: 0 })];
  const { pods } = await summaryOf([podOf("a"), podOf("idle")], containers);
  assert.deepEqual(
    pods.map(({ podRef, containers }) => [podRef.uid, containers.map(({ name }) => name)]),
    [["a", ["one"]]],
  );
});

test("sandboxes of pods that are not of the node are not in the summary", async () => {
  const sandbox = (uid: string) => ({
    attributes: { id: uid, metadata: { uid, name: uid, namespace: "default" } },
    linux: { containers: [] },
  });
  const { pods } = await summaryOf([podOf("a")], [], [], [sandbox("gone"), sandbox("a")]);
  assert.deepEqual(
    pods.map(({ podRef }) => podRef.uid),
    ["a"],
  );
});

test("ephemeral storage counts writable layers and volumes on the node's disk", async () => {
  const volumes = [
    { name: "disk", emptyDir: {} },
    { name: "memory", emptyDir: { medium: "Memory" } },
    { name: "claimed", persistentVolumeClaim: { claimName: "c" } },
    { name: "config", configMap: { name: "c" } },
  ];
  const containers = [statOf("a", "one", 0, { writable: 7 }), statOf("a", "two", 0, { writable: 8 })];
  const { pods } = await summaryOf([podOf("a", volumes)], containers, ["disk", "memory", "claimed", "config"]);
  const { usedBytes, inodesUsed } = pods[0]?.["ephemeral-storage"] ?? {};
  assert.deepEqual([usedBytes, inodesUsed], [215, 22]);
  assert.deepEqual(
    pods[0]?.volume?.map(({ name, pvcRef }) => [name, pvcRef?.name]),
    [
      ["disk", undefined],
      ["memory", undefined],
      ["claimed", "c"],
      ["config", undefined],
    ],
  );
});

test("rates are between the samples of one container, at least a second apart, and never negative", () => {
  const { rate } = newCpuSampler();
  const second = 1e9;
  assert.deepEqual(
    [
      rate("a", 0, second),
      rate("a", 4 * second, 3 * second),
      rate("b", 9 * second, 3 * second),
      rate("a", 9 * second, 3.9 * second), // less than a second later: the rate measured last
      rate("a", 5 * second, 4 * second), // since the last sample, not the first
      rate("a", 0, 6 * second), // the counter was reset
      rate("a", 2 * second, 7 * second),
    ],
    [0, 2 * second, 0, 2 * second, second, 0, 2 * second],
  );
});

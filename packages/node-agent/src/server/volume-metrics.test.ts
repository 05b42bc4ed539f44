import assert from "node:assert/strict";
import { test } from "node:test";
import { newMetricsRegistry } from "@coxswain/apimachinery/process/metrics/registry";
import { aNodePod } from "../testing/builders.ts";
import type { VolumeUsage } from "../volumes/volume-usage.ts";
import { newVolumeMetrics } from "./volume-metrics.ts";

test("usage of claims' volumes is reported by claim until their pod is removed", async () => {
  const registry = newMetricsRegistry();
  const usage = (name: string): VolumeUsage => ({
    name,
    at: 0,
    capacityBytes: 1000,
    availableBytes: 700,
    usedBytes: 300,
    inodes: 10,
    inodesFree: 7,
    inodesUsed: 3,
  });
  const volumes = [
    { name: "data", persistentVolumeClaim: { claimName: "disk" } },
    { name: "own", ephemeral: {} },
    { name: "scratch", emptyDir: {} },
  ];
  let pods = [aNodePod({ volumes })];
  const names = volumes.map(({ name }) => usage(name));
  newVolumeMetrics(registry, { pods: () => pods, usages: { of: () => names } });
  const shown = async (): Promise<string[]> =>
    (await registry.render()).split("\n").filter((line) => line.startsWith("kubelet_volume_stats_"));
  const expected = Object.entries({
    kubelet_volume_stats_capacity_bytes: 1000,
    kubelet_volume_stats_available_bytes: 700,
    kubelet_volume_stats_used_bytes: 300,
    kubelet_volume_stats_inodes: 10,
    kubelet_volume_stats_inodes_free: 7,
    kubelet_volume_stats_inodes_used: 3,
  }).flatMap(([name, value]) =>
    ["disk", "web-own"].map((claim) => `${name}{namespace="default",persistentvolumeclaim="${claim}"} ${value}`),
  );
  assert.deepEqual((await shown()).toSorted(), expected.toSorted());
  pods = [];
  assert.deepEqual(await shown(), []);
});

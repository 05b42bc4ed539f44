import assert from "node:assert/strict";
import { test } from "node:test";
import { newMetricsRegistry } from "@coxswain/apimachinery/process/metrics/registry";
import { newMirrorMetrics } from "./metrics.ts";

test("each count of a plan has its histogram, and a sync is measured in seconds", async () => {
  const registry = newMetricsRegistry();
  const { synced, planned } = newMirrorMetrics(registry, 2);
  synced(1_500);
  const groups = [{ endpoints: 3, slices: 1 }];
  planned("default/web", {
    create: [],
    update: [],
    delete: [],
    invalid: 0,
    skipped: 7,
    added: 4,
    updated: 5,
    removed: 6,
    groups,
  });
  const text = await registry.render();
  for (const line of [
    "endpoints_sync_duration_sum 1.5",
    "endpoints_added_per_sync_sum 4",
    "endpoints_updated_per_sync_sum 5",
    "endpoints_removed_per_sync_sum 6",
    "addresses_skipped_per_sync_sum 7",
    "endpoints_desired 3",
    "num_endpoint_slices 1",
    "desired_endpoint_slices 2",
  ])
    assert.ok(text.includes(`\nendpoint_slice_mirroring_controller_${line}\n`), line);
});

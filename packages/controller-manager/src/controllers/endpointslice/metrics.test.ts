import assert from "node:assert/strict";
import { test } from "node:test";
import { newMetricsRegistry } from "@coxswain/apimachinery/process/metrics/registry";
import { aService } from "@coxswain/apimachinery/testing/builders";
import { newSlice } from "./labels.ts";
import { newEndpointSliceMetrics } from "./metrics.ts";

test("slices that are created, updated and deleted count as changed, by whether hints are on", async () => {
  const registry = newMetricsRegistry();
  const { written, synced, changed } = newEndpointSliceMetrics(registry, 100);
  const slices = (count: number) => Array.from({ length: count }, () => newSlice(aService(), "IPv4", []));
  written({ create: slices(1), update: slices(2), delete: slices(4) }, false);
  written({ create: slices(1), update: [], delete: [] }, true);
  for (const result of ["success", "stale", "stale"] as const) synced(result);
  changed("delete");
  const text = await registry.render();
  for (const line of [
    'endpointslices_changed_per_sync_sum{topology="Disabled"} 7',
    'endpointslices_changed_per_sync_sum{topology="Auto"} 1',
    'syncs{result="success"} 1',
    'syncs{result="stale"} 2',
    'changes{operation="delete"} 1',
  ])
    assert.ok(text.includes(`\nendpoint_slice_controller_${line}\n`), line);
});

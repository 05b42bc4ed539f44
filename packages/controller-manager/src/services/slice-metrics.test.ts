import assert from "node:assert/strict";
import { test } from "node:test";
import { newMetricsRegistry } from "@coxswain/apimachinery/process/metrics/registry";
import { newSliceMetrics } from "./slice-metrics.ts";

test("the gauges are the sums over all Services, without those that are forgotten", () => {
  const registry = newMetricsRegistry();
  const metrics = newSliceMetrics(registry, "test", 100);
  const gauges = () =>
    ["endpoints_desired", "num_endpoint_slices", "desired_endpoint_slices"].map(
      (name) => registry.gauge({ name: `test_${name}`, help: "" }).value,
    );
  const group = (endpoints: number, slices: number) => ({ endpoints, slices });
  metrics.count("default/a", [group(1, 2), group(101, 3)]);
  assert.deepEqual(gauges(), [102, 5, 3], "each group has slices of its own");
  metrics.count("default/b", [group(10, 1)]);
  metrics.count("default/a", [group(100, 1)]);
  assert.deepEqual(gauges(), [110, 2, 2]);
  metrics.forget("default/a");
  metrics.forget("default/a");
  assert.deepEqual(gauges(), [10, 1, 1]);
  metrics.count("default/a", [group(5, 1)]);
  assert.deepEqual(gauges(), [15, 2, 2]);
});

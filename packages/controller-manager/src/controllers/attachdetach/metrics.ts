import type { Counter, Gauge, MetricsRegistry } from "@coxswain/apimachinery/process/metrics/registry";
import type { VolumeId } from "@coxswain/apimachinery/volumes/volume-id";
import type { DesiredVolumes } from "./desired-volumes.ts";
import { pluginOf } from "./volume.ts";

/**
 * Registers gauges of desired and actual attachments, computed on each scrape.
 * @param attached ids of attached volumes, one for each node
 * @returns counter of forced detaches
 * Source: pkg/controller/volume/attachdetach/metrics
 */
export function attachMetrics(registry: MetricsRegistry, desired: DesiredVolumes, attached: () => Iterable<VolumeId>): Counter {
  registry.gauge({
    name: "storage_count_attachable_volumes_in_use",
    help: "Measure number of volumes in use",
    labels: ["node", "volume_plugin"],
    collect(gauge) {
      gauge.reset();
      for (const id of desired.ids())
        for (const [node, { pods }] of desired.of(id)) gauge.labels(node, pluginOf(id)).inc(pods.size);
    },
  });
  registry.gauge({
    name: "attachdetach_controller_total_volumes",
    help: "Number of volumes in A/D Controller",
    labels: ["plugin_name", "state"],
    collect(gauge) {
      gauge.reset();
      for (const id of desired.ids())
        for (const _ of desired.of(id).values()) gauge.labels(pluginOf(id), "desired_state_of_world").inc();
      for (const id of attached()) countAttached(gauge, id);
    },
  });
  return registry.counter({
    name: "attachdetach_controller_forced_detaches",
    help: "Number of times the A/D Controller performed a forced detach",
  });
}

function countAttached(gauge: Gauge, id: VolumeId): void {
  gauge.labels(pluginOf(id), "actual_state_of_world").inc();
}

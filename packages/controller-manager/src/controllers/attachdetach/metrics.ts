import type { Counter, Gauge, MetricsRegistry } from "@coxswain/apimachinery/process/metrics/registry";
import type { VolumeId } from "@coxswain/apimachinery/volumes/volume-id";
import definitions from "../../metrics.json" with { type: "json" };
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
    ...definitions.storage_count_attachable_volumes_in_use,
    collect(gauge) {
      gauge.reset();
      for (const id of desired.ids())
        for (const [node, { pods }] of desired.of(id)) gauge.labels(node, pluginOf(id)).inc(pods.size);
    },
  });
  registry.gauge({
    ...definitions.attachdetach_controller_total_volumes,
    collect(gauge) {
      gauge.reset();
      for (const id of desired.ids())
        for (const _ of desired.of(id).values()) gauge.labels(pluginOf(id), "desired_state_of_world").inc();
      for (const id of attached()) countAttached(gauge, id);
    },
  });
  return registry.counter(definitions.attachdetach_controller_forced_detaches);
}

function countAttached(gauge: Gauge, id: VolumeId): void {
  gauge.labels(pluginOf(id), "actual_state_of_world").inc();
}

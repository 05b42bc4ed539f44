import type { MetricsRegistry } from "@coxswain/apimachinery/process/metrics/registry";
import definitions from "../metrics.json" with { type: "json" };
import type { PluginRegistry } from "./plugin-registry.ts";

/** Registers the numbers of plugins: those with a socket, and the registered ones. */
export function countPlugins(metrics: MetricsRegistry, plugins: Pick<PluginRegistry, "sockets">): void {
  metrics.gauge({
    ...definitions.plugin_manager_total_plugins,
    collect(gauge) {
      gauge.reset();
      const { present, registered } = plugins.sockets();
      for (const socket of registered) gauge.labels(socket, "actual_state_of_world").set(1);
      for (const socket of present) gauge.labels(socket, "desired_state_of_world").set(1);
    },
  });
}

/**
 * Runs the plugins in upstream's order: all that change the object, then, after the strategy's validation, all that
 * only look. The first refusal ends it.
 * Source: k8s.io/apiserver pkg/admission/chain.go
 */
import type { MetricsRegistry } from "@coxswain/apimachinery/metrics/registry";
import type { AdmissionAttributes, AdmissionChain, AdmissionPlugin } from "./plugin.ts";

const buckets = [0.005, 0.025, 0.1, 0.5, 1, 2.5];
const labels = ["name", "type", "operation", "rejected"];

export function newAdmissionChain(plugins: readonly AdmissionPlugin[], metrics: MetricsRegistry): AdmissionChain {
  const duration = metrics.histogram({
    name: "apiserver_admission_controller_admission_duration_seconds",
    help: "Admission controller latency histogram in seconds, identified by name and broken out for each operation and API resource and type (validate or admit).",
    labels,
    buckets,
  });
  const step = async (plugin: AdmissionPlugin, type: "admit" | "validate", attributes: AdmissionAttributes): Promise<void> => {
    const startedAt = performance.now();
    let rejected = "true";
    try {
      await plugin[type]?.(attributes);
      rejected = "false";
    } finally {
      duration.labels(plugin.name, type, attributes.operation, rejected).observe((performance.now() - startedAt) / 1000);
    }
  };
  return {
    async mutate(attributes) {
      for (const plugin of plugins) {
        if (plugin.admit !== undefined && plugin.handles(attributes.operation)) await step(plugin, "admit", attributes);
      }
    },
    async validate(attributes) {
      for (const plugin of plugins) {
        if (plugin.validate !== undefined && plugin.handles(attributes.operation)) await step(plugin, "validate", attributes);
      }
    },
  };
}

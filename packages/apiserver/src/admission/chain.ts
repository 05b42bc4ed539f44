/**
 * Runs the admission plugins in order: first all mutating plugins, then, after the strategy's validation, all validating
 * plugins. The first rejection ends the chain.
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
  type Duration = ReturnType<typeof duration.labels>;
  /** Metric children are cached per plugin and operation because every write observes them. */
  const stepsOf = (type: Step) =>
    plugins.filter((plugin) => plugin[type] !== undefined).map((plugin) => ({ plugin, passed: new Map<string, Duration>() }));

  async function run(steps: ReturnType<typeof stepsOf>, type: Step, attributes: AdmissionAttributes): Promise<void> {
    const { operation } = attributes;
    for (const { plugin, passed } of steps) {
      if (!plugin.handles(operation)) continue;
      const startedAt = performance.now();
      let taken = passed.get(operation);
      try {
        await plugin[type]?.(attributes);
        if (taken === undefined) {
          taken = duration.labels(plugin.name, type, operation, "false");
          passed.set(operation, taken);
        }
      } catch (err) {
        taken = duration.labels(plugin.name, type, operation, "true");
        throw err;
      } finally {
        taken?.observe((performance.now() - startedAt) / 1000);
      }
    }
  }

  const admitting = stepsOf("admit");
  const validating = stepsOf("validate");
  return {
    mutate: (attributes) => run(admitting, "admit", attributes),
    validate: (attributes) => run(validating, "validate", attributes),
  };
}

type Step = "admit" | "validate";

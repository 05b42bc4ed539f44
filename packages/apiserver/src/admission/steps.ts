/**
 * Wraps the chain with metrics of its two steps and with reinvocation: when a plugin requests another round, the mutating
 * plugins run once more, because those before it have not seen the changes of its webhooks.
 * Source: k8s.io/apiserver pkg/admission/{reinvocation.go,metrics/metrics.go}
 */
import type { MetricsRegistry } from "@coxswain/apimachinery/metrics/registry";
import type { AdmissionAttributes, AdmissionChain } from "./plugin.ts";

export function withSteps(chain: AdmissionChain, metrics: MetricsRegistry): AdmissionChain {
  const duration = metrics.histogram({
    name: "apiserver_admission_step_admission_duration_seconds",
    help: "Admission sub-step latency histogram in seconds, broken out for each operation and API resource and step type (validate or admit).",
    labels: ["type", "operation", "rejected"],
    buckets: [0.005, 0.025, 0.1, 0.5, 1, 2.5],
    stability: "STABLE",
  });
  const step = async (type: string, { operation }: AdmissionAttributes, run: () => Promise<void>): Promise<void> => {
    const startedAt = performance.now();
    let rejected = "true";
    try {
      await run();
      rejected = "false";
    } finally {
      duration.labels(type, operation, rejected).observe((performance.now() - startedAt) / 1000);
    }
  };
  const inRounds = async (attributes: AdmissionAttributes): Promise<void> => {
    await chain.mutate(attributes);
    if (attributes.wantsAnotherRound !== true) return;
    attributes.round = 1;
    await chain.mutate(attributes);
  };
  return {
    mutate: (attributes) => step("admit", attributes, () => inRounds(attributes)),
    validate: (attributes) => step("validate", attributes, () => chain.validate(attributes)),
  };
}

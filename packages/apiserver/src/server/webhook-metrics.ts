/** Source: k8s.io/apiserver pkg/admission/metrics/metrics.go */
import type { MetricsRegistry } from "@coxswain/apimachinery/metrics/registry";
import type { WebhookMetrics } from "../admission/catalogue.ts";

export function newWebhookMetrics(registry: MetricsRegistry): WebhookMetrics {
  const duration = registry.histogram({
    name: "apiserver_admission_webhook_admission_duration_seconds",
    help: "Admission webhook latency histogram in seconds, identified by name and broken out for each operation and API resource and type (validate or admit).",
    labels: ["name", "type", "operation", "rejected"],
    buckets: [0.005, 0.025, 0.1, 0.5, 1, 2.5, 10, 25],
    stability: "STABLE",
  });
  const rejections = registry.counter({
    name: "apiserver_admission_webhook_rejection_count",
    help: "Admission webhook rejection count, identified by name and broken out for each admission type (validating or admit) and operation.",
    labels: ["name", "type", "operation", "error_type", "rejection_code"],
  });
  return {
    called: (name, type, operation, seconds) => duration.labels(name, type, operation, "false").observe(seconds),
    rejected: (name, type, operation) => rejections.labels(name, type, operation, "no_error", "400").inc(),
  };
}

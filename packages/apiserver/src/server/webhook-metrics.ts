/** Source: k8s.io/apiserver pkg/admission/metrics/metrics.go */
import type { MetricsRegistry } from "@coxswain/apimachinery/process/metrics/registry";
import type { WebhookMetrics } from "../admission/plugin-context.ts";

/** Bounds the number of series, since webhooks choose the codes. */
const highestCode = 600;

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
    help: "Admission webhook rejection count, identified by name and broken out for each admission type (validating or admit) and operation. Additional labels specify an error type (calling_webhook_error or apiserver_internal_error if an error occurred; no_error otherwise) and optionally a non-zero rejection code if the webhook rejects the request with an HTTP status code (honored by the apiserver when the code is greater or equal to 400). Codes greater than 600 are truncated to 600, to keep the metrics cardinality bounded.",
    labels: ["name", "type", "operation", "error_type", "rejection_code"],
  });
  const requests = registry.counter({
    name: "apiserver_admission_webhook_request_total",
    help: "Admission webhook request total, identified by name and broken out for each admission type (validating or mutating) and operation. Additional labels specify whether the request was rejected or not and an HTTP status code. Codes greater than 600 are truncated to 600, to keep the metrics cardinality bounded.",
    labels: ["name", "type", "operation", "code", "rejected"],
  });
  const codeText = (code: number): string => String(Math.min(code, highestCode));
  return {
    called(name, type, operation, { seconds, code, rejected }) {
      requests.labels(name, type, operation, codeText(code), String(rejected)).inc();
      duration.labels(name, type, operation, String(rejected)).observe(seconds);
    },
    rejected: (name, type, operation, errorType, code) =>
      rejections.labels(name, type, operation, errorType, codeText(code)).inc(),
  };
}

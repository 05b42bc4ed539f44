/** Source: k8s.io/apiserver pkg/admission/metrics/metrics.go */
import type { MetricsRegistry } from "@coxswain/apimachinery/process/metrics/registry";
import type { WebhookMetrics } from "../admission/plugin-context.ts";
import definitions from "../metrics.json" with { type: "json" };

/** Bounds the number of series, since webhooks choose the codes. */
const highestCode = 600;

export function newWebhookMetrics(registry: MetricsRegistry): WebhookMetrics {
  const duration = registry.histogram(definitions.apiserver_admission_webhook_admission_duration_seconds);
  const rejections = registry.counter(definitions.apiserver_admission_webhook_rejection_count);
  const requests = registry.counter(definitions.apiserver_admission_webhook_request_total);
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

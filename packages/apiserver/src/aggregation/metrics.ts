/** Source: kube-aggregator pkg/controllers/status/metrics.go, pkg/controllers/openapi/aggregator/metrics.go */
import type { MetricsRegistry } from "@coxswain/apimachinery/process/metrics/registry";

export type AggregatorMetrics = ReturnType<typeof newAggregatorMetrics>;

export function newAggregatorMetrics(registry: MetricsRegistry) {
  return {
    unavailable: registry.gauge({
      name: "aggregator_unavailable_apiservice",
      help: "Gauge of APIServices which are marked as unavailable broken down by APIService name.",
      labels: ["name"],
    }),
    becameUnavailable: registry.counter({
      name: "aggregator_unavailable_apiservice_total",
      help: "Counter of APIServices which are marked as unavailable broken down by APIService name and reason.",
      labels: ["name", "reason"],
    }),
    openApiRegenerations: registry.counter({
      name: "aggregator_openapi_v2_regeneration_count",
      help: "Counter of OpenAPI v2 spec regeneration count broken down by causing APIService name and reason.",
      labels: ["apiservice", "reason"],
    }),
    openApiRegenerationSeconds: registry.gauge({
      name: "aggregator_openapi_v2_regeneration_duration",
      help: "Gauge of OpenAPI v2 spec regeneration duration in seconds.",
      labels: ["reason"],
    }),
  };
}

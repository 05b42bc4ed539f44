/** Source: kube-aggregator pkg/controllers/status/metrics.go, pkg/controllers/openapi/aggregator/metrics.go, pkg/apiserver/metrics.go */
import type { MetricsRegistry } from "@coxswain/apimachinery/process/metrics/registry";
import definitions from "../metrics.json" with { type: "json" };

export type AggregatorMetrics = ReturnType<typeof newAggregatorMetrics>;

export function newAggregatorMetrics(registry: MetricsRegistry) {
  return {
    missingSan: registry.counter(definitions.apiserver_kube_aggregator_x509_missing_san_total),
    unavailable: registry.gauge(definitions.aggregator_unavailable_apiservice),
    becameUnavailable: registry.counter(definitions.aggregator_unavailable_apiservice_total),
    openApiRegenerations: registry.counter(definitions.aggregator_openapi_v2_regeneration_count),
    openApiRegenerationSeconds: registry.gauge(definitions.aggregator_openapi_v2_regeneration_duration),
  };
}

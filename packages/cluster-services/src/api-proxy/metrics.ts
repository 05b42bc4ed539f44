import type { MetricsRegistry } from "@coxswain/apimachinery/process/metrics/registry";
import definitions from "../metrics.json" with { type: "json" };

export interface ApiProxyMetrics {
  setReady(servers: number): void;
  connected(server: string): void;
  /** Counts changes of the server that new connections go to. */
  switched(): void;
  /** Counts connections that were closed because no server was ready. */
  refused(): void;
}

export function newApiProxyMetrics(registry: MetricsRegistry): ApiProxyMetrics {
  const ready = registry.gauge(definitions.coxswain_services_api_proxy_ready_servers);
  const connections = registry.counter(definitions.coxswain_services_api_proxy_connections_total);
  const switches = registry.counter(definitions.coxswain_services_api_proxy_switches_total);
  return {
    setReady: (servers) => ready.set(servers),
    connected: (server) => connections.labels(server).inc(),
    switched: () => switches.inc(),
    refused: () => connections.labels("refused").inc(),
  };
}

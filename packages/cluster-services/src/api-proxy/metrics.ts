import type { MetricsRegistry } from "@coxswain/apimachinery/process/metrics/registry";

export interface ApiProxyMetrics {
  setReady(servers: number): void;
  connected(server: string): void;
  /** New connections go to another server. */
  switched(): void;
  /** A connection for which there was no server. */
  refused(): void;
}

export function newApiProxyMetrics(registry: MetricsRegistry): ApiProxyMetrics {
  const ready = registry.gauge({
    name: "coxswain_services_api_proxy_ready_servers",
    help: "API servers that answer and are ready.",
  });
  const connections = registry.counter({
    name: "coxswain_services_api_proxy_connections_total",
    help: "Connections by the API server that they were passed on to; refused: to none.",
    labels: ["server"],
  });
  const switches = registry.counter({
    name: "coxswain_services_api_proxy_switches_total",
    help: "How often new connections went to another API server than those before.",
  });
  return {
    setReady: (servers) => ready.set(servers),
    connected: (server) => connections.labels(server).inc(),
    switched: () => switches.inc(),
    refused: () => connections.labels("refused").inc(),
  };
}

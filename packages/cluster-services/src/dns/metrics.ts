import type { MetricsRegistry } from "@coxswain/apimachinery/process/metrics/registry";
import definitions from "../metrics.json" with { type: "json" };
import { rcodeName, typeName } from "./protocol.ts";

export type DnsTransport = "udp" | "tcp";

/** Metrics under the names of CoreDNS' plugins prometheus, cache, forward and kubernetes, without their label `server`. */
export interface DnsMetrics {
  answered(transport: DnsTransport, type: number, rcode: number, bytes: number, seconds: number): void;
  /** A message that is not answered: from a stranger, too often, or no query. */
  dropped(reason: DropReason): void;
  cached(isHit: boolean): void;
  forwarded(to: string, rcode: number, seconds: number): void;
  forwardFailed(to: string): void;
  /** A query that was not forwarded because too many are. */
  rejected(): void;
  loop(isLoop: boolean): void;
  failed(): void;
}

type DropReason = "client" | "rate" | "malformed" | "size" | "connections";

export function newDnsMetrics(registry: MetricsRegistry): DnsMetrics {
  const requests = registry.counter(definitions.coredns_dns_requests_total);
  const responses = registry.counter(definitions.coredns_dns_responses_total);
  const duration = registry.histogram(definitions.coredns_dns_request_duration_seconds);
  const sizes = registry.histogram(definitions.coredns_dns_response_size_bytes);
  const panics = registry.counter(definitions.coredns_panics_total);
  const hits = registry.counter(definitions.coredns_cache_hits_total);
  const misses = registry.counter(definitions.coredns_cache_misses_total);
  const forwards = registry.histogram(definitions.coredns_forward_request_duration_seconds);
  const failures = registry.counter(definitions.coredns_forward_healthcheck_failures_total);
  const rejects = registry.counter(definitions.coredns_forward_max_concurrent_rejects_total);
  const loops = registry.gauge(definitions.coxswain_dns_forward_loop);
  const drops = registry.counter(definitions.coxswain_dns_dropped_total);
  return {
    answered(transport, type, rcode, bytes, seconds) {
      requests.labels(transport, typeName(type)).inc();
      responses.labels(rcodeName(rcode)).inc();
      duration.labels(transport).observe(seconds);
      sizes.labels(transport).observe(bytes);
    },
    dropped: (reason) => drops.labels(reason).inc(),
    cached: (isHit) => (isHit ? hits : misses).inc(),
    forwarded: (to, rcode, seconds) => forwards.labels(to, rcodeName(rcode)).observe(seconds),
    forwardFailed: (to) => failures.labels(to).inc(),
    rejected: () => rejects.inc(),
    loop: (isLoop) => loops.set(isLoop ? 1 : 0),
    failed: () => panics.inc(),
  };
}

import type { MetricsRegistry } from "@coxswain/apimachinery/process/metrics/registry";
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

export type DropReason = "client" | "rate" | "malformed" | "size" | "connections";

export function newDnsMetrics(registry: MetricsRegistry): DnsMetrics {
  const requests = registry.counter({
    name: "coredns_dns_requests_total",
    help: "Counter of DNS requests made per protocol and type.",
    labels: ["proto", "type"],
  });
  const responses = registry.counter({
    name: "coredns_dns_responses_total",
    help: "Counter of response status codes.",
    labels: ["rcode"],
  });
  const duration = registry.histogram({
    name: "coredns_dns_request_duration_seconds",
    help: "Histogram of the time (in seconds) each request took.",
    labels: ["proto"],
    buckets: Array.from({ length: 16 }, (_, i) => 0.00025 * 2 ** i),
  });
  const sizes = registry.histogram({
    name: "coredns_dns_response_size_bytes",
    help: "Size of the returned response in bytes.",
    labels: ["proto"],
    buckets: [0, 100, 200, 300, 400, 511, 1023, 2047, 4095, 8291, 16e3, 32e3, 48e3, 64e3],
  });
  const panics = registry.counter({ name: "coredns_panics_total", help: "A metrics that counts the number of panics." });
  const hits = registry.counter({ name: "coredns_cache_hits_total", help: "The count of cache hits." });
  const misses = registry.counter({ name: "coredns_cache_misses_total", help: "The count of cache misses." });
  const forwards = registry.histogram({
    name: "coredns_forward_request_duration_seconds",
    help: "Histogram of the time each request took.",
    labels: ["to", "rcode"],
    buckets: Array.from({ length: 15 }, (_, i) => 0.00025 * 2 ** i),
  });
  const failures = registry.counter({
    name: "coredns_forward_healthcheck_failures_total",
    help: "Counter of upstream servers that did not answer.",
    labels: ["to"],
  });
  const rejects = registry.counter({
    name: "coredns_forward_max_concurrent_rejects_total",
    help: "Counter of the number of queries rejected because the concurrent queries were at maximum.",
  });
  const loops = registry.gauge({
    name: "coxswain_dns_forward_loop",
    help: "1 while queries that are forwarded come back, so that forwarding is off.",
  });
  const drops = registry.counter({
    name: "coxswain_dns_dropped_total",
    help: "Counter of messages and connections that got no answer.",
    labels: ["reason"],
  });
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

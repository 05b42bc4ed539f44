import type { Clock } from "@coxswain/apimachinery/process/clock/clock";
import type { MetricsRegistry } from "@coxswain/apimachinery/process/metrics/registry";

/** Metrics of the rotation of one certificate. */
export interface CertificateMetrics {
  /** The certificate in use. @param validToMs ms since the epoch */
  current(validToMs: number): void;
  /** @param ageMs age of the certificate that was replaced */
  rotated(ageMs: number): void;
  renewalFailed(): void;
}

const hour = 3600;
const day = 24 * hour;
const rotationBuckets = [60, hour, 4 * hour, day, 7 * day, 30 * day, 90 * day, 180 * day, 365 * day, 4 * 365 * day];

/**
 * Registers the kubelet's certificate metrics. The TTL is +Inf until the first `current`; only serving certificates have a
 * histogram of ages.
 * Source: pkg/kubelet/certificate/kubelet.go, cmd/kubelet/app/server.go
 */
export function newCertificateMetrics(registry: MetricsRegistry, purpose: "client" | "server", clock: Clock): CertificateMetrics {
  let validTo = Number.POSITIVE_INFINITY;
  registry.gauge({
    name: `kubelet_certificate_manager_${purpose}_ttl_seconds`,
    help:
      purpose === "client"
        ? "Gauge of the TTL (time-to-live) of the Kubelet's client certificate. The value is in seconds until certificate expiry (negative if already expired). If client certificate is invalid or unused, the value will be +INF."
        : "Gauge of the shortest TTL (time-to-live) of the Kubelet's serving certificate. The value is in seconds until certificate expiry (negative if already expired). If serving certificate is invalid or unused, the value will be +INF.",
    collect: (gauge) => gauge.set(Math.trunc((validTo - clock.now()) / 1000)),
  });
  const failures = registry.counter(
    purpose === "client"
      ? { name: "kubelet_certificate_manager_client_expiration_renew_errors", help: "Counter of certificate renewal errors." }
      : { name: "kubelet_server_expiration_renew_errors", help: "Counter of certificate renewal errors." },
  );
  const ages =
    purpose === "server"
      ? registry.histogram({
          name: "kubelet_certificate_manager_server_rotation_seconds",
          help: "Histogram of the number of seconds the previous certificate lived before being rotated.",
          buckets: rotationBuckets,
        })
      : undefined;
  return {
    current(validToMs) {
      validTo = validToMs;
    },
    rotated: (ageMs) => ages?.observe(ageMs / 1000),
    renewalFailed: () => failures.inc(),
  };
}

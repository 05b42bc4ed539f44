import type { HistogramChild, MetricsRegistry } from "@coxswain/apimachinery/process/metrics/registry";

const hour = 3600;
const day = 24 * hour;

/**
 * Histogram of the remaining lifetime of client certificates.
 * Source: k8s.io/apiserver pkg/authentication/request/x509/x509.go
 */
export function newCertificateLifetimes(metrics: MetricsRegistry): HistogramChild {
  const histogram = metrics.histogram({
    name: "apiserver_client_certificate_expiration_seconds",
    help: "Distribution of the remaining lifetime on the certificate used to authenticate a request.",
    labels: [],
    buckets: [0, ...[0.5, 1, 2, 6, 12].map((n) => n * hour), ...[1, 2, 4, 7, 30, 90, 180, 360].map((n) => n * day)],
  });
  return histogram.labels();
}

/**
 * The API server's request metrics under upstream's names.
 * Source: k8s.io/apiserver pkg/endpoints/metrics/metrics.go, pkg/endpoints/filters/metrics.go
 */
import type { CounterChild, GaugeChild, HistogramChild, MetricsRegistry } from "@coxswain/apimachinery/process/metrics/registry";
import type { RequestContext } from "../request/context.ts";
import type { ServerRequest } from "../request/server-request.ts";
import type { Filter } from "./filter.ts";

const seconds = [
  0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7, 0.8, 0.9, 1, 1.25, 1.5, 1.75, 2, 2.5, 3, 3.5, 4, 4.5, 5, 6, 7,
  8, 9, 10, 15, 20, 25, 30, 40, 50, 60,
];
const sloSeconds = [0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1, 1.25, 1.5, 2, 3, 4, 5, 6, 8, 10, 15, 20, 30, 45, 60];
const bytes = [1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9];
const target = ["verb", "group", "version", "resource", "subresource", "scope", "component"];
const targetWithDryRun = ["verb", "dry_run", "group", "version", "resource", "subresource", "scope", "component"];

export type RequestMetrics = ReturnType<typeof newRequestMetrics>;

export function newRequestMetrics(registry: MetricsRegistry) {
  return {
    total: registry.counter({
      name: "apiserver_request_total",
      stability: "STABLE",
      help: "Counter of apiserver requests broken out for each verb, dry run value, group, version, resource, scope, component, and HTTP response code.",
      labels: [...targetWithDryRun, "code"],
    }),
    duration: registry.histogram({
      name: "apiserver_request_duration_seconds",
      stability: "STABLE",
      help: "Response latency distribution in seconds for each verb, dry run value, group, version, resource, subresource, scope and component.",
      labels: targetWithDryRun,
      buckets: seconds,
    }),
    sloDuration: registry.histogram({
      name: "apiserver_request_slo_duration_seconds",
      help: "Response latency distribution (not counting webhook duration) in seconds for each verb, group, version, resource, subresource, scope and component.",
      labels: target,
      buckets: sloSeconds,
    }),
    filterDuration: registry.histogram({
      name: "apiserver_request_filter_duration_seconds",
      help: "Request filter latency distribution in seconds, for each filter type",
      labels: ["filter"],
      buckets: [0.0001, 0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1, 5],
    }),
    selfRequests: registry.counter({
      name: "apiserver_selfrequest_total",
      help: "Counter of apiserver self-requests broken out for each verb, API resource and subresource.",
      labels: ["verb", "resource", "subresource"],
    }),
    postTimeout: registry.counter({
      name: "apiserver_request_post_timeout_total",
      help: "Tracks the activity of the request handlers after the associated requests have been timed out by the apiserver",
      labels: ["source", "status"],
    }),
    responseSizes: registry.histogram({
      name: "apiserver_response_sizes",
      stability: "STABLE",
      help: "Response size distribution in bytes for each group, version, verb, resource, subresource, scope and component.",
      labels: target,
      buckets: bytes,
    }),
    longRunning: registry.gauge({
      name: "apiserver_longrunning_requests",
      help: "Gauge of all active long-running apiserver requests broken out by verb, group, version, resource, scope and component. Not all requests are tracked this way.",
      labels: target,
    }),
    longRunningDeprecated: registry.gauge({
      name: "apiserver_longrunning_gauge",
      deprecatedSince: "1.23.0",
      help: "Gauge of all active long-running apiserver requests broken out by verb, group, version, resource, scope and component. Not all requests are tracked this way.",
      labels: target,
    }),
    inFlight: registry.gauge({
      name: "apiserver_current_inflight_requests",
      stability: "STABLE",
      help: "Maximal number of currently used inflight request limit of this apiserver per request kind in last second.",
      labels: ["request_kind"],
    }),
    inQueue: registry.gauge({
      name: "apiserver_current_inqueue_requests",
      help: "Maximal number of queued requests in this apiserver per request kind in last second.",
      labels: ["request_kind"],
    }),
    droppedRequests: registry.counter({
      name: "apiserver_dropped_requests_total",
      help: "Number of requests dropped with 'Try again later' response",
      labels: ["request_kind"],
    }),
    terminations: registry.counter({
      name: "apiserver_request_terminations_total",
      help: "Number of requests which apiserver terminated in self-defense.",
      labels: [...target, "code"],
    }),
    aborts: registry.counter({
      name: "apiserver_request_aborts_total",
      help: "Number of requests which apiserver aborted possibly due to a timeout, for each group, version, verb, resource, subresource and scope",
      labels: ["verb", "group", "version", "resource", "subresource", "scope"],
    }),
    authenticationDuration: registry.histogram({
      name: "authentication_duration_seconds",
      help: "Authentication duration in seconds broken out by result.",
      labels: ["result"],
      buckets: Array.from({ length: 15 }, (_, i) => 0.001 * 2 ** i),
    }),
    authenticationAttempts: registry.counter({
      name: "authentication_attempts",
      help: "Counter of authenticated attempts.",
      labels: ["result"],
    }),
    authenticatedUserRequests: registry.counter({
      name: "authenticated_user_requests",
      help: "Counter of authenticated requests broken out by username.",
      labels: ["username"],
    }),
  };
}

/** Metric children of one kind of request, cached because looking up nine labels costs more than counting. */
export interface TargetMetrics {
  total(code: number): CounterChild;
  readonly duration: HistogramChild;
  readonly sloDuration: HistogramChild;
  readonly responseSizes: HistogramChild;
  /** Created by the first long-running request. */
  readonly longRunning: readonly GaugeChild[];
}

/** @returns a lookup by request; the cache is bounded, since it is used for served resources and subresources only */
export function newTargetMetrics(metrics: RequestMetrics): (request: ServerRequest) => TargetMetrics {
  const known = new Map<string, TargetMetrics>();
  return (request) => {
    const { group, version, resource, subresource, name, namespace } = request.info;
    const verb = reportedVerb(request);
    const dry = dryRun(request);
    const scope = name !== "" ? "resource" : namespace !== "" ? "namespace" : "cluster";
    const key = `${verb} ${dry} ${group}/${version}/${resource}/${subresource} ${scope}`;
    let found = known.get(key);
    if (found === undefined) {
      const rest = [group, version, resource, subresource, scope, "apiserver"];
      found = targetMetrics(metrics, [verb, dry, ...rest], [verb, ...rest]);
      known.set(key, found);
    }
    return found;
  };
}

function targetMetrics(metrics: RequestMetrics, withDryRun: readonly string[], plain: readonly string[]): TargetMetrics {
  const codes = new Map<number, CounterChild>();
  let longRunning: readonly GaugeChild[] | undefined;
  return {
    total(code) {
      let child = codes.get(code);
      if (child === undefined) {
        child = metrics.total.labels(...withDryRun, String(code));
        codes.set(code, child);
      }
      return child;
    },
    duration: metrics.duration.labels(...withDryRun),
    sloDuration: metrics.sloDuration.labels(...plain),
    responseSizes: metrics.responseSizes.labels(...plain),
    get longRunning() {
      longRunning ??= [metrics.longRunning, metrics.longRunningDeprecated].map((gauge) => gauge.labels(...plain));
      return longRunning;
    },
  };
}

/** The verb label of a request: upper case, with CONNECT for streaming subresources and APPLY for server-side apply. */
export function reportedVerb(request: Pick<RequestContext, "info" | "exchange">): string {
  switch (request.info.verb) {
    case "create":
      return isConnect(request) ? "CONNECT" : "POST";
    case "update":
      return "PUT";
    case "patch":
      return request.exchange.headers["content-type"]?.startsWith("application/apply-patch") ? "APPLY" : "PATCH";
    case "get":
      return isConnect(request) ? "CONNECT" : "GET";
    default:
      return request.info.verb.toUpperCase();
  }
}

/** Counts a request rejected to protect the server. Its resource may not exist, so it is not used as a label. */
export function countTermination(
  metrics: RequestMetrics,
  request: Pick<RequestContext, "info" | "exchange">,
  component: string,
  code: number,
): void {
  const { group, version, name, namespace } = request.info;
  const scope = name !== "" ? "resource" : namespace !== "" ? "namespace" : "cluster";
  metrics.terminations.labels(reportedVerb(request), group, version, "", "", scope, component, String(code)).inc();
}

/** Counts a request whose connection was closed because its response had begun and could not be completed. */
export function countAbort(metrics: RequestMetrics, request: Pick<RequestContext, "info" | "exchange">): void {
  const { group, version, name, namespace } = request.info;
  const scope = name !== "" ? "resource" : namespace !== "" ? "namespace" : "cluster";
  metrics.aborts.labels(reportedVerb(request), group, version, "", "", scope).inc();
}

function isConnect(request: Pick<RequestContext, "info">): boolean {
  const { subresource } = request.info;
  return subresource === "proxy" || subresource === "exec" || subresource === "attach" || subresource === "portforward";
}

function dryRun(request: ServerRequest): string {
  if (!request.exchange.url.includes("dryRun=")) return "";
  return request.query.getAll("dryRun").every((value) => value === "All") ? "All" : "invalid";
}

/**
 * Latency of the filters that may call other servers: from the end of the previous filter until the next one is called.
 * Requests that a filter rejects are not counted.
 * Source: k8s.io/apiserver pkg/endpoints/filterlatency/filterlatency.go
 */
type Measured = "authentication" | "audit" | "impersonation" | "authorization";

/** Placed before the first measured filter, and before a measured filter that follows unmeasured ones. */
export const startOfFilter: Filter = (request, next) => {
  request.filterStartedMs = performance.now();
  return next(request);
};

/** Placed behind the filter of this name; one clock reading ends its measurement and begins the next. */
export function endOfFilter(name: Measured, metrics: RequestMetrics): Filter {
  const duration = metrics.filterDuration.labels(name);
  return (request, next) => {
    const now = performance.now();
    duration.observe((now - request.filterStartedMs) / 1000);
    request.filterStartedMs = now;
    return next(request);
  };
}

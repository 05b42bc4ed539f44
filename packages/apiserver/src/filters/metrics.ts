/**
 * The API server's request metrics under upstream's names.
 * Source: k8s.io/apiserver pkg/endpoints/metrics/metrics.go, pkg/endpoints/filters/metrics.go
 */
import type { CounterChild, GaugeChild, HistogramChild, MetricsRegistry } from "@coxswain/apimachinery/process/metrics/registry";
import definitions from "../metrics.json" with { type: "json" };
import type { RequestContext } from "../request/context.ts";
import type { ServerRequest } from "../request/server-request.ts";
import type { Filter } from "./filter.ts";

export type RequestMetrics = ReturnType<typeof newRequestMetrics>;

export function newRequestMetrics(registry: MetricsRegistry) {
  return {
    total: registry.counter(definitions.apiserver_request_total),
    duration: registry.histogram(definitions.apiserver_request_duration_seconds),
    sloDuration: registry.histogram(definitions.apiserver_request_slo_duration_seconds),
    filterDuration: registry.histogram(definitions.apiserver_request_filter_duration_seconds),
    selfRequests: registry.counter(definitions.apiserver_selfrequest_total),
    postTimeout: registry.counter(definitions.apiserver_request_post_timeout_total),
    responseSizes: registry.histogram(definitions.apiserver_response_sizes),
    longRunning: registry.gauge(definitions.apiserver_longrunning_requests),
    longRunningDeprecated: registry.gauge(definitions.apiserver_longrunning_gauge),
    inFlight: registry.gauge(definitions.apiserver_current_inflight_requests),
    inQueue: registry.gauge(definitions.apiserver_current_inqueue_requests),
    droppedRequests: registry.counter(definitions.apiserver_dropped_requests_total),
    terminations: registry.counter(definitions.apiserver_request_terminations_total),
    aborts: registry.counter(definitions.apiserver_request_aborts_total),
    authenticationDuration: registry.histogram(definitions.authentication_duration_seconds),
    authenticationAttempts: registry.counter(definitions.authentication_attempts),
    authenticatedUserRequests: registry.counter(definitions.authenticated_user_requests),
  };
}

/** Metric children of one kind of request, cached because looking up nine labels costs more than counting. */
interface TargetMetrics {
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

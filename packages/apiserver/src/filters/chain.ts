/**
 * The filter chain of all requests, outermost first. The order is security relevant:
 *
 *  1. panic recovery   converts any error thrown below into a response or a closed stream; no error ends the process
 *  2. request info     everything below, and every error, refers to verb and resource
 *  3. drain            a server that is shutting down answers 429 before it spends resources on a request
 *  4. cache control    covers error responses, too; HSTS is set on every response
 *  5. timeout          the deadline includes authentication and authorization, which may call other servers
 *  6. CORS             a browser's preflight has no credentials
 *  7. authentication   determines the user
 *  8. audit            records the authenticated user, and requests rejected below; failed authentication is recorded by 7
 *  9. impersonation    authorizes the authenticated user, then replaces it
 * 10. fairness         after authentication, since flows depend on the user; or max in flight, which exempts system:masters
 * 11. authorization    last, so that no handler runs unauthorized
 *
 * The request log and the metrics are written on the way out of 1, where the final status is known.
 * Source: k8s.io/apiserver pkg/server/config.go DefaultBuildHandlerChain
 */

import { messageOf } from "@coxswain/apimachinery/objects/errors/message";
import { badRequest, StatusError } from "@coxswain/apimachinery/objects/errors/status-error";
import type { Clock } from "@coxswain/apimachinery/process/clock/clock";
import type { Logger } from "@coxswain/apimachinery/process/logging/logger";
import { redactedUrl } from "@coxswain/apimachinery/process/logging/redacted-url";
import type { Authenticator } from "@coxswain/apimachinery/serving/authentication/authenticator";
import type { Exchange, ExchangeHandler } from "@coxswain/apimachinery/serving/exchange";
import { answerInternalError } from "@coxswain/apimachinery/serving/plain-error";
import type { Authorizer } from "../authorization/authorizer.ts";
import { isLongRunning, parseRequestInfo, type RequestInfo } from "../request/request-info.ts";
import { ServerRequest } from "../request/server-request.ts";
import { type Auditor, audit, auditFailedAuthentication } from "./audit.ts";
import { authentication, impersonation } from "./authentication.ts";
import { authorization } from "./authorization.ts";
import { cors } from "./cors.ts";
import type { Filter, Handler } from "./filter.ts";
import { type Drain, drain, timeout } from "./lifetime.ts";
import { endOfFilter, newTargetMetrics, type RequestMetrics, startOfFilter } from "./metrics.ts";
import { logRequest } from "./request-log.ts";

/** @typeParam Served what the handler knows about a served resource */
interface FilterChainOptions<Served> {
  /** The handler behind the filters, given the resource that the path names. Errors it throws become responses. */
  handle: (request: ServerRequest, served: Served) => Promise<void> | void;
  /** As `handle`, for requests whose path names no resource of the registry. */
  handleOther: Handler;
  authenticate: Authenticator;
  authorize: Authorizer;
  apiAudiences: readonly string[];
  requestTimeoutMs: number;
  /** Limits concurrent requests: priority and fairness, or max in flight. */
  limitLoad: Filter;
  corsAllowedOrigins: readonly string[];
  /** undefined: no auditing. */
  auditor: Auditor | undefined;
  hstsDirectives: readonly string[];
  /** Probability, 0 to 0.02, that an HTTP/2 client gets GOAWAY and reconnects, which rebalances the load. */
  goawayChance: number;
  drain: Drain;
  /** The resource that the path names, looked up once; others get no separate metric series. */
  findServed: (info: RequestInfo) => Served | undefined;
  writeError: (exchange: Exchange, err: unknown, request?: ServerRequest) => void;
  clock: Clock;
  log: Logger;
  metrics: RequestMetrics;
}

/** Creates the handler of all external requests. */
export function newFilterChain<Served>(options: FilterChainOptions<Served>): ExchangeHandler {
  const { clock, log, metrics, writeError } = options;
  const filters: Filter[] = [
    drain(options.drain),
    cacheControl(options.hstsDirectives),
    timeout({
      requestTimeoutMs: options.requestTimeoutMs,
      clock,
      writeError: (request, err) => writeError(request.exchange, err, request),
      metrics,
    }),
    ...(options.corsAllowedOrigins.length > 0 ? [cors(options.corsAllowedOrigins)] : []),
    startOfFilter,
    authentication({
      clock,
      authenticate: options.authenticate,
      apiAudiences: options.apiAudiences,
      metrics,
      log,
      onRefused: options.auditor && auditFailedAuthentication(options.auditor, clock),
    }),
    endOfFilter("authentication", metrics),
    ...(options.auditor === undefined ? [] : [audit(options.auditor, clock, log), endOfFilter("audit", metrics)]),
    impersonation(options.authorize),
    endOfFilter("impersonation", metrics),
    options.limitLoad,
    startOfFilter,
    authorization(options.authorize),
    endOfFilter("authorization", metrics),
  ];
  const chain = compose(filters, measured(options));

  return async (exchange) => {
    let request: ServerRequest;
    try {
      const info = parseRequestInfo(exchange.method, exchange.url);
      request = new ServerRequest(exchange, info, clock.now(), isLongRunning(info), options.drain.signal);
    } catch (err) {
      return answerUnreadable(exchange, err, writeError);
    }
    exchange.setHeader("audit-id", request.auditId);
    if (options.goawayChance > 0 && exchange.httpVersion === "2.0" && Math.random() < options.goawayChance) exchange.goAway();
    try {
      await chain(request);
    } catch (err) {
      recover(options, request, err);
    }
    request.handled();
    if (log.enabled(3)) logRequest(log, clock, request);
  };
}

/** Composes filters, the first one outermost. Called once, so that passing the chain allocates nothing per request. */
export function compose(filters: readonly Filter[], last: Handler): Handler {
  return filters.reduceRight<Handler>((next, filter) => (request) => filter(request, next), last);
}

/** Upstream answers 500 for a legacy path without a resource; a broken escape is a bad request. */
function answerUnreadable(exchange: Exchange, err: unknown, writeError: FilterChainOptions<unknown>["writeError"]): void {
  const failure = new Error(`failed to create RequestInfo: ${messageOf(err)}`, { cause: err });
  if (err instanceof URIError) writeError(exchange, badRequest(failure.message));
  else answerInternalError(exchange, failure);
}

/** Sends an error response or closes the stream, whatever was thrown. */
function recover(options: Pick<FilterChainOptions<unknown>, "log" | "writeError">, request: ServerRequest, err: unknown): void {
  const { exchange } = request;
  if (exchange.signal.aborted) {
    exchange.destroy();
    return;
  }
  if (!(err instanceof StatusError)) {
    options.log.error("Request failed", err, {
      verb: request.info.verb,
      URI: redactedUrl(exchange.url),
      "audit-ID": request.auditId,
    });
  }
  try {
    if (exchange.headersSent) exchange.destroy();
    else options.writeError(exchange, err, request);
  } catch (second) {
    options.log.error("Cannot write an error", second, { URI: redactedUrl(exchange.url) });
    exchange.destroy();
  }
}

/** Calls the handler and records the metrics of served resources. */
function measured<Served>(options: FilterChainOptions<Served>): Handler {
  const { metrics, clock } = options;
  const targetOf = newTargetMetrics(metrics);
  return async (request) => {
    const { isResourceRequest, verb } = request.info;
    // OPTIONS has no verb and no route; upstream counts by route.
    const served = isResourceRequest && verb !== "" ? options.findServed(request.info) : undefined;
    if (served === undefined) return options.handleOther(request);
    const target = targetOf(request);
    if (request.longRunning) for (const gauge of target.longRunning) gauge.inc();
    let code = 0;
    try {
      await options.handle(request, served);
    } catch (err) {
      code = err instanceof StatusError ? err.code : 500;
      throw err;
    } finally {
      if (request.longRunning) for (const gauge of target.longRunning) gauge.dec();
      target.total(code || request.exchange.status || 200).inc();
      const tookMs = clock.now() - request.receivedMs;
      target.duration.observe(tookMs / 1000);
      target.sloDuration.observe((tookMs - request.webhookMs) / 1000);
      if (verb === "get" || verb === "list") target.responseSizes.observe(request.exchange.bytesWritten);
    }
  };
}

/**
 * Forbids caching of responses, and sets Strict-Transport-Security when directives are configured.
 * Source: k8s.io/apiserver pkg/endpoints/filters/cachecontrol.go, pkg/server/filters/hsts.go
 */
function cacheControl(hstsDirectives: readonly string[]): Filter {
  const hsts = hstsDirectives.join("; ");
  return (request, next) => {
    request.exchange.setHeader("cache-control", "no-cache, private");
    if (hsts !== "") request.exchange.setHeader("strict-transport-security", hsts);
    return next(request);
  };
}

/**
 * What every request passes, outermost first. The order is a security property; each position has its reason.
 *
 *  1. panic recovery   whatever is thrown below becomes an answer or a closed stream; nothing ends the process
 *  2. request info     everything below, and every error, speaks of verb and resource
 *  3. drain            a server that is shutting down answers 429 before it spends anything on a request
 *  4. cache control    also errors must not be cached, and HSTS stands on every answer
 *  5. timeout          the deadline covers authentication and authorization, which may ask other servers
 *  6. CORS             a browser's preflight carries no credentials
 *  7. authentication   from here on there is a user
 *  8. audit            names the true user, and records what is refused below it; who is refused above is recorded there
 *  9. impersonation    asks the authorizer about the true user, then goes on as the other one
 * 10. fairness         after authentication, since it goes by who asks; or max in flight, from which system:masters is exempt
 * 11. authorization    last, so that nothing below it runs unauthorized
 *
 * The request log and the metrics are written on the way out of 1, where the final status is known.
 * Source: k8s.io/apiserver pkg/server/config.go DefaultBuildHandlerChain
 */
import type { Clock } from "@coxswain/apimachinery/clock/clock";
import { messageOf } from "@coxswain/apimachinery/errors/message";
import { badRequest, StatusError } from "@coxswain/apimachinery/errors/status-error";
import type { Logger } from "@coxswain/apimachinery/logging/logger";
import { redactedUrl } from "@coxswain/apimachinery/logging/redacted-url";
import type { Authenticator } from "@coxswain/apimachinery/serving/authentication/authenticator";
import type { Exchange, ExchangeHandler } from "@coxswain/apimachinery/serving/exchange";
import { answerInternalError } from "@coxswain/apimachinery/serving/plain-error";
import type { Authorizer } from "../authorization/authorizer.ts";
import { isLongRunning, parseRequestInfo, type RequestInfo } from "../request/request-info.ts";
import { ServerRequest } from "../request/server-request.ts";
import { type Auditor, audit, auditFailedAuthentication } from "./audit.ts";
import { authentication } from "./authentication.ts";
import { authorization } from "./authorization.ts";
import { cacheControl } from "./cache-control.ts";
import { cors } from "./cors.ts";
import { type Drain, drain } from "./drain.ts";
import { compose, type Filter, type Handler } from "./filter.ts";
import { endOfFilter, startOfFilter } from "./filter-latency.ts";
import { impersonation } from "./impersonation.ts";
import { newTargetMetrics, type RequestMetrics } from "./metrics.ts";
import { logRequest } from "./request-log.ts";
import { timeout } from "./timeout.ts";

export interface FilterChainOptions {
  /** The rooms behind the filters. What it throws becomes the answer. */
  handle: Handler;
  authenticate: Authenticator;
  authorize: Authorizer;
  apiAudiences: readonly string[];
  requestTimeoutMs: number;
  /** Keeps the server from more work at once than it can do. */
  limitLoad: Filter;
  corsAllowedOrigins: readonly string[];
  /** undefined: nothing is recorded. */
  auditor: Auditor | undefined;
  hstsDirectives: readonly string[];
  /** Chance from 0 to 0.02 that a HTTP/2 client is asked to open a new connection, which spreads load again. */
  goawayChance: number;
  drain: Drain;
  /** Is there such a resource? Others get no metric series of their own. */
  isServed: (info: RequestInfo) => boolean;
  writeError: (exchange: Exchange, err: unknown, request?: ServerRequest) => void;
  clock: Clock;
  log: Logger;
  metrics: RequestMetrics;
}

export function newFilterChain(options: FilterChainOptions): ExchangeHandler {
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
    if (log.enabled(3)) logRequest(log, clock, request);
  };
}

/** A legacy path without a resource is the server's failure upstream; one with a broken escape is no HTTP. */
function answerUnreadable(exchange: Exchange, err: unknown, writeError: FilterChainOptions["writeError"]): void {
  const failure = new Error(`failed to create RequestInfo: ${messageOf(err)}`, { cause: err });
  if (err instanceof URIError) writeError(exchange, badRequest(failure.message));
  else answerInternalError(exchange, failure);
}

/** Whatever was thrown, the client gets an end and the process lives on. */
function recover(options: FilterChainOptions, request: ServerRequest, err: unknown): void {
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

/** Runs the rooms behind the filters and counts what was asked of served resources. */
function measured(options: FilterChainOptions): Handler {
  const { metrics, clock } = options;
  const targetOf = newTargetMetrics(metrics);
  return async (request) => {
    const { isResourceRequest, verb } = request.info;
    // A method without a verb (OPTIONS) has no route, and upstream counts by route.
    if (!isResourceRequest || verb === "" || !options.isServed(request.info)) return options.handle(request);
    const target = targetOf(request);
    if (request.longRunning) for (const gauge of target.longRunning) gauge.inc();
    let code = 0;
    try {
      await options.handle(request);
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

/**
 * Records audit events by policy, in four stages: request received, response started (long-running requests), response
 * complete, and panic. The filter is part of the chain only when a policy and a backend are configured.
 * Source: k8s.io/apiserver pkg/endpoints/filters/audit.go, authn_audit.go
 */

import { isIP } from "node:net";
import { messageOf } from "@coxswain/apimachinery/objects/errors/message";
import { StatusError } from "@coxswain/apimachinery/objects/errors/status-error";
import type { Clock } from "@coxswain/apimachinery/process/clock/clock";
import type { Logger } from "@coxswain/apimachinery/process/logging/logger";
import { headerValues } from "@coxswain/apimachinery/serving/authentication/header-values";
import { peerCertificate } from "@coxswain/apimachinery/serving/authentication/x509";
import type { Exchange } from "@coxswain/apimachinery/serving/exchange";
import type { AuditBackend, AuditMetrics } from "../audit/backend.ts";
import { AuditEvent, type EventSource } from "../audit/event.ts";
import type { PolicyEvaluator, Stage } from "../audit/policy.ts";
import type { ObjectRecorder } from "../audit/recorded-object.ts";
import type { UserInfo } from "../request/context.ts";
import type { ServerRequest } from "../request/server-request.ts";
import { AuditedExchange } from "./audited-exchange.ts";
import type { Filter, Handler } from "./filter.ts";

export interface Auditor {
  readonly evaluate: PolicyEvaluator;
  readonly backend: AuditBackend;
  readonly objects: ObjectRecorder;
  readonly metrics: AuditMetrics;
}

/** The audit filter; placed behind authentication. */
export function audit(auditor: Auditor, clock: Clock, log: Logger): Filter {
  return (request, next) => {
    const event = eventOf(auditor, request, request.user);
    if (event === undefined) return next(request);
    for (const [key, value] of Object.entries(request.credentialNotes ?? {})) event.annotate(key, value);
    return audited(auditor, clock, log, request, event, next);
  };
}

/** Records the only event of a request that failed authentication; called before the 401 is sent. */
export function auditFailedAuthentication(auditor: Auditor, clock: Clock): (request: ServerRequest) => Promise<void> {
  return async (request) => {
    const event = eventOf(auditor, request, undefined);
    if (event === undefined) return;
    event.responseStatus = { message: attemptedMethods(request), code: 401 };
    await emit(auditor, event, "ResponseStarted", clock.now());
  };
}

function eventOf(auditor: Auditor, request: ServerRequest, user: UserInfo | undefined): AuditEvent | undefined {
  const verdict = auditor.evaluate(user, request.info);
  auditor.metrics.levels.labels(verdict.level).inc();
  return verdict.level === "None" ? undefined : new AuditEvent(sourceOf(request, user), verdict, auditor.objects);
}

function sourceOf({ exchange, info, auditId, receivedMs }: ServerRequest, user: UserInfo | undefined): EventSource {
  const userAgent = exchange.headers["user-agent"] ?? "";
  return { auditId, requestUri: exchange.url, info, user, sourceIps: sourceIps(exchange), userAgent, receivedMs };
}

function emit(auditor: Auditor, event: AuditEvent, stage: Stage, atMs: number): boolean | Promise<boolean> {
  if (event.omits(stage)) return true;
  auditor.metrics.events.inc();
  return auditor.backend.process([event.record(stage, atMs)]);
}

async function audited(
  auditor: Auditor,
  clock: Clock,
  log: Logger,
  request: ServerRequest,
  event: AuditEvent,
  next: Handler,
): Promise<void> {
  if (!(await emit(auditor, event, "RequestReceived", request.receivedMs))) {
    auditor.metrics.rejected.inc();
    return refuse(request.exchange);
  }
  let begun = false;
  let broken = false;
  const started = (code: number): void => {
    event.responseStatus = { ...event.responseStatus, code };
    if (begun || !request.longRunning) return;
    begun = true;
    void emit(auditor, event, "ResponseStarted", clock.now());
  };
  const cannotRecord = (err: unknown): void => log.error("Cannot record an object", err, { "audit-ID": request.auditId });
  const exchange = new AuditedExchange(request.exchange, {
    started,
    body(headers, bytes) {
      const large = !event.recordsResponse && bytes.length > largestStatus;
      if (!large) event.responseBody(String(headers["content-type"] ?? ""), headers["content-encoding"] === "gzip", bytes);
    },
    wantsStreams: event.recordsResponse && !request.longRunning,
    reserve: (bytes) => event.reserve(bytes),
    complete(code) {
      if (broken) return undefined;
      if (code !== 0) started(code);
      event.responseStatus ??= { status: "Success", message: "Connection closed early", code: 200 };
      if (!begun) started(event.responseStatus.code ?? 200);
      const atMs = clock.now();
      const taken = afterwards(event.prepare(cannotRecord), () => emit(auditor, event, "ResponseComplete", atMs));
      if (taken instanceof Promise) return taken.finally(() => event.release());
      event.release();
      return undefined;
    },
  });
  event.onStarted = started;
  request.audit = event;
  request.exchange = exchange;
  try {
    await next(request);
  } catch (err) {
    // The outer filters write the error through this exchange, which completes the event.
    if (isPanic(err)) {
      broken = true;
      event.responseStatus = {
        status: "Failure",
        message: `APIServer panic'd: ${messageOf(err)}`,
        reason: "InternalError",
        code: 500,
      };
      await event.prepare(cannotRecord);
      await emit(auditor, event, "Panic", clock.now());
      event.release();
    }
    throw err;
  }
  await exchange.complete();
}

/** Limit when the body is parsed only for a Status: none is larger than a request body may be. */
const largestStatus = 4 * 1024 * 1024;

function afterwards<T>(before: Promise<void> | undefined, then: () => T | Promise<T>): T | Promise<T> {
  return before === undefined ? then() : before.then(then);
}

/** Programming errors, as opposed to errors thrown on purpose. */
function isPanic(err: unknown): boolean {
  if (err instanceof StatusError) return false;
  return err instanceof TypeError || err instanceof RangeError || err instanceof ReferenceError || !(err instanceof Error);
}

/** Source: handlers/responsewriters/errors.go, InternalError */
function refuse(exchange: Exchange): void {
  const text = `Internal Server Error: ${JSON.stringify(exchange.url)}: failed to store audit event\n`;
  const escaped = text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
  exchange.respond(500, { "content-type": "text/plain; charset=utf-8", "x-content-type-options": "nosniff" }, escaped);
}

/**
 * The addresses reported by proxies, followed by the peer address, which cannot be forged.
 * Source: k8s.io/apimachinery pkg/util/net/http.go, SourceIPs
 */
function sourceIps(exchange: Exchange): string[] {
  const forwarded = (headerValues(exchange, "x-forwarded-for")[0] ?? "").split(",").map((part) => address(part.trim()));
  const ips = forwarded.filter((ip) => ip !== undefined);
  const real = address(headerValues(exchange, "x-real-ip")[0] ?? "");
  if (real !== undefined && !ips.includes(real)) ips.push(real);
  const remote = address(exchange.remoteAddress.split("%")[0]!);
  if (remote !== undefined && ips.at(-1) !== remote) ips.push(remote);
  return ips;
}

/** An IP address in canonical form; undefined when `text` is not one. */
function address(text: string): string | undefined {
  const family = isIP(text);
  if (family === 4) return text;
  if (family === 0 || text.includes("%")) return undefined;
  const short = new URL(`http://[${text}]`).hostname.slice(1, -1);
  const mapped = /^::ffff:([0-9a-f]{1,4}):([0-9a-f]{1,4})$/.exec(short);
  if (mapped === null) return short;
  const bits = [mapped[1], mapped[2]].map((half) => Number.parseInt(half!, 16));
  return bits.flatMap((half) => [half >> 8, half & 255]).join(".");
}

function attemptedMethods({ exchange, query }: ServerRequest): string {
  const [scheme = "", ...rest] = (exchange.headers.authorization ?? "").trim().split(" ");
  const methods: string[] = [];
  if (rest.length > 0 && ["basic", "bearer"].includes(scheme.toLowerCase())) methods.push(scheme.toLowerCase());
  if ((query.get("access_token") ?? "").trim() !== "") methods.push("access_token");
  if (exchange.tls !== undefined && peerCertificate(exchange.tls) !== undefined) methods.push("x509");
  if (methods.length === 0) return "Authentication failed, no credentials provided";
  return `Authentication failed, attempted: ${methods.join(", ")}`;
}

/** Effects of credentials and of the authorizer's decision in the first filters. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { StatusError } from "@coxswain/apimachinery/objects/errors/status-error";
import { realClock } from "@coxswain/apimachinery/process/clock/clock";
import { newFakeClock } from "@coxswain/apimachinery/process/clock/fake-clock";
import { discardLogger } from "@coxswain/apimachinery/process/logging/logger";
import { newMetricsRegistry } from "@coxswain/apimachinery/process/metrics/registry";
import type { Authenticator } from "@coxswain/apimachinery/serving/authentication/authenticator";
import type { Decision } from "../authorization/authorizer.ts";
import { LoopbackExchange } from "../loopback/exchange.ts";
import type { AuditTrail } from "../request/audit-trail.ts";
import { parseRequestInfo } from "../request/request-info.ts";
import { ServerRequest } from "../request/server-request.ts";
import { authentication } from "./authentication.ts";
import { authorization } from "./authorization.ts";
import type { Filter } from "./filter.ts";
import { newRequestMetrics } from "./metrics.ts";

async function passed(filterOf: Filter) {
  const headers = { authorization: "Bearer secret" };
  const exchange = new LoopbackExchange({ method: "GET", path: "/api", headers });
  const request = new ServerRequest(exchange, parseRequestInfo("GET", "/api"), 0, false);
  let isThrough = false;
  let thrown: unknown;
  try {
    await filterOf(request, async () => {
      isThrough = true;
    });
  } catch (err) {
    thrown = err;
  }
  const code = thrown instanceof StatusError ? thrown.code : exchange.status;
  return { request, isThrough, code, thrown, left: request.exchange.headers.authorization };
}

const jane = { name: "jane", groups: ["dev"] };
for (const { name, answer, want } of [
  { name: "a good one", answer: () => ({ user: jane }), want: { isThrough: true, left: undefined } },
  { name: "none", answer: () => undefined, want: { isThrough: false, code: 401 } },
  {
    name: "one of which an audience is ours",
    answer: () => ({ user: jane, audiences: ["other", "api"] }),
    want: { isThrough: true },
  },
  { name: "one for others", answer: () => ({ user: jane, audiences: ["other"] }), want: { isThrough: false, code: 401 } },
  { name: "for no audience", answer: () => ({ user: jane, audiences: [] }), want: { isThrough: false, code: 401 } },
  ...[
    [400, 401],
    [403, 401],
    [500, 500],
    [503, 503],
  ].map(([failed, code]) => ({
    name: `one whose verification fails with ${failed}`,
    answer: () => {
      throw new StatusError({ kind: "Status", apiVersion: "v1", metadata: {}, status: "Failure", code: failed });
    },
    want: { isThrough: false, code },
  })),
] as { name: string; answer: () => unknown; want: object }[]) {
  test(`a credential that is ${name}: ${JSON.stringify(want)}`, async () => {
    const options = {
      clock: realClock,
      authenticate: (async () => answer()) as Authenticator,
      apiAudiences: ["api", "api-too"],
      metrics: newRequestMetrics(newMetricsRegistry()),
      log: discardLogger,
    };
    assert.partialDeepStrictEqual(await passed(authentication(options)), want);
  });
}

for (const [decision, code] of [
  [{ decision: "allow", error: new Error("another authorizer is away") }, undefined],
  [{ decision: "no-opinion" }, 403],
  [{ decision: "deny", reason: "never" }, 403],
  [{ decision: "no-opinion", error: new Error("away") }, 500],
  [{ decision: "no-opinion", reason: "none of the others", error: new Error("away") }, 500],
] as [Decision, number | undefined][]) {
  for (const later of [false, true]) {
    test(`${decision.decision}${decision.reason ? " with a reason" : ""}${decision.error ? " with an error" : ""}, said ${later ? "later" : "at once"}, is ${code ?? "passed"}`, async () => {
      const found = await passed(authorization(() => (later ? Promise.resolve(decision) : decision)));
      assert.equal(found.isThrough, code === undefined);
      if (code !== undefined) assert.equal(found.code, code);
    });
  }
}

for (const { name, answer, counted, refused, logged = [] } of [
  { name: "good", answer: () => ({ user: jane }), counted: "success", refused: 0 },
  { name: "none", answer: () => undefined, counted: "failure", refused: 1 },
  { name: "for others", answer: () => ({ user: jane, audiences: ["other"] }), counted: "error", refused: 1 },
  {
    name: "wrong",
    answer: () => {
      throw new Error("it is revoked");
    },
    counted: "error",
    refused: 1,
    logged: ["it is revoked"],
  },
  {
    name: "not verified by a backend that is away",
    answer: () => {
      throw new StatusError({ kind: "Status", apiVersion: "v1", metadata: {}, status: "Failure", code: 503 });
    },
    counted: "error",
    refused: 0,
  },
] as { name: string; answer: () => unknown; counted: string; refused: number; logged?: string[] }[]) {
  test(`a credential that is ${name} counts as ${counted}, and ${refused === 0 ? "is no refusal" : "is refused before its answer"}`, async () => {
    const registry = newMetricsRegistry();
    const metrics = newRequestMetrics(registry);
    const clock = newFakeClock();
    const [refusals, reasons]: [string[], unknown[]] = [[], []];
    const options = {
      ...{ clock, metrics, apiAudiences: ["api"] },
      log: { ...discardLogger, warn: (_: string, fields?: { err?: unknown }) => void reasons.push(fields?.err) },
      authenticate: (async () => {
        await clock.advance(2_000);
        return answer();
      }) as Authenticator,
      onRefused: async ({ info }: ServerRequest) => void refusals.push(info.path),
    };
    await passed(authentication(options));
    const counts = ["success", "failure", "error"].filter((result) => metrics.authenticationAttempts.labels(result).value === 1);
    assert.deepEqual([counts, refusals.length, reasons], [[counted], refused, logged]);
    assert.match(await registry.render(), new RegExp(`^authentication_duration_seconds_sum\\{result="${counted}"\\} 2$`, "m"));
  });
}

for (const [user, label] of [
  ["jane", "other"],
  ["jane@example.com", "email_id"],
  ...["admin", "client", "kube_proxy", "kubelet"].map((name) => [name, name] as const),
  ["kube-proxy", "other"],
  ["system:serviceaccount:kube-system:default", "system:serviceaccount:kube-system:default"],
] as const) {
  test(`the user ${user} is ${label} in metrics`, async () => {
    const metrics = newRequestMetrics(newMetricsRegistry());
    const auditAnnotations = { a: "b" };
    const authenticate: Authenticator = async () => ({ user: { name: user, groups: [] }, auditAnnotations });
    const options = { clock: realClock, authenticate, apiAudiences: [], metrics, log: discardLogger };
    const { request } = await passed(authentication(options));
    assert.equal(metrics.authenticatedUserRequests.labels(label).value, 1);
    assert.deepEqual([request.user.name, request.credentialNotes], [user, auditAnnotations]);
  });
}

for (const { decision, annotations } of [
  { decision: { decision: "allow", reason: "RBAC" }, annotations: { decision: "allow", reason: "RBAC" } },
  { decision: { decision: "allow" }, annotations: { decision: "allow", reason: "" } },
  { decision: { decision: "deny", reason: "never" }, annotations: { decision: "forbid", reason: "never" } },
  { decision: { decision: "no-opinion", error: new Error("away"), reason: "x" }, annotations: { reason: "internal error" } },
] as { decision: Decision; annotations: Record<string, string> }[]) {
  test(`an authorizer's ${decision.decision}${decision.error ? " with an error" : ""} is audited as ${JSON.stringify(annotations)}`, async () => {
    const audited: Record<string, string> = {};
    const audit = { annotate: (key: string, value: string) => Object.assign(audited, { [key]: value }) };
    await passed((request, next) => {
      request.audit = audit as unknown as AuditTrail; // cast: no other part is used
      return authorization(() => decision)(request, next);
    });
    const wanted = Object.entries(annotations).map(([key, value]) => [`authorization.k8s.io/${key}`, value]);
    assert.deepEqual(audited, Object.fromEntries(wanted));
  });
}

for (const [reason, end] of [
  ["", ""],
  ["RBAC: no roles", ": RBAC: no roles"],
] as const) {
  test(`a request without a right is refused${reason && " for a reason, which stands at the end"}`, async () => {
    const { thrown } = await passed(authorization(() => ({ decision: "no-opinion", reason })));
    assert.equal((thrown as Error).message, `forbidden: User "system:anonymous" cannot get path "/api"${end}`);
  });
}

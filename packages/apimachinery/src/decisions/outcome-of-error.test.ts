import assert from "node:assert/strict";
import { test } from "node:test";
import {
  conflict,
  forbidden,
  internalError,
  StatusError,
  serverTimeout,
  tooManyRequests,
} from "../objects/errors/status-error.ts";
import { pods } from "../objects/schema/kinds/resources.ts";
import { DecidedError, outcomeOfError } from "./outcome-of-error.ts";

const quota = "exceeded quota: mem, requested: requests.memory=1Gi, used: requests.memory=4Gi, limited: requests.memory=4Gi";

function inEndingNamespace(): StatusError {
  const { status } = forbidden(pods, "a", "no");
  return new StatusError({ ...status, details: { ...status.details, causes: [{ reason: "NamespaceTerminating" }] } });
}

for (const { name, err, want } of [
  { name: "quota", err: forbidden(pods, "a", quota), want: ["refused", "QuotaExceeded"] },
  {
    name: "webhook's no",
    err: forbidden(pods, "a", 'admission webhook "w" denied the request: no'),
    want: ["refused", "WebhookDenied"],
  },
  {
    name: "webhook away",
    err: internalError(new Error('failed calling webhook "w": failed to call webhook: connect ECONNREFUSED')),
    want: ["failed", "WebhookFailed"],
  },
  {
    name: "pod security",
    err: forbidden(pods, "a", 'violates PodSecurity "restricted:latest"'),
    want: ["refused", "PodSecurityViolated"],
  },
  {
    name: "a quota that wants more to be said",
    err: forbidden(pods, "a", "failed quota: mem: must specify requests.memory"),
    want: ["refused", "QuotaExceeded"],
  },
  {
    name: "webhook that cannot be called",
    err: internalError(new Error('failed to call webhook: Post "https://w": EOF')),
    want: ["failed", "WebhookFailed"],
  },
  {
    name: "webhook that failed",
    err: internalError(new Error('failed calling webhook "w": no')),
    want: ["failed", "WebhookFailed"],
  },
  {
    name: "pod security policy",
    err: forbidden(pods, "a", "unable to validate against any pod security policy: []"),
    want: ["refused", "PodSecurityViolated"],
  },
  ...["ECONNREFUSED", "ECONNRESET", "ETIMEDOUT", "EHOSTUNREACH", "ENETUNREACH", "ENOTFOUND", "EAI_AGAIN"].map((code) => ({
    name: `the code ${code}`,
    err: Object.assign(new Error("no connection"), { code }),
    want: ["failed", "Unreachable"],
  })),
  { name: "another code", err: Object.assign(new Error("no file"), { code: "ENOENT" }), want: ["failed", "Failed"] },
  { name: "rights", err: forbidden(pods, "a", "no"), want: ["refused", "Forbidden"] },
  { name: "a namespace that ends", err: inEndingNamespace(), want: ["refused", "NamespaceTerminating"] },
  {
    name: "invalid",
    err: new StatusError({ metadata: {}, code: 422, reason: "Invalid", message: "m" }),
    want: ["refused", "Invalid"],
  },
  { name: "conflict", err: conflict(pods, "a", "changed"), want: ["failed", "Conflict"] },
  { name: "too many", err: tooManyRequests("later", 1), want: ["refused", "TooManyRequests"] },
  { name: "time", err: serverTimeout(pods, "create", 1), want: ["failed", "ServerTimeout"] },
  { name: "any error", err: new Error("broken"), want: ["failed", "Failed"] },
  { name: "no error", err: "text", want: ["failed", "Failed"] },
  {
    name: "connection",
    err: new Error("x", { cause: new Error("connect ECONNREFUSED 127.0.0.1:1") }),
    want: ["failed", "Unreachable"],
  },
]) {
  test(`names the reason of a failure: ${name}`, () => {
    const { verdict, reason, nextTryMs } = outcomeOfError(new Error("cannot create it", { cause: err }), 7);
    assert.deepEqual([verdict, reason, nextTryMs], [...want, 7]);
  });
}

test("the text has all causes, and the decision of a DecidedError takes precedence", () => {
  const { description } = outcomeOfError(new Error("cannot create it", { cause: forbidden(pods, "a", quota) }));
  assert.match((description as { summary: string }).summary, /^cannot create it: .*exceeded quota: mem, requested/);
  const decided = new DecidedError("m", { verdict: "waiting", reason: "FinalizerPending", description: "waits" });
  assert.deepEqual(outcomeOfError(new Error("outer", { cause: decided }), 7), { ...decided.outcome, nextTryMs: 7 });
  const planned = new DecidedError("m", { ...decided.outcome, nextTryMs: 5 });
  assert.equal(outcomeOfError(planned).nextTryMs, 5, "its own next attempt, unless there is another");
});

test("a webhook's long text is shortened", () => {
  const text = "x".repeat(1_000_000);
  for (const err of [forbidden(pods, "a", text), new StatusError({ metadata: {}, code: 400, reason: text, message: text })]) {
    const { description, reason } = outcomeOfError(err);
    assert.ok((description as { summary: string }).summary.length < 2_100);
    assert.ok(reason.length < 2_100);
  }
});

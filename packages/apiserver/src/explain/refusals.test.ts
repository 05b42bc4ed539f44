import assert from "node:assert/strict";
import { test } from "node:test";
import { refusedProblem } from "./refusals.ts";

const forbidden = 'pods "web-1" is forbidden: ';

for (const [message, reason, says] of [
  [
    `${forbidden}exceeded quota: q, requested: cpu=2,pods=1, used: cpu=1,pods=3, limited: cpu=2,pods=3`,
    "QuotaExceeded",
    "quota q does not allow it: requested cpu=2,pods=1, used cpu=1,pods=3, limited to cpu=2,pods=3",
  ],
  [
    `${forbidden}failed quota: q: must specify limits.cpu,requests.memory`,
    "QuotaNeedsRequests",
    "quota q demands that every container specifies limits.cpu,requests.memory",
  ],
  [
    'Internal error occurred: failed calling webhook "a.b.c": Post "https://x": dial\n  tcp: refused',
    "WebhookFailed",
    'admission webhook a.b.c cannot be called: Post "https://x": dial tcp: refused',
  ],
  ['admission webhook "a.b.c" denied the request: no root', "WebhookDenied", "admission webhook a.b.c refuses it: no root"],
  [
    'admission webhook "a.b.c" denied the request: \n\nresource Pod/web-1 was blocked\n\nrule: no root\n',
    "WebhookDenied",
    "admission webhook a.b.c refuses it: resource Pod/web-1 was blocked rule: no root",
  ],
  ['admission webhook "a.b.c" denied the request', "FailedCreate", undefined],
  [
    `${forbidden}error looking up service account default/app: serviceaccount "app" not found`,
    "ServiceAccountMissing",
    "service account app does not exist",
  ],
  [`${forbidden}service account default/app was not found, retry`, "ServiceAccountMissing", "service account app does not exist"],
  [
    `${forbidden}violates PodSecurity "restricted:latest": privileged (container "c")`,
    "PodSecurity",
    'pod security level restricted:latest of the namespace forbids it: privileged (container "c")',
  ],
  [
    `${forbidden}[maximum cpu usage per Container is 2, but limit is 3, minimum memory usage per Pod is 1Gi, but request is 0]`,
    "LimitRange",
    "a LimitRange of the namespace forbids it: maximum cpu usage per Container is 2, but limit is 3, minimum memory usage per Pod is 1Gi, but request is 0",
  ],
  [
    `${forbidden}cpu max limit to request ratio per Container is 2, but provided ratio is 3.000000`,
    "LimitRange",
    "a LimitRange of the namespace forbids it: cpu max limit to request ratio per Container is 2, but provided ratio is 3.000000",
  ],
  [
    `${forbidden}[memory max limit to request ratio per Pod is 2, but no limit is specified or limit is 0]`,
    "LimitRange",
    "a LimitRange of the namespace forbids it: memory max limit to request ratio per Pod is 2, but no limit is specified or limit is 0",
  ],
  [`${forbidden}no PriorityClass with name high was found`, "PriorityClassMissing", "priority class high does not exist"],
  [`${forbidden}pod rejected: RuntimeClass "kata" not found`, "RuntimeClassMissing", "runtime class kata does not exist"],
  [
    `${forbidden}PodSecurityPolicy: unable to admit pod: [spec.hostNetwork: not allowed]`,
    "Forbidden",
    "admission refuses it: [spec.hostNetwork: not allowed]",
  ],
  ["something\n  else", "FailedCreate", "something else"],
  [undefined, "FailedCreate", ""],
] as const) {
  test(`that pods cannot be created is explained by ${reason}: ${message?.slice(0, 80)}`, () => {
    const problem = refusedProblem(message, "controller", { since: "then" });
    assert.deepEqual([problem.by, problem.reason, problem.since], ["controller", reason, "then"]);
    if (says !== undefined) assert.equal(problem.summary, `pods cannot be created: ${says}`);
    assert.equal(problem.remedy === undefined, reason === "FailedCreate");
  });
}

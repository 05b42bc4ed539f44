import assert from "node:assert/strict";
import { test } from "node:test";
import { notFound, StatusError } from "@coxswain/apimachinery/objects/errors/status-error";
import { EtcdError, statusErrorOf } from "./errors.ts";

for (const { reason, code, want, message, retry } of [
  { reason: "compacted", code: 410, want: "Expired", message: "The resourceVersion for the provided list is too old." },
  { reason: "too-large", code: 413, want: "RequestEntityTooLarge", message: /etcdserver: request is too large/ },
  { reason: "unavailable", code: 503, want: "ServiceUnavailable", message: "etcd is unavailable: what etcd said" },
  { reason: "unsent", code: 503, want: "ServiceUnavailable", message: "etcd is unavailable: what etcd said" },
  { reason: "deadline", code: 504, want: "Timeout", message: "Timeout: etcdserver: request timed out", retry: 1 },
  { reason: "no-space", code: 500, want: "InternalError", message: /what etcd said/ },
  { reason: "future-revision", code: 500, want: "InternalError", message: /what etcd said/ },
  { reason: "canceled", code: 500, want: "InternalError", message: /what etcd said/ },
  { reason: "other", code: 500, want: "InternalError", message: /what etcd said/ },
] as const) {
  test(`clients of the API get ${code} for an etcd call that failed as ${reason}`, () => {
    const cause = new EtcdError(reason, "what etcd said");
    const status = statusErrorOf(cause);
    assert.ok(status instanceof StatusError);
    assert.deepEqual([status.code, status.reason, status.status.details?.retryAfterSeconds], [code, want, retry]);
    if (typeof message === "string") assert.equal(status.message, message);
    else assert.match(status.message, message);
    assert.equal(status.cause, cause);
  });
}

test("an error that is not etcd's, and one that was converted before, stay as they are", () => {
  for (const err of [new Error("a bug"), notFound({ group: "", resource: "pods" }, "a")]) assert.equal(statusErrorOf(err), err);
});

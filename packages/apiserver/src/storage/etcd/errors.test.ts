import assert from "node:assert/strict";
import { test } from "node:test";
import { notFound, StatusError } from "@coxswain/apimachinery/objects/errors/status-error";
import { GrpcError } from "@coxswain/apimachinery/transport/grpc/grpc-error";
import { EtcdError, etcdErrorOf, statusErrorOf } from "./errors.ts";

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

for (const [code, text, want] of [
  [11, "etcdserver: mvcc: required revision has been compacted", "compacted"],
  [11, "etcdserver: mvcc: required revision is a future revision", "future-revision"],
  [3, "etcdserver: request is too large", "too-large"],
  [8, "trying to send message larger than max (3 vs. 2)", "too-large"],
  [8, "etcdserver: mvcc: database space exceeded", "no-space"],
  [1, "canceled", "canceled"],
  [4, "etcdserver: request timed out", "deadline"],
  [14, "etcdserver: leader changed", "unavailable"],
  [14, "etcdserver: no leader", "unsent"],
  [14, "No connection established", "unsent"],
  [14, "connect ECONNREFUSED 127.0.0.1:1", "unsent"],
  [14, "getaddrinfo ENOTFOUND etcd", "unsent"],
  [14, "connect EHOSTUNREACH 10.0.0.1:1", "unsent"],
  [14, "Name resolution failed", "unsent"],
  [13, "connect ECONNREFUSED 127.0.0.1:1", "other"],
  [16, "etcdserver: invalid auth token", "other"],
] as const) {
  test(`etcd's code ${code} with ${JSON.stringify(text)} is ${want}`, () => {
    const cause = new GrpcError(code, text);
    const { reason, message, cause: kept } = etcdErrorOf(cause);
    assert.deepEqual({ reason, message, kept }, { reason: want, message: text, kept: cause });
  });
}

test("a call that no member has processed may be sent again, whatever it ended with; what is no etcd error is other", () => {
  const unprocessed = new GrpcError(13, "GOAWAY", { unprocessed: true });
  const bug = new TypeError("a bug");
  const known = new EtcdError("compacted", "x");
  assert.equal(etcdErrorOf(known), known);
  assert.deepEqual(
    [unprocessed, bug, "thrown text"].map((cause) => {
      const { reason, message } = etcdErrorOf(cause);
      return [reason, message];
    }),
    [
      ["unsent", "GOAWAY"],
      ["other", "a bug"],
      ["other", "thrown text"],
    ],
  );
});

import assert from "node:assert/strict";
import { test } from "node:test";
import { isLongRunning, isReadOnly, parseRequestInfo } from "./request-info.ts";

for (const { method = "GET", url, want } of [
  { url: "/api/v1/namespaces", want: { verb: "list", resource: "namespaces", namespace: "", name: "" } },
  { url: "/api/v1/namespaces/other", want: { verb: "get", resource: "namespaces", namespace: "other", name: "other" } },
  {
    url: "/api/v1/namespaces/other/finalize",
    method: "PUT",
    want: { verb: "update", resource: "namespaces", namespace: "other", name: "other", subresource: "finalize" },
  },
  { url: "/api/v1/namespaces/other/pods", want: { verb: "list", resource: "pods", namespace: "other", name: "" } },
  { url: "/api/v1/namespaces/other/pods/", want: { verb: "list", resource: "pods", namespace: "other", name: "" } },
  {
    url: "/api/v1/namespaces/other/pods/foo/status",
    method: "PATCH",
    want: { verb: "patch", resource: "pods", name: "foo", subresource: "status" },
  },
  { url: "/api/v1/pods?watch=true", want: { verb: "watch", resource: "pods", namespace: "" } },
  { url: "/api/v1/pods?watch", want: { verb: "watch" } },
  { url: "/api/v1/pods?watch=false", want: { verb: "list" } },
  { url: "/api/v1/pods/x?watch=true", want: { verb: "get", name: "x" } },
  { url: "/api/v1/watch/namespaces/other/pods", want: { verb: "watch", resource: "pods", namespace: "other" } },
  { url: "/api/v1/proxy/namespaces/other/pods/foo", want: { verb: "proxy", resource: "pods", name: "foo", subresource: "" } },
  { url: "/api/v1/pods?fieldSelector=metadata.name%3Dfoo&watch=1", want: { verb: "watch", name: "foo" } },
  { url: "/api/v1/pods?fieldSelector=metadata.name!=foo", want: { verb: "list", name: "" } },
  { url: "/api/v1/pods?fieldSelector=spec.nodeName%3Da,metadata.name%3D%3Dfoo", want: { verb: "list", name: "foo" } },
  // The escaped comma belongs to the value, which does not require a name.
  { url: "/api/v1/pods?fieldSelector=metadata.namespace!=x\\,metadata.name=foo", want: { verb: "list", name: "" } },
  { url: "/api/v1/pods?fieldSelector=metadata.name=foo\\,b", want: { verb: "list", name: "foo,b" } },
  { url: "/api/v1/pods?fieldSelector=metadata.name=foo,nonsense&watch=1", want: { verb: "watch", name: "" } },
  { url: "/api/v1/pods?fieldSelector=metadata.name=..", want: { verb: "list", name: "" } },
  { url: "/api/v1/pods?fieldSelector=metadata.name=a%2525b", want: { verb: "list", name: "" } },
  { url: "/api/v1/pods?fieldSelector=metadata.name=a/b", want: { verb: "list", name: "" } },
  {
    url: "/apis/apps/v1/namespaces/web/deployments",
    method: "DELETE",
    want: {
      verb: "deletecollection",
      group: "apps",
      version: "v1",
      resource: "deployments",
      namespace: "web",
    },
  },
  {
    url: "/api/v1/namespaces/a/configmaps/x%3Ay",
    want: { verb: "get", name: "x:y", path: "/api/v1/namespaces/a/configmaps/x:y" },
  },
  { url: "/api/v1/pods?watch=0", want: { verb: "list" } },
  { url: "/api/v1/pods?watch=FALSE", want: { verb: "list" } },
  { url: "/api/v1/pods?watch=1", method: "DELETE", want: { verb: "deletecollection", name: "" } },
  { url: "/api/v1/pods?fieldSelector=metadata.name%3Dfoo", method: "DELETE", want: { verb: "deletecollection", name: "" } },
  { url: "/api/v1/namespaces/other/status", want: { verb: "get", resource: "namespaces", name: "other", subresource: "status" } },
  { url: "/api/v1/namespaces/other/statuses", want: { verb: "list", resource: "statuses", namespace: "other", name: "" } },
  {
    url: "/apis/apps/v1/watch/deployments",
    want: { verb: "watch", group: "apps", legacyPrefix: "watch", parts: ["deployments"] },
  },
  { url: "/apis/apps", want: { isResourceRequest: false } },
  { url: "/other/v1/pods/x", want: { isResourceRequest: false } },
  { url: "/apis/apps/v1", want: { isResourceRequest: false, verb: "get", path: "/apis/apps/v1" } },
  { url: "/api/v1", want: { isResourceRequest: false } },
  { url: "/", want: { isResourceRequest: false, path: "/", verb: "get" } },
  { url: "/healthz?verbose", method: "POST", want: { isResourceRequest: false, path: "/healthz", verb: "post" } },
]) {
  test(`reads ${method} ${url}`, () => {
    assert.partialDeepStrictEqual(parseRequestInfo(method, url), want);
  });
}

test("refuses a broken percent escape and a legacy verb without a resource", () => {
  assert.throws(() => parseRequestInfo("GET", "/api/v1/pods/%zz"));
  assert.throws(() => parseRequestInfo("GET", "/api/v1/watch"), /unable to determine kind and namespace/);
});

test("knows the requests that stay open", () => {
  const long = (url: string): boolean => isLongRunning(parseRequestInfo("GET", url));
  assert.equal(long("/api/v1/pods?watch=1"), true);
  assert.equal(long("/api/v1/namespaces/a/pods/b/log"), true);
  for (const subresource of ["exec", "attach", "portforward", "proxy"]) {
    assert.equal(long(`/api/v1/namespaces/a/pods/b/${subresource}`), true, subresource);
  }
  assert.equal(long("/api/v1/namespaces/a/pods/b"), false);
  assert.equal(long("/healthz"), false);
  assert.equal(long("/api/v1/proxy/namespaces/a/pods/b"), true);
  assert.equal(long("/debug/pprof/profile"), true);
  assert.equal(long("/debug/pprof"), false);
});

test("only get, list and watch count as reads", () => {
  const reads = (method: string, url: string): boolean => isReadOnly(parseRequestInfo(method, url));
  assert.deepEqual(
    ["/api/v1/pods/a", "/api/v1/pods", "/api/v1/pods?watch=1", "/healthz"].map((url) => reads("GET", url)),
    [true, true, true, true],
  );
  assert.deepEqual(
    ["POST", "PUT", "PATCH", "DELETE"].map((method) => reads(method, "/api/v1/pods/a")),
    [false, false, false, false],
  );
  assert.equal(reads("GET", "/api/v1/proxy/namespaces/a/pods/b"), false);
});

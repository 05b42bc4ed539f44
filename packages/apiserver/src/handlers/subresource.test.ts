import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { hasFields } from "@coxswain/apimachinery/testing/has-fields";
import { startShared, type TestServer } from "./testing.ts";

const deployments = "/apis/apps/v1/namespaces/default/deployments";
const merge = { "content-type": "application/merge-patch+json" };

const aDeployment = (name: string, replicas: number) => ({
  kind: "Deployment",
  apiVersion: "apps/v1",
  metadata: { name },
  spec: {
    replicas,
    selector: { matchLabels: { app: name } },
    template: { metadata: { labels: { app: name } }, spec: { containers: [{ name: "main", image: "busybox" }] } },
  },
});

describe("subresources and virtual resources", () => {
  let server: TestServer;
  before(async () => {
    server = await startShared();
    await server.request("POST", deployments, aDeployment("scaled", 2));
  });
  after(() => server.stop());

  test("scale shows and changes the number of replicas", async () => {
    const shown = await server.request("GET", `${deployments}/scaled/scale`);
    assert.equal(shown.code, 200, shown.raw.toString());
    assert.partialDeepStrictEqual(shown.body, {
      kind: "Scale",
      apiVersion: "autoscaling/v1",
      metadata: { name: "scaled", namespace: "default" },
      spec: { replicas: 2 },
      status: { selector: "app=scaled" },
    });
    const put = await server.request("PUT", `${deployments}/scaled/scale`, { ...shown.body, spec: { replicas: 5 } });
    assert.equal(put.code, 200, put.raw.toString());
    assert.equal(put.body.spec.replicas, 5);
    const patched = await server.request("PATCH", `${deployments}/scaled/scale`, { spec: { replicas: 7 } }, merge);
    assert.equal(patched.code, 200, patched.raw.toString());
    assert.equal((await server.request("GET", `${deployments}/scaled`)).body.spec.replicas, 7);
  });

  for (const { what, method, path, body, headers, code } of [
    {
      what: "a negative scale",
      method: "PATCH",
      path: `${deployments}/scaled/scale`,
      body: { spec: { replicas: -1 } },
      headers: merge,
      code: 422,
    },
    {
      what: "a scale of what is not there",
      method: "PATCH",
      path: `${deployments}/absent/scale`,
      body: {},
      headers: merge,
      code: 404,
    },
    { what: "a scale that is none", method: "PUT", path: `${deployments}/scaled/scale`, body: "[]", code: 400 },
    {
      what: "a status of what is not there",
      method: "PATCH",
      path: `${deployments}/absent/status`,
      body: {},
      headers: merge,
      code: 404,
    },
    { what: "a deletion of a status", method: "DELETE", path: `${deployments}/scaled/status`, code: 405 },
    { what: "an unknown subresource", method: "GET", path: `${deployments}/scaled/shape`, code: 404 },
    { what: "a subresource named like a method of objects", method: "GET", path: `${deployments}/scaled/constructor`, code: 404 },
    { what: "a list of reviews", method: "GET", path: "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", code: 405 },
    {
      what: "an exec without upgrade",
      method: "POST",
      path: "/api/v1/namespaces/default/pods/absent/exec?command=ls",
      code: 404,
    },
    { what: "a log of what is not there", method: "GET", path: "/api/v1/namespaces/default/pods/absent/log", code: 404 },
    {
      what: "a patch of a log",
      method: "PATCH",
      path: "/api/v1/namespaces/default/pods/absent/log",
      body: {},
      headers: merge,
      code: 405,
    },
  ]) {
    test(`${what} is ${code}`, async () => {
      const answer = await server.request(method, path, body, headers);
      assert.equal(answer.code, code, answer.raw.toString());
      assert.equal(answer.body.kind, "Status");
    });
  }

  test("status takes the status and nothing else", async () => {
    const { code, body } = await server.request(
      "PATCH",
      `${deployments}/scaled/status`,
      { spec: { replicas: 40 }, status: { replicas: 3 } },
      merge,
    );
    assert.equal(code, 200);
    assert.equal(body.status.replicas, 3);
    assert.notEqual(body.spec.replicas, 40);
  });

  test("a review is answered with 201 and stores nothing", async () => {
    const { code, body } = await server.request("POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", {
      spec: { resourceAttributes: { verb: "get", resource: "pods" } },
    });
    assert.equal(code, 201);
    assert.equal(body.kind, "SelfSubjectAccessReview");
    assert.equal(body.status.allowed, true);
  });
});

describe("discovery", () => {
  let server: TestServer;
  before(async () => {
    server = await startShared();
  });
  after(() => server.stop());

  test("/api and /apis name versions and groups", async () => {
    const { body: core } = await server.request("GET", "/api");
    hasFields(core, { kind: "APIVersions", versions: ["v1"] });
    assert.equal(core.serverAddressByClientCIDRs[0].clientCIDR, "0.0.0.0/0");
    const { body: groups } = await server.request("GET", "/apis");
    assert.equal(groups.kind, "APIGroupList");
    const apps = groups.groups.find((group: { name: string }) => group.name === "apps");
    assert.deepEqual(apps.preferredVersion, { groupVersion: "apps/v1", version: "v1" });
    assert.deepEqual((await server.request("GET", "/apis/apps")).body, { kind: "APIGroup", apiVersion: "v1", ...apps });
  });

  test("a group version lists its resources and subresources by name", async () => {
    const { body } = await server.request("GET", "/api/v1");
    assert.equal(body.kind, "APIResourceList");
    assert.equal(body.apiVersion, undefined);
    const names = body.resources.map((resource: { name: string }) => resource.name);
    assert.deepEqual(names, [...names].sort());
    for (const name of ["pods", "pods/log", "pods/status", "pods/eviction", "bindings", "nodes/proxy"])
      assert.ok(names.includes(name), name);
    const pods = body.resources.find((resource: { name: string }) => resource.name === "pods");
    assert.deepEqual(pods, {
      name: "pods",
      singularName: "",
      namespaced: true,
      kind: "Pod",
      verbs: ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"],
      shortNames: ["po"],
      categories: ["all"],
      storageVersionHash: "xPOwRZ+Yhw8=",
    });
    const eviction = body.resources.find((resource: { name: string }) => resource.name === "pods/eviction");
    hasFields(eviction, { group: "policy", version: "v1", kind: "Eviction", verbs: ["create"] });
  });

  for (const path of ["/api", "/apis", "/apis/apps", "/apis/apps/v1"]) {
    test(`${path} comes as protobuf too`, async () => {
      const { code, raw } = await server.request("GET", path, undefined, { accept: "application/vnd.kubernetes.protobuf" });
      assert.equal(code, 200);
      assert.equal(raw.subarray(0, 4).toString("latin1"), "k8s\0");
    });
  }

  test("/version says what is emulated", async () => {
    assert.partialDeepStrictEqual((await server.request("GET", "/version")).body, {
      major: "1",
      minor: "23",
      gitVersion: "v1.23.0",
    });
  });

  test("OpenAPI is sent once and then known by its ETag", async () => {
    const accept = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf";
    const first = await server.request("GET", "/openapi/v2", undefined, { accept });
    assert.equal(first.code, 200);
    const again = await server.request("GET", "/openapi/v2", undefined, {
      accept,
      "if-none-match": String(first.headers["etag"]),
    });
    assert.equal(again.code, 304);
    assert.equal((await server.request("GET", "/openapi/v2", undefined, { accept: "text/html" })).code, 406);
    const json = await server.request("GET", "/openapi/v2");
    assert.equal(json.body.swagger, "2.0");
  });

  for (const { method, path, code } of [
    { method: "GET", path: "/apis/nothing.example.com", code: 404 },
    { method: "GET", path: "/apis/apps/v9", code: 404 },
    { method: "GET", path: "/nothing", code: 404 },
    { method: "POST", path: "/apis/apps/v1", code: 405 },
  ]) {
    test(`${method} ${path} is ${code}`, async () => assert.equal((await server.request(method, path)).code, code));
  }
});

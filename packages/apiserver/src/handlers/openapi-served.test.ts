import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { startShared, type TestServer } from "./testing.ts";

const protobufV2 = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf";

describe("with OpenAPIV3 and OpenAPIEnums", () => {
  let server: TestServer;
  before(async () => {
    server = await startShared(["--feature-gates=OpenAPIV3=true,OpenAPIEnums=true"]);
  });
  after(() => server.stop());

  test("/openapi/v3 names its documents, and each describes what is served there", async () => {
    const { body } = await server.request("GET", "/openapi/v3");
    for (const root of ["api", "api/v1", "apis", "apis/apps", "apis/apps/v1", "version"])
      assert.ok(body.Paths.includes(root), root);
    assert.deepEqual(body.Paths, [...body.Paths].sort());
    const apps = await server.request("GET", "/openapi/v3/apis/apps/v1");
    assert.equal(apps.body.openapi, "3.0.0");
    assert.ok(Object.keys(apps.body.paths).every((path) => path.startsWith("/apis/apps/v1/")));
    assert.ok(apps.body.paths["/apis/apps/v1/namespaces/{namespace}/deployments/{name}/scale"].patch);
    assert.ok(apps.body.components.schemas["io.k8s.api.apps.v1.Deployment"]);
    const { etag = "" } = apps.headers;
    const again = await server.request("GET", "/openapi/v3/apis/apps/v1", undefined, { "if-none-match": String(etag) });
    assert.equal(again.code, 304);
  });

  test("/openapi/v3 is served as protobuf too, and an unknown group version is empty", async () => {
    const accept = "application/com.github.proto-openapi.spec.v3@v1.0+protobuf";
    const { code, headers } = await server.request("GET", "/openapi/v3/api/v1", undefined, { accept });
    assert.equal(code, 200);
    assert.equal(headers["content-type"], "application/octet-stream");
    const none = await server.request("GET", "/openapi/v3/apis/nothing.example.com/v1");
    assert.deepEqual([none.code, none.body ?? ""], [200, ""]);
  });

  test("fields of enumerated types list their values", async () => {
    const { body } = await server.request("GET", "/openapi/v2");
    assert.deepEqual(body.definitions["io.k8s.api.core.v1.ServicePort"].properties.protocol.enum, ["SCTP", "TCP", "UDP"]);
  });

  test("/ lists the paths of v3", async () => {
    const { body } = await server.request("GET", "/");
    assert.ok(body.paths.includes("/openapi/v3") && body.paths.includes("/openapi/v3/"));
  });
});

describe("by default", () => {
  let server: TestServer;
  before(async () => {
    server = await startShared();
  });
  after(() => server.stop());

  test("there is no v3", async () => {
    assert.equal((await server.request("GET", "/openapi/v3")).code, 404);
    assert.equal((await server.request("GET", "/openapi/v3/api/v1")).code, 404);
  });

  test("every path that discovery names has its operations", async () => {
    const [{ body: document }, { body: discovered }] = await Promise.all([
      server.request("GET", "/openapi/v2"),
      server.request("GET", "/apis/apps/v1"),
    ]);
    const methods: Record<string, string> = { get: "get", create: "post", update: "put", patch: "patch", delete: "delete" };
    for (const { name, verbs } of discovered.resources as { name: string; verbs: string[] }[]) {
      const [resource, subresource] = name.split("/");
      const path = `/apis/apps/v1/namespaces/{namespace}/${resource}/{name}${subresource === undefined ? "" : `/${subresource}`}`;
      for (const verb of verbs.filter((one) => Object.hasOwn(methods, one) && (one !== "create" || subresource !== undefined))) {
        assert.ok(document.paths[path]?.[methods[verb] as string], `${verb} ${path}`);
      }
    }
    assert.ok(document.paths["/api/v1/namespaces/{namespace}/pods/{name}/exec"].get);
    assert.ok(document.paths["/api/v1/watch/namespaces/{namespace}/pods"].get);
  });

  test("a client with the current ETag or modification time gets 304", async () => {
    const { headers } = await server.request("GET", "/openapi/v2");
    assert.match(String(headers.etag), /^"[0-9A-F]{128}"$/);
    const modified = String(headers["last-modified"]);
    const conditions: Record<string, string>[] = [
      { "if-none-match": String(headers.etag) },
      { "if-none-match": `W/"other", ${headers.etag}` },
      { "if-modified-since": modified },
    ];
    for (const condition of conditions) {
      const { code, headers } = await server.request("GET", "/openapi/v2", undefined, condition);
      assert.deepEqual([code, headers["content-type"]], [304, undefined], JSON.stringify(condition));
    }
    const head = await server.request("HEAD", "/openapi/v2");
    assert.deepEqual([head.code, head.headers.etag], [200, headers.etag]);
    assert.equal((await server.request("POST", "/openapi/v2")).code, 405);
    const stale = { "if-none-match": '"other"', "if-modified-since": modified };
    assert.equal((await server.request("GET", "/openapi/v2", undefined, stale)).code, 200);
    const other = await server.request("GET", "/openapi/v2", undefined, { accept: protobufV2 });
    assert.notEqual(other.headers.etag, headers.etag);
  });
});

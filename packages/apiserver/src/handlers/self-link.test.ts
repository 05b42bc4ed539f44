import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { aConfigMap, startShared, type TestServer } from "./testing.ts";

const maps = "/api/v1/namespaces/default/configmaps";

describe("with RemoveSelfLink=false", () => {
  let server: TestServer;
  before(async () => {
    server = await startShared(["--feature-gates=RemoveSelfLink=false"]);
    const created = await server.request("POST", maps, {
      ...aConfigMap("linked"),
      metadata: { name: "linked", selfLink: "/foo" },
    });
    assert.equal(created.body.metadata.selfLink, `${maps}/linked`);
  });
  after(() => server.stop());

  for (const { path, list, item } of [
    { path: `${maps}/linked`, item: `${maps}/linked` },
    { path: `${maps}?limit=500&fieldSelector=metadata.name=linked`, list: maps, item: `${maps}/linked` },
    { path: "/api/v1/configmaps?fieldSelector=metadata.name=linked", list: "/api/v1/configmaps", item: `${maps}/linked` },
    { path: "/api/v1/namespaces/default", item: "/api/v1/namespaces/default" },
    { path: "/api/v1/namespaces/default/status", item: "/api/v1/namespaces/default/status" },
    { path: "/api/v1/namespaces/default/pods", list: "/api/v1/namespaces/default/pods" },
    { path: "/apis/policy/v1beta1/poddisruptionbudgets", list: "/apis/policy/v1beta1/poddisruptionbudgets" },
    {
      path: "/api/v1/componentstatuses",
      list: "/api/v1/componentstatuses",
      item: "/api/v1/componentstatuses/controller-manager",
    },
  ]) {
    test(`GET ${path} names its path`, async () => {
      const { body, raw } = await server.request("GET", path);
      const first = list === undefined ? body : body.items[0];
      assert.deepEqual([list && body.metadata.selfLink, first?.metadata.selfLink], [list, item], raw.toString());
    });
  }

  test("rows of a table, metadata alone, protobuf and events name it too", async () => {
    const wanted = (as: string) => ({ accept: `application/json;as=${as};g=meta.k8s.io;v=v1` });
    const only = `${maps}?fieldSelector=metadata.name=linked`;
    const table = await server.request("GET", only, undefined, wanted("Table"));
    assert.deepEqual([table.body.metadata.selfLink, table.body.rows[0].object.metadata.selfLink], [maps, `${maps}/linked`]);
    const metadata = await server.request("GET", only, undefined, wanted("PartialObjectMetadataList"));
    assert.equal(metadata.body.items[0].metadata.selfLink, `${maps}/linked`);
    const protobuf = await server.request("GET", only, undefined, { accept: "application/vnd.kubernetes.protobuf" });
    assert.ok(protobuf.raw.includes(`${maps}/linked`));
    const watch = await server.watch(`${only}&watch=1`);
    assert.equal((await watch.next()).object.metadata.selfLink, `${maps}/linked`);
    watch.close();
  });

  test("a review without a name has none", async () => {
    const review = { spec: { resourceAttributes: { verb: "get", resource: "pods" } } };
    const { body } = await server.request("POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", review);
    assert.equal(body.metadata.selfLink, undefined);
  });
});

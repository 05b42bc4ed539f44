/** The API server's part of the gate DynamicKubeletConfig; the remainder belongs to the node agent. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { waitFor } from "@coxswain/apimachinery/testing/wait-for";
import { newHttp, startTestServer } from "../testing/start-test-server.ts";

const nodes = "/api/v1/nodes";
const maps = "/api/v1/namespaces/kube-system/configmaps";
const mergePatch = { "content-type": "application/merge-patch+json" };
const configMap = { namespace: "kube-system", name: "settings", kubeletConfigKey: "kubelet" };
const inUse = { configMap: { ...configMap, uid: "1", resourceVersion: "2" } };

test("DynamicKubeletConfig=true: a node's agent may read the config map that its source of configuration names", async (t) => {
  const server = await startTestServer(t, ["--feature-gates=DynamicKubeletConfig=true"]);
  for (const name of ["settings", "strange"]) await server.request("POST", maps, { metadata: { name } });
  for (const name of ["n1", "n2"]) await server.request("POST", nodes, { metadata: { name } });
  const agentOf = async (node: string) => {
    const certificate = await server.clientCertificate(`system:node:${node}`, ["system:nodes"]);
    const http = newHttp(server.url, server.ca, certificate);
    t.after(() => http.close());
    return async (path: string): Promise<number> => (await http.request("GET", path)).code;
  };
  const [own, other] = [await agentOf("n1"), await agentOf("n2")];
  assert.equal(await own(`${maps}/settings`), 403);
  const set = await server.request("PATCH", `${nodes}/n1`, { spec: { configSource: { configMap } } }, mergePatch);
  assert.deepEqual(set.body.spec.configSource, { configMap });
  assert.equal(set.headers.warning, '299 - "spec.configSource: deprecated in v1.22, support removal is planned in v1.23"');
  await waitFor(async () => (await own(`${maps}/settings`)) === 200, { what: "the right of the node" });
  assert.equal(await own(`${maps}?fieldSelector=metadata.name%3Dsettings`), 200);
  assert.deepEqual([await own(`${maps}/strange`), await own(maps), await other(`${maps}/settings`)], [403, 403, 403]);
  const reported = await server.request("PATCH", `${nodes}/n1/status`, { status: { config: { active: inUse } } }, mergePatch);
  assert.deepEqual([reported.code, reported.body.status.config], [200, { active: inUse }]);
  await server.request("PATCH", `${nodes}/n1`, { spec: { configSource: null } }, mergePatch);
  await waitFor(async () => (await own(`${maps}/settings`)) === 403, { what: "the end of the node's right" });
});

test("DynamicKubeletConfig=false: sources of configuration are dropped, in spec and in status", async (t) => {
  const server = await startTestServer(t);
  const [spec, status] = [{ configSource: { configMap } }, { config: { active: inUse } }];
  const made = await server.request("POST", nodes, { metadata: { name: "n1" }, spec, status });
  const set = await server.request("PATCH", `${nodes}/n1`, { spec }, mergePatch);
  const reported = await server.request("PATCH", `${nodes}/n1/status`, { status }, mergePatch);
  for (const { code, body } of [made, set, reported]) {
    assert.ok(code === 200 || code === 201);
    assert.deepEqual([body.spec.configSource, body.status.config], [undefined, undefined]);
  }
});

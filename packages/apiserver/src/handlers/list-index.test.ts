import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { startShared, type TestServer } from "./testing.ts";

let server: TestServer;
before(async () => {
  server = await startShared();
});
after(() => server.stop());

const pods = "/api/v1/namespaces/default/pods";

async function counted(name: string, labels: string): Promise<number> {
  const { raw } = await server.request("GET", "/metrics");
  const line = raw
    .toString()
    .split("\n")
    .find((one) => one.startsWith(`${name}{${labels}} `));
  return Number(line?.split(" ")[1] ?? 0);
}

test("a list of one node's pods reads those alone, and says so in the metrics of the cache", async () => {
  await server.request("POST", "/api/v1/namespaces/default/serviceaccounts", { metadata: { name: "default" } });
  for (const [name, nodeName] of [
    ["a", "n1"],
    ["b", "n2"],
    ["c", "n1"],
  ]) {
    const spec = { nodeName, containers: [{ name: "main", image: "busybox" }] };
    const { code } = await server.request("POST", pods, { metadata: { name }, spec });
    assert.equal(code, 201);
  }
  const names = async (selector: string): Promise<string[]> => {
    const { body } = await server.request("GET", `${pods}?fieldSelector=${encodeURIComponent(selector)}`);
    return body.items.map((pod: { metadata: { name: string } }) => pod.metadata.name);
  };
  const index = 'resource_prefix="/pods",index="f:spec.nodeName"';
  assert.deepEqual(await names("spec.nodeName=n1"), ["a", "c"]);
  assert.deepEqual(await names("spec.nodeName=n1,metadata.name!=a"), ["c"]);
  assert.deepEqual(await names("spec.nodeName=elsewhere"), []);
  assert.equal(await counted("apiserver_cache_list_total", index), 3);
  assert.equal(await counted("apiserver_cache_list_fetched_objects_total", index), 4);
  assert.deepEqual(await names("spec.nodeName!=n1"), ["b"]);
  assert.equal(await counted("apiserver_cache_list_total", index), 3);
  assert.ok((await counted("apiserver_cache_list_returned_objects_total", 'resource_prefix="/pods"')) >= 4);
  assert.ok((await counted("apiserver_watch_cache_events_dispatched_total", 'resource="pods"')) >= 3);
});

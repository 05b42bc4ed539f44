/**
 * Bounds, with about threefold slack, on the CPU time of requests in this process including the client. The benchmark
 * measures them individually.
 */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { leastOf, longestTurnOf } from "@coxswain/apimachinery/testing/cpu-time";
import { aConfigMap, configMaps, startShared, type TestServer } from "./testing.ts";

const objects = 300;
let server: TestServer;
before(async () => {
  server = await startShared();
  const value = "a value of some length, as configurations have ".repeat(60);
  const create = (index: number) => server.request("POST", configMaps, aConfigMap(`long-${index}`, { value }, { list: "long" }));
  for (let index = 0; index < objects; index += 50)
    await Promise.all(Array.from({ length: 50 }, (_, more) => create(index + more)));
});
after(() => server.stop());

test("a get from memory takes less than 1 ms of CPU, the client's part included", async () => {
  const get = () => server.request("GET", `${configMaps}/long-7?resourceVersion=0`);
  const gets = async (count: number) => {
    for (let done = 0; done < count; done += 20) await Promise.all(Array.from({ length: 20 }, get));
  };
  await gets(1000);
  const eachMs = await leastOf(1, async () => {
    const before = process.cpuUsage();
    await gets(2000);
    const { user, system } = process.cpuUsage(before);
    return (user + system) / 1000 / 2000;
  });
  assert.ok(eachMs < 1, `${eachMs} ms each`);
});

for (const { form, accept, lists } of [
  { form: "JSON", accept: "application/json", lists: 100 },
  { form: "YAML", accept: "application/yaml", lists: 10 },
  { form: "protobuf", accept: "application/vnd.kubernetes.protobuf", lists: 100 },
  { form: "a Table", accept: "application/json;as=Table;v=v1;g=meta.k8s.io", lists: 100 },
  { form: "metadata", accept: "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io", lists: 10 },
]) {
  test(`${lists} lists at once as ${form} give way to others`, async () => {
    const list = () => server.request("GET", `${configMaps}?labelSelector=list%3Dlong`, undefined, { accept });
    // No client should wait longer than 50 ms, including the client's own part.
    const longestMs = await longestTurnOf(150, async () => {
      const answers = await Promise.all(Array.from({ length: lists }, list));
      for (const { code } of answers) assert.equal(code, 200);
    });
    assert.ok(longestMs < 150, `one turn of the loop took ${longestMs} ms of CPU`);
  });
}

const many = <T>(make: (index: number) => T): T[] => Array.from({ length: 50_000 }, (_, index) => make(index));

for (const { name, type, query, body } of [
  {
    name: "a strategic merge of 50,000 finalizers",
    type: "application/strategic-merge-patch+json",
    query: "",
    body: (round: number) => ({ metadata: { finalizers: many((index) => `example.com/${round}-${index}`) } }),
  },
  {
    name: "an apply of 50,000 keys",
    type: "application/apply-patch+yaml",
    query: "&force=true",
    body: (round: number) => aConfigMap("applied", Object.fromEntries(many((index) => [`${round}-${index}`, ""]))),
  },
]) {
  test(`${name} gives way to others`, async () => {
    const bodies = [0, 1, 2].map((round) => JSON.stringify(body(round)));
    await server.request("POST", configMaps, aConfigMap("applied"));
    const longestMs = await longestTurnOf(250, async (round) => {
      const path = `${configMaps}/applied?fieldManager=m&dryRun=All${query}`;
      const { code } = await server.request("PATCH", path, bodies[round], { "content-type": type });
      assert.ok(code === 200 || code === 201, `${code}`);
    });
    assert.ok(longestMs < 250, `one turn of the loop took ${longestMs} ms of CPU`);
  });
}

/** Bodies with the maximum size and number of values: no event-loop turn exceeds 100 ms, with threefold slack. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { longestTurnOf } from "@coxswain/apimachinery/testing/cpu-time";
import { define, definitionsPath, specOf, widgets } from "../testing/custom-resources.ts";
import { startTestServer } from "../testing/start-test-server.ts";
import { longestTurnMs, sized } from "../testing/turn-sizes.ts";

const server = await startTestServer({ after });
const maps = "/api/v1/namespaces/default/configmaps";
const custom = "/apis/turns.example/v1/namespaces/default/widgets";
const json = "application/json";
/** A request of just below 3 MB; etcd's limit is 1.5 MB, and it rejects larger ones after all the processing. */
const bytes = 3_000_000;
/** The maximum number accepted; an entry with its comma counts as 9/8. */
const values = sized(145_000);
/** The copy of a custom object's map does not yield: a number that stays well below the limit on a loaded machine. */
const customValues = sized(60_000);

const entries = (count: number, mark: string, text = ""): Record<string, string> =>
  Object.fromEntries(Array.from({ length: count }, (_, at) => [`k${at}`, `${mark}${text}`]));
/** Few large entries, and many small ones. */
const shapes: Readonly<Record<string, (mark: string, most?: number) => Record<string, string>>> = {
  // Large bodies usually have many values; the two other shapes take 20 s of CPU time.
  ...(process.env["COX_TEST_LONG"] && {
    "3 MB in 1,000 entries": (mark: string) => entries(1000, mark, "x".repeat(bytes / 1000 - 50)),
    "3 MB in 30,000 entries": (mark: string) => entries(30_000, mark, "x".repeat(bytes / 30_000 - 30)),
  }),
  [`${values} entries`]: (mark, most = values) => entries(most, mark.slice(0, 1)),
};

interface Case {
  readonly name: string;
  readonly method: string;
  readonly path: (round: number) => string;
  readonly type?: string;
  readonly body: (round: number) => string;
}

const containers = (mark: string) =>
  Array.from({ length: sized(10_000) }, (_, at) => ({ name: `c${at}`, image: mark, env: [{ name: "a", value: mark }] }));

const scale = (round: number): string =>
  JSON.stringify({
    apiVersion: "autoscaling/v1",
    kind: "Scale",
    metadata: { name: "many", namespace: "default", labels: entries(sized(80_000), `${round}`) },
    spec: { replicas: 0 },
  });
const scales: readonly Case[] = [
  { method: "PUT", type: json, query: "" },
  { method: "PATCH", type: "application/merge-patch+json", query: "" },
  { method: "PATCH", type: "application/apply-patch+yaml", query: "?force=true&fieldManager=m" },
].map(({ method, type, query }) => ({
  name: `a ${method} of a scale with many labels as ${type}`,
  method,
  path: () => `/apis/apps/v1/namespaces/default/deployments/many/scale${query}`,
  type,
  body: scale,
}));

const cases: readonly Case[] = [
  ...scales,
  ...Object.entries(shapes).flatMap(([shape, data]): Case[] => [
    {
      name: `a create of ${shape}`,
      method: "POST",
      path: () => maps,
      body: (round) => JSON.stringify({ metadata: { name: `new-${round}` }, data: data(`${round}`) }),
    },
    {
      name: `an update to ${shape}`,
      method: "PUT",
      path: () => `${maps}/large`,
      body: (round) => JSON.stringify({ metadata: { name: "large" }, data: data(`${round}`) }),
    },
    ...["merge-patch", "strategic-merge-patch"].map((type) => ({
      name: `a ${type} of ${shape}`,
      method: "PATCH",
      path: () => `${maps}/large`,
      type: `application/${type}+json`,
      body: (round: number) => JSON.stringify({ data: data(`${round}`) }),
    })),
    {
      name: `a JSON patch of ${shape}`,
      method: "PATCH",
      path: () => `${maps}/large`,
      type: "application/json-patch+json",
      body: (round) => JSON.stringify([{ op: "add", path: "/data", value: data(`${round}`) }]),
    },
    {
      name: `an apply of ${shape}`,
      method: "PATCH",
      path: (round) => `${maps}/large?force=true&fieldManager=m${round}`,
      type: "application/apply-patch+yaml",
      body: (round) =>
        JSON.stringify({ apiVersion: "v1", kind: "ConfigMap", metadata: { name: "large" }, data: data(`${round}`) }),
    },
    {
      name: `a custom object of ${shape.replace(`${values}`, `${customValues}`)}`,
      method: "POST",
      path: () => custom,
      body: (round) =>
        JSON.stringify({
          apiVersion: "turns.example/v1",
          kind: "Widget",
          metadata: { name: `new-${round}` },
          spec: { data: data(`${round}`, customValues) },
        }),
    },
    {
      name: `an apply of a custom object of ${shape.replace(`${values}`, `${customValues}`)}`,
      method: "PATCH",
      path: (round) => `${custom}/applied?force=true&fieldManager=m${round}`,
      type: "application/apply-patch+yaml",
      body: (round) =>
        JSON.stringify({
          apiVersion: "turns.example/v1",
          kind: "Widget",
          metadata: { name: "applied" },
          spec: { data: data(`${round}`, customValues) },
        }),
    },
  ]),
  {
    name: "a definition of up to 3 MB",
    method: "POST",
    path: () => definitionsPath,
    body: (round) => {
      const properties = Object.fromEntries(
        Array.from({ length: sized(25_000) }, (_, at) => [`p${at}`, { type: "string", description: "x".repeat(70) }]),
      );
      return JSON.stringify(widgets(`large-${round}.example`, [{ name: "v1", schema: specOf(properties) }]));
    },
  },
  {
    name: "a pod of many containers",
    method: "POST",
    path: () => "/api/v1/namespaces/default/pods",
    body: (round) => JSON.stringify({ metadata: { name: `pod-${round}` }, spec: { containers: containers("i") } }),
  },
  {
    name: "a strategic patch of many containers",
    method: "PATCH",
    path: () => "/apis/apps/v1/namespaces/default/deployments/many",
    type: "application/strategic-merge-patch+json",
    body: (round) => {
      const order = containers("").map(({ name }) => ({ name }));
      const spec = { containers: containers(`r${round}`).reverse(), "$setElementOrder/containers": order.reverse() };
      return JSON.stringify({ spec: { template: { spec } } });
    },
  },
];

before(async () => {
  await server.request("POST", "/api/v1/namespaces/default/serviceaccounts", { metadata: { name: "default" } });
  await define(
    server,
    widgets("turns.example", [
      { name: "v1", schema: specOf({ data: { type: "object", additionalProperties: { type: "string" } } }) },
    ]),
  );
  await server.request("POST", maps, { metadata: { name: "large" }, data: entries(10_000, "y", "y".repeat(80)) });
  const template = { metadata: { labels: { a: "b" } }, spec: { containers: containers("first") } };
  const made = await server.request("POST", "/apis/apps/v1/namespaces/default/deployments", {
    metadata: { name: "many" },
    spec: { replicas: 0, selector: { matchLabels: { a: "b" } }, template },
  });
  assert.equal(made.code, 201, made.text.slice(0, 300));
});

for (const one of cases) {
  test(`${one.name} takes no long turn`, async (t) => {
    let code = 0;
    const request = async (round: number, body: string): Promise<void> => {
      const answer = await server.request(one.method, one.path(round), body, { "content-type": one.type ?? json });
      code = answer.code;
    };
    const longest = await longestTurnOf(longestTurnMs, request, one.body);
    t.diagnostic(`${longest} ms, ${code}`);
    assert.ok(code < 500, `${code}`);
    assert.ok(longest < longestTurnMs, `a turn of ${longest} ms`);
  });
}

test("five creates with many unknown fields at a time take no long turn", async () => {
  const unknown = Array.from({ length: sized(100_000) }, (_, at) => `"f${at}":1`).join();
  const body = `{"metadata":{"generateName":"unknown-"},${unknown}}`;
  const longest = await longestTurnOf(longestTurnMs, async () => {
    const create = () => server.request("POST", maps, body, { "content-type": json });
    for (const { code } of await Promise.all(Array.from({ length: 5 }, create))) assert.equal(code, 201);
  });
  assert.ok(longest < longestTurnMs, `a turn of ${longest} ms`);
});

test("a patch of many nulls takes no long turn, with others of its kind", async () => {
  const body = `{"data":{${Array.from({ length: sized(90_000) }, (_, at) => `"n${at}":null`).join()}}}`;
  const longest = await longestTurnOf(longestTurnMs, async () => {
    const patch = () => server.request("PATCH", `${maps}/large`, body, { "content-type": "application/merge-patch+json" });
    for (const { code } of await Promise.all(Array.from({ length: 5 }, patch))) assert.ok(code < 500, `${code}`);
  });
  assert.ok(longest < longestTurnMs, `a turn of ${longest} ms`);
});

/** Many values in unusual places: no event-loop turn exceeds 100 ms of CPU time of the thread, with threefold slack. */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { longestTurnOf } from "@coxswain/apimachinery/testing/cpu-time";
import { define, specOf, widgets } from "../testing/custom-resources.ts";
import { startTestServer } from "../testing/start-test-server.ts";
import { longestTurnMs, sized } from "../testing/turn-sizes.ts";

const folder = mkdtempSync(join(tmpdir(), "cox-turns-"));
after(() => rmSync(folder, { recursive: true, force: true }));
const policy = join(folder, "policy.yaml");
writeFileSync(
  policy,
  `apiVersion: audit.k8s.io/v1
kind: Policy
rules:
- {level: RequestResponse, namespaces: [audited]}
- {level: None}
`,
);
const server = await startTestServer({ after }, [
  "--feature-gates=ServerSideFieldValidation=true",
  `--audit-policy-file=${policy}`,
  `--audit-log-path=${join(folder, "audit.log")}`,
]);
const maps = "/api/v1/namespaces/default/configmaps";
const custom = "/apis/turns.example/v1/namespaces/default/widgets";
const json = "application/json";
const each = (count: number, text: (at: number) => string): string => Array.from({ length: count }, (_, at) => text(at)).join();
const widget = (round: number, spec: string): string =>
  `{"apiVersion":"turns.example/v1","kind":"Widget","metadata":{"name":"w-${round}"},"spec":{${spec}}}`;

interface Case {
  readonly name: string;
  readonly method?: string;
  readonly path: (round: number) => string;
  readonly type?: string;
  readonly body: (round: number) => string;
}

const cases: readonly Case[] = [
  {
    name: `a set of ${sized(100_000)} items`,
    path: () => custom,
    body: (round) => widget(round, `"set":[${each(sized(100_000), (at) => `"${at}"`)}]`),
  },
  {
    name: `a map of ${sized(80_000)} entries, and a dry run of it`,
    path: (round) => `${custom}${round === 0 ? "" : "?dryRun=All"}`,
    body: (round) => widget(round + 30, `"map":{${each(sized(80_000), (at) => `"k${at}":"v"`)}}`),
  },
  {
    name: `a map of ${sized(40_000)} objects`,
    path: () => custom,
    body: (round) => widget(round + 40, `"objects":{${each(sized(40_000), (at) => `"k${at}":{"a":"b"}`)}}`),
  },
  {
    name: `${sized(360_000)} strings that JSON escapes`,
    path: () => `${custom}?dryRun=All`,
    body: (round) => widget(round + 50, `"any":[${each(sized(360_000), () => `"<"`)}]`),
  },
  {
    name: `a quota for ${sized(90_000)} resources`,
    path: () => "/api/v1/namespaces/default/resourcequotas?dryRun=All",
    body: (round) =>
      `{"metadata":{"name":"q-${round}"},"spec":{"hard":{${each(sized(90_000), (at) => `"count/k${at}.x":"5"`)}}}}`,
  },
  {
    name: `an apply of ${sized(110_000)} values`,
    method: "PATCH",
    path: (round) => `${maps}/applied-${round}?force=true&fieldManager=another`,
    type: "application/apply-patch+yaml",
    body: (round) =>
      `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"applied-${round}"},"data":{${each(sized(110_000), (at) => `"k${at}":"v"`)}}}`,
  },
  {
    name: `a strategic merge patch of ${sized(110_000)} values`,
    method: "PATCH",
    path: () => `${maps}/patched`,
    type: "application/strategic-merge-patch+json",
    body: (round) => `{"data":{${each(sized(110_000), (at) => `"k${round}-${at}":""`)}}}`,
  },
  {
    name: `a list of ${sized(20_000)} items by keys`,
    path: () => custom,
    body: (round) => widget(round + 10, `"byKey":[${each(sized(20_000), (at) => `{"name":"n${at}","value":"v"}`)}]`),
  },
  ...["Warn", "Strict"].flatMap((mode): Case[] => [
    {
      name: `${sized(140_000)} unknown fields, ${mode}`,
      path: () => `${maps}?fieldValidation=${mode}`,
      body: (round) =>
        `{"metadata":{"name":"unknown-${mode.toLowerCase()}-${round}"},${each(sized(140_000), (at) => `"f${at}":1`)}}`,
    },
    {
      name: `${sized(140_000)} unknown fields of a custom object, ${mode}`,
      path: () => `${custom}?fieldValidation=${mode}`,
      body: (round) =>
        widget(
          round + 20,
          each(sized(140_000), (at) => `"f${at}":1`),
        ).replace("w-", `${mode.toLowerCase()}-`),
    },
  ]),
  {
    name: `a merge patch of a custom object of ${sized(140_000)} nulls`,
    method: "PATCH",
    path: () => `${custom}/small`,
    type: "application/merge-patch+json",
    body: () => `{"spec":{${each(sized(140_000), (at) => `"n${at}":null`)}}}`,
  },
  {
    name: "an apply among 1,000 managers",
    method: "PATCH",
    path: (round) => `${maps}/managed?force=true&fieldManager=another-${round}`,
    type: "application/apply-patch+yaml",
    body: (round) => `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"managed"},"data":{"k${round}":"v"}}`,
  },
  {
    name: `an audited create of ${sized(60_000)} values`,
    path: () => "/api/v1/namespaces/audited/configmaps",
    body: (round) => `{"metadata":{"name":"a-${round}"},"data":{${each(sized(60_000), (at) => `"k${at}":"v"`)}}}`,
  },
];

before(async () => {
  const items = { type: "object", properties: { name: { type: "string" }, value: { type: "string" } }, required: ["name"] };
  const set = { type: "array", items: { type: "string" }, "x-kubernetes-list-type": "set" };
  const byKey = { type: "array", items, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"] };
  const map = { type: "object", additionalProperties: { type: "string" } };
  const objects = {
    type: "object",
    additionalProperties: { type: "object", properties: { a: { type: "string", default: "x" } } },
  };
  const any = { type: "array", items: { type: "string" } };
  await define(server, widgets("turns.example", [{ name: "v1", schema: specOf({ set, byKey, map, objects, any }) }]));
  await server.request("POST", "/api/v1/namespaces", { metadata: { name: "audited" } });
  await server.request("POST", custom, widget(99, "").replace("w-99", "small"), { "content-type": json });
  await server.request("POST", maps, { metadata: { name: "patched" } });
  const managedFields = Array.from({ length: 1000 }, (_, at) => ({
    ...{ manager: `manager-${at}`, operation: "Apply", apiVersion: "v1", time: "2022-01-01T00:00:00Z", fieldsType: "FieldsV1" },
    fieldsV1: { "f:data": { [`f:k${at}`]: {} } },
  }));
  const data = Object.fromEntries(managedFields.map((_, at) => [`k${at}`, "v"]));
  const managed = await server.request("POST", maps, { metadata: { name: "managed", managedFields }, data });
  assert.equal(managed.code, 201, managed.text.slice(0, 300));
});

for (const one of cases) {
  test(`${one.name} takes no long turn`, async (t) => {
    let answer = { code: 0, text: "" };
    const request = async (round: number, body: string): Promise<void> => {
      answer = await server.request(one.method ?? "POST", one.path(round), body, { "content-type": one.type ?? json });
    };
    const longest = await longestTurnOf(longestTurnMs, request, one.body);
    t.diagnostic(`${longest} ms, ${answer.code}`);
    assert.ok(answer.code > 0 && answer.code < 500, `${answer.code} ${answer.text.slice(0, 200)}`);
    assert.ok(longest < longestTurnMs, `a turn of ${longest} ms`);
  });
}

/** YAML and lists (JSON bodies: turns-largest.test.ts): no event-loop turn exceeds 100 ms of CPU time of the thread, with threefold slack. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { longestTurnOf } from "@coxswain/apimachinery/testing/cpu-time";
import { startTestServer } from "../testing/start-test-server.ts";

const server = await startTestServer({ after });
const path = "/api/v1/namespaces/default/configmaps";
const longestTurnMs = 300;
const json = "application/json";
const data = (mark: string): Record<string, string> =>
  Object.fromEntries(Array.from({ length: 10_000 }, (_, at) => [`key-${at}`, `${mark} ${"x".repeat(80)}`]));
const yaml = (name: string, mark: string): string =>
  `apiVersion: v1\nkind: ConfigMap\nmetadata: {name: ${name}}\ndata:\n${Object.entries(data(mark))
    .map(([key, value]) => `  ${key}: ${value}\n`)
    .join("")}`;

before(async () => {
  const created = await server.request("POST", path, { metadata: { name: "large" }, data: data("first") });
  assert.equal(created.code, 201, created.text.slice(0, 300));
  for (let at = 0; at < 500; at++) await server.request("POST", path, { metadata: { name: `small-${at}` }, data: { a: "b" } });
});

interface Case {
  readonly name: string;
  readonly method: string;
  readonly path: (round: number) => string;
  readonly type?: string;
  readonly accept?: string;
  readonly body?: (round: number) => string;
}

const cases: readonly Case[] = [
  {
    name: "a create of 1 MB YAML",
    method: "POST",
    path: () => path,
    type: "application/yaml",
    body: (round) => yaml(`yaml-${round}`, "y"),
  },
  {
    name: "an apply of 1 MB",
    method: "PATCH",
    path: (round) => `${path}/large?force=true&fieldManager=m${round}`,
    type: "application/apply-patch+yaml",
    body: (round) => yaml("large", `apply-${round}`),
  },
  ...[json, "application/yaml", "application/vnd.kubernetes.protobuf", "application/json;as=Table;g=meta.k8s.io;v=v1"].map(
    (accept) => ({
      name: `a list as ${accept}`,
      method: "GET",
      path: () => path,
      accept,
    }),
  ),
  { name: "OpenAPI", method: "GET", path: () => "/openapi/v2" },
  { name: "a deletecollection of 500", method: "DELETE", path: () => path },
];

for (const one of cases) {
  test(`${one.name} takes no long turn`, async () => {
    const longest = await longestTurnOf(longestTurnMs, async (round) => {
      const headers = { ...(one.type && { "content-type": one.type }), ...(one.accept && { accept: one.accept }) };
      const { code, text } = await server.request(one.method, one.path(round), one.body?.(round), headers);
      assert.ok(code < 300, `${code} ${text.slice(0, 300)}`);
    });
    assert.ok(longest < longestTurnMs, `a turn of ${longest} ms`);
  });
}

/** Many objects, watchers and definitions: no event-loop turn exceeds 100 ms of CPU time of the thread, with threefold slack. */
import assert from "node:assert/strict";
import { connect } from "node:http2";
import { after, before, test } from "node:test";
import { longestTurnOf } from "@coxswain/apimachinery/testing/cpu-time";
import { define, specOf, widgets } from "../testing/custom-resources.ts";
import { startTestServer } from "../testing/start-test-server.ts";
import { sendUnread, type Unread } from "../testing/unread-request.ts";

const server = await startTestServer({ after }, ["--feature-gates=OpenAPIV3=true"]);
const session = connect(server.url, { ca: server.ca });
after(() => session.destroy());
const pods = "/api/v1/pods";
const ofDefault = "/api/v1/namespaces/default/pods";
const count = 1000;
const definitions = 20;
const watchers = 50;
const longestTurnMs = 300;
const as = (kind: string, type = "json"): Record<string, string> => ({
  accept: `application/${type};as=${kind};g=meta.k8s.io;v=v1`,
});

const authorization = `Bearer ${server.adminToken}`;
const send = (method: string, path: string, headers: Record<string, string> = {}): Promise<Unread> =>
  sendUnread(session, method, path, { authorization, ...headers });

before(async () => {
  await server.request("POST", "/api/v1/namespaces/default/serviceaccounts", { metadata: { name: "default" } });
  const env = Array.from({ length: 15 }, (_, at) => ({ name: `ENV_${at}`, value: `value ${at}` }));
  const containers = [{ name: "c", image: "registry.example/image:v1", env }];
  for (let at = 0; at < count; at++) {
    const metadata = { name: `pod-${at}`, labels: { app: `a${at % 10}` } };
    const { code, text } = await server.request("POST", ofDefault, { metadata, spec: { nodeName: `n${at % 50}`, containers } });
    assert.equal(code, 201, text);
  }
  const fields = Object.fromEntries(
    Array.from({ length: 200 }, (_, at) => [`field${at}`, { type: "string", description: "what it is for ".repeat(10) }]),
  );
  for (let at = 0; at < definitions; at++) {
    await define(server, widgets(`many-${at}.example`, [{ name: "v1", schema: specOf(fields) }]));
  }
});

const lists: readonly [string, string, Record<string, string>?][] = [
  ["all", pods],
  ["all, compressed", pods, { "accept-encoding": "gzip" }],
  ["all, indented", `${pods}?pretty=true`],
  ["all as protobuf", pods, { accept: "application/vnd.kubernetes.protobuf" }],
  ["all as a table with objects", `${pods}?includeObject=Object`, as("Table")],
  ["all as metadata", pods, as("PartialObjectMetadataList")],
  ["those of a label", `${pods}?labelSelector=app+in+(a1,a2)`],
  ["those of a node", `${pods}?fieldSelector=spec.nodeName%3Dn3`],
  ["those of no node", `${pods}?fieldSelector=spec.nodeName%3D`],
];
const cases: readonly { name: string; work: () => Promise<{ code: number; bytes: number }> }[] = [
  ...lists.map(([name, path, headers]) => ({ name: `a list of pods: ${name}`, work: () => send("GET", path, headers) })),
  {
    name: "a stricter pod security label",
    work: () => {
      const headers = { "content-type": "application/merge-patch+json" };
      const labels = { "pod-security.kubernetes.io/enforce": "restricted" };
      const body = { metadata: { labels } };
      return server.request("PATCH", "/api/v1/namespaces/default?dryRun=All", body, headers).then(({ code, text }) => ({
        code,
        bytes: text.length,
      }));
    },
  },
  {
    name: `${watchers} watchers that get all pods`,
    work: async () => {
      const path = `${pods}?watch=true&timeoutSeconds=1&resourceVersion=0`;
      const answers = await Promise.all(Array.from({ length: watchers }, () => send("GET", path)));
      return answers[0] as { code: number; bytes: number };
    },
  },
  ...["/openapi/v2", "/openapi/v3", "/openapi/v3/apis/apps/v1", "/apis", "/metrics"].map((path) => ({
    name: `${path} with ${definitions} definitions`,
    work: () => send("GET", path, { "accept-encoding": "gzip" }),
  })),
  { name: "a deletecollection of all pods", work: () => send("DELETE", `${ofDefault}?gracePeriodSeconds=0`) },
];

for (const { name, work } of cases) {
  test(`${name} takes no long turn`, async (t) => {
    const longest = await longestTurnOf(longestTurnMs, async () => {
      const { code, bytes } = await work();
      assert.equal(code, 200);
      assert.ok(bytes > 0);
    });
    t.diagnostic(`${longest} ms`);
    assert.ok(longest < longestTurnMs, `a turn of ${longest} ms`);
  });
}

/** Webhooks, protobuf, reviews and answers in other forms with the most values: no event-loop turn exceeds 100 ms, with threefold slack. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { connect } from "node:http2";
import { after, before, test } from "node:test";
import { Worker } from "node:worker_threads";
import { encodeProtobuf } from "@coxswain/apimachinery/objects/codec/protobuf";
import { newCa, newCertificate } from "@coxswain/apimachinery/serving/certificates";
import { longestTurnOf } from "@coxswain/apimachinery/testing/cpu-time";
import { waitFor } from "@coxswain/apimachinery/testing/wait-for";
import { define, definitionsPath, specOf, widgets } from "../testing/custom-resources.ts";
import { startTestServer } from "../testing/start-test-server.ts";
import { longestTurnMs, sized } from "../testing/turn-sizes.ts";
import { sendUnread } from "../testing/unread-request.ts";

const json = "application/json";
const protobuf = "application/vnd.kubernetes.protobuf";
const yaml = "application/yaml";
const table = "application/json;as=Table;g=meta.k8s.io;v=v1";
const ca = await newCa({ commonName: "webhooks" });
const pair = await newCertificate({ commonName: "webhook", dnsNames: ["localhost"], ips: ["127.0.0.1"], usages: ["server"], ca });
const webhook = new Worker(new URL("../testing/echo-webhook.ts", import.meta.url), {
  workerData: { cert: pair.certPem, key: pair.keyPem },
});
after(() => webhook.terminate());
const [port] = await once(webhook, "message");
const server = await startTestServer({ after });
const session = connect(server.url, { ca: server.ca });
after(() => session.close());

const authorization = `Bearer ${server.adminToken}`;
const send = async (method: string, path: string, headers: Record<string, string>, body?: Buffer): Promise<number> =>
  (await sendUnread(session, method, path, { authorization, ...headers }, body)).code;

const each = (count: number, text: (at: number) => string): string => Array.from({ length: count }, (_, at) => text(at)).join();
const entries = (count: number, value = "v"): string => each(count, (at) => `"k${at}":"${value}"`);
const data = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, at) => [`k${at}`, "v"]));
const maps = (namespace: string): string => `/api/v1/namespaces/${namespace}/configmaps`;
const custom = "/apis/answers.example/v2/namespaces/default/widgets";
const widget = (name: string, spec: string): string =>
  `{"apiVersion":"answers.example/v2","kind":"Widget","metadata":{"name":"${name}"},"spec":{${spec}}}`;
const definition = (round: number, label = "") => {
  const properties = Object.fromEntries(Array.from({ length: sized(20_000) }, (_, at) => [`p${at}`, { type: "string" }]));
  const made = widgets(`answers-${round}.example`, [{ name: "v1", schema: specOf(properties) }]);
  return { ...made, metadata: { ...made.metadata, labels: { label } } };
};
const clientConfig = (path: string) => ({
  url: `https://127.0.0.1:${port}${path}`,
  caBundle: Buffer.from(ca.certPem).toString("base64"),
});

async function hook(kind: "mutating" | "validating", name: string): Promise<void> {
  const rules = [{ operations: ["CREATE"], apiGroups: [""], apiVersions: ["v1"], resources: ["configmaps"] }];
  const namespaceSelector = { matchLabels: { "kubernetes.io/metadata.name": name } };
  const { code, text } = await server.request("POST", `/apis/admissionregistration.k8s.io/v1/${kind}webhookconfigurations`, {
    metadata: { name: `${kind}-${name}` },
    webhooks: [
      {
        ...{ name: "a.example.com", clientConfig: clientConfig(`/${name}`), rules, namespaceSelector },
        ...{ sideEffects: "None", admissionReviewVersions: ["v1"] },
      },
    ],
  });
  assert.equal(code, 201, text);
}

before(async () => {
  for (const name of ["allow", "patch", "annotate"]) {
    await server.request("POST", "/api/v1/namespaces", { metadata: { name } });
    await hook("mutating", name);
  }
  await hook("validating", "allow");
  const map = { type: "object", additionalProperties: { type: "string" } };
  const versions = ["v1", "v2"].map((name, i) => ({ name, schema: specOf({ map }), storage: i === 0 }));
  const conversion = {
    strategy: "Webhook",
    webhook: { clientConfig: clientConfig("/convert"), conversionReviewVersions: ["v1"] },
  };
  await define(server, widgets("answers.example", versions, { conversion }));
  const created = await server.request("POST", maps("default"), { metadata: { name: "large" }, data: data(sized(80_000)) });
  assert.equal(created.code, 201, created.text.slice(0, 300));
  const labelled = await server.request("POST", maps("patch"), { metadata: { name: "labelled", labels: data(sized(60_000)) } });
  assert.equal(labelled.code, 201, labelled.text.slice(0, 300));
  // Webhook configurations reach the server through its informer.
  await waitFor(async () => {
    const { body } = await server.request("POST", `${maps("patch")}?dryRun=All`, { metadata: { generateName: "probe-" } });
    return Object.keys(body.data ?? {}).length > 0;
  });
});

interface Case {
  readonly name: string;
  readonly method?: string;
  readonly path: string | ((round: number) => string);
  readonly type?: string;
  readonly accept?: string;
  readonly body?: (round: number) => string | Buffer;
  readonly want?: number;
}

const mapOf = (round: number, count = sized(50_000)): string => `{"metadata":{"name":"m-${round}"},"data":{${entries(count)}}}`;
const cases: readonly Case[] = [
  { name: `two webhooks review ${sized(50_000)} values`, path: `${maps("allow")}?dryRun=All`, body: (round) => mapOf(round) },
  { name: `a webhook adds ${sized(50_000)} values`, path: `${maps("patch")}?dryRun=All`, body: (round) => mapOf(round, 1) },
  {
    name: `a webhook adds ${sized(50_000)} audit annotations`,
    path: `${maps("annotate")}?dryRun=All`,
    body: (round) => mapOf(round, 1),
  },
  {
    name: `a webhook converts a custom object of ${sized(50_000)} values`,
    path: custom,
    body: (round) => widget(`w-${round}`, `"map":{${entries(sized(50_000))}}`),
  },
  { name: "a webhook converts a list of large objects", method: "GET", path: custom, want: 200 },
  {
    name: `a webhook converts an applied object of ${sized(30_000)} values`,
    method: "PATCH",
    path: (round) => `${custom}/applied-${round}?force=true&fieldManager=m`,
    type: "application/apply-patch+yaml",
    body: (round) => widget(`applied-${round}`, `"map":{${entries(sized(30_000))}}`),
  },
  {
    name: `a protobuf body of ${sized(110_000)} values`,
    path: `${maps("default")}?dryRun=All`,
    type: protobuf,
    body: (round) =>
      encodeProtobuf({ apiVersion: "v1", kind: "ConfigMap", metadata: { name: `p-${round}` }, data: data(sized(110_000)) }),
  },
  ...[yaml, protobuf, table].flatMap((accept): Case[] => [
    { name: `a GET of ${sized(80_000)} values as ${accept}`, method: "GET", path: `${maps("default")}/large`, accept, want: 200 },
    { name: `a list with ${sized(80_000)} values as ${accept}`, method: "GET", path: maps("default"), accept, want: 200 },
  ]),
  ...[`${maps("patch")}/labelled`, maps("patch")].flatMap((path): Case[] =>
    [`${yaml};as=PartialObjectMetadata${path.endsWith("s") ? "List" : ""}`, `${yaml};as=Table`].map((form) => ({
      ...{
        name: `a GET of ${path} with ${sized(60_000)} labels as ${form}`,
        method: "GET",
        path: `${path}?includeObject=Object`,
      },
      ...{ accept: `${form};g=meta.k8s.io;v=v1`, want: 200 },
    })),
  ),
  { name: "a create answered as YAML", path: `${maps("default")}?dryRun=All`, accept: yaml, body: (round) => mapOf(round) },
  {
    name: `a JSON patch of an object of ${sized(80_000)} values`,
    method: "PATCH",
    path: `${maps("default")}/large?dryRun=All`,
    type: "application/json-patch+json",
    body: () => `[${each(sized(9_000), (at) => `{"op":"replace","path":"/data/k${at}","value":"w"}`)}]`,
    want: 200,
  },
  {
    name: `a definition of ${sized(20_000)} properties`,
    path: definitionsPath,
    body: (round) => JSON.stringify(definition(round)),
  },
  {
    name: `an update of a definition of ${sized(20_000)} properties`,
    method: "PATCH",
    path: `${definitionsPath}/widgets.answers-0.example`,
    type: "application/merge-patch+json",
    body: (round) => JSON.stringify({ metadata: { labels: { label: `${round}` } } }),
    want: 200,
  },
  {
    name: `a Service of ${sized(30_000)} ports`,
    path: "/api/v1/namespaces/default/services?dryRun=All",
    body: (round) =>
      `{"metadata":{"name":"s-${round}"},"spec":{"ports":[${each(sized(30_000), (at) => `{"name":"p${at}","port":${at + 1}}`)}]}}`,
  },
  {
    name: `a TokenReview of ${sized(140_000)} audiences`,
    path: "/apis/authentication.k8s.io/v1/tokenreviews",
    body: () => `{"spec":{"token":"t","audiences":[${each(sized(140_000), (at) => `"${at}"`)}]}}`,
  },
  {
    name: `a SubjectAccessReview of ${sized(60_000)} extra values`,
    path: "/apis/authorization.k8s.io/v1/subjectaccessreviews",
    body: () =>
      `{"spec":{"user":"a","extra":{${each(sized(60_000), (at) => `"k${at}":["v"]`)}},"resourceAttributes":{"verb":"get","resource":"pods"}}}`,
  },
  {
    name: "an Event of a megabyte",
    path: "/api/v1/namespaces/default/events",
    body: (round) =>
      `{"metadata":{"name":"e-${round}"},"involvedObject":{"namespace":"default"},"reason":"${"y".repeat(1_000_000)}"}`,
  },
];

for (const { name, method = "POST", path, type = json, accept = json, body, want = 201 } of cases) {
  test(`${name} takes no long turn`, async (t) => {
    let code = 0;
    const request = async (round: number, sent: Buffer | undefined): Promise<void> => {
      const headers = { accept, ...(body && { "content-type": type }) };
      code = await send(method, typeof path === "string" ? path : path(round), headers, sent);
    };
    const longest = await longestTurnOf(longestTurnMs, request, (round) => body && Buffer.from(body(round)));
    t.diagnostic(`${longest} ms`);
    assert.equal(code, want);
    assert.ok(longest < longestTurnMs, `a turn of ${longest} ms`);
  });
}

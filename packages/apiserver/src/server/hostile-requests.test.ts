import assert from "node:assert/strict";
import { test } from "node:test";
import { gzipSync } from "node:zlib";
import { leastOf } from "@coxswain/apimachinery/testing/cpu-time";
import { startTestServer, type TestServer } from "../testing/start-test-server.ts";

const each = (n: number, make: (i: number) => string): string => Array.from({ length: n }, (_, i) => make(i)).join(",");
const path = "/api/v1/namespaces/default/configmaps";
const json = "application/json";

/** CPU time of this thread, including test and client; three times that of an idle machine. Also bounds each stall. */
const maxCpuMs = { refused: 300, done: 3000 };
/** A 409 is not among them: a conflict is detected only after the complete request was processed. */
const refusals: readonly number[] = [400, 413, 422];

const managed = (i: number): string =>
  `{"manager":"m${i}","operation":"Apply","apiVersion":"v1","fieldsType":"FieldsV1","fieldsV1":{"f:data":{"f:k${i}":{}}}}`;

/** Each list is nine times as long as the previous one: 9^levels values in a few lines. */
const aliases = (levels: number): string =>
  Array.from({ length: levels }, (_, i) => `a${i}: &a${i} [${i === 0 ? "x" : each(9, () => `*a${i - 1}`)}]`).join("\n");
const yamlFunction = "kind: ConfigMap\napiVersion: v1\nmetadata: {name: js}\ndata: {a: !!js/function 'function () {}'}";
const protobuf = "application/vnd.kubernetes.protobuf";
/** The protobuf envelope of a ConfigMap around arbitrary bytes. */
const enveloped = (raw: Buffer): Buffer => {
  const length = Buffer.from([0x12, (raw.length & 0x7f) | 0x80, ((raw.length >> 7) & 0x7f) | 0x80, (raw.length >> 14) & 0x7f]);
  return Buffer.concat([Buffer.from("k8s\0\n\x0f\n\x02v1\x12\x09ConfigMap"), length, raw]);
};
const emptyEntries = (count: number): Buffer => enveloped(Buffer.from("\x12\0".repeat(count)));
const groups = (depth: number): Buffer => enveloped(Buffer.alloc(depth, 0x0b));

const requests: readonly {
  name: string;
  method: string;
  path: string;
  type: string;
  body: string | Buffer;
  codes: readonly number[];
}[] = [
  { name: "3 MB of [", method: "POST", path, type: json, body: "[".repeat(3 * 1024 * 1024), codes: [400, 413] },
  { name: "gzip of 100 MB", method: "POST", path, type: json, body: gzipSync(Buffer.alloc(100_000_000, 0x20)), codes: [400] },
  {
    name: "200,000 lines of YAML",
    method: "POST",
    path,
    type: "application/yaml",
    body: `data:\n${Array.from({ length: 200_000 }, (_, i) => `  k${i}: v`).join("\n")}`,
    codes: [413],
  },
  {
    name: "a JSON patch of 10,001 operations",
    method: "PATCH",
    path: `${path}/a`,
    type: "application/json-patch+json",
    body: `[${each(10_001, () => '{"op":"test","path":"/kind","value":"ConfigMap"}')}]`,
    codes: [413],
  },
  {
    name: "a JSON patch that doubles what it copies",
    method: "PATCH",
    path: `${path}/a`,
    type: "application/json-patch+json",
    body: `[{"op":"add","path":"/data","value":{"a":"${"x".repeat(100)}"}},${each(9000, (i) => `{"op":"copy","from":"/data","path":"/data/k${i}"}`)}]`,
    codes: [422],
  },
  {
    name: "a JSON patch that moves back and forth",
    method: "PATCH",
    path: `${path}/a`,
    type: "application/json-patch+json",
    body: `[${each(4000, () => '{"op":"move","from":"/data","path":"/x"},{"op":"move","from":"/x","path":"/data"}')}]`,
    codes: [200],
  },
  {
    name: "a strategic merge patch of 30,000 directives",
    method: "PATCH",
    path: `${path}/a`,
    type: "application/strategic-merge-patch+json",
    body: `{"metadata":{"ownerReferences":[${each(30_000, (i) => `{"$patch":"delete","uid":"u${i}"}`)}]}}`,
    codes: [200],
  },
  {
    name: "a merge patch of 90,000 nulls",
    method: "PATCH",
    path: `${path}/a`,
    type: "application/merge-patch+json",
    body: `{"data":{${each(90_000, (i) => `"k${i}":null`)}}}`,
    codes: [200],
  },
  {
    name: "an object of 10,000 managers",
    method: "POST",
    path,
    type: json,
    body: `{"metadata":{"name":"many","managedFields":[${each(10_000, managed)}]},"data":{"a":"b"}}`,
    codes: [201, 400, 413, 422],
  },
  {
    name: "applying to an object of 10,000 managers",
    method: "PATCH",
    path: `${path}/many?fieldManager=me`,
    type: "application/apply-patch+yaml",
    body: '{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"many"},"data":{"k1":"mine"}}',
    codes: [200, 201, 409],
  },
  {
    name: "200,000 keys",
    method: "POST",
    path,
    type: json,
    body: `{"data":{${each(200_000, (i) => `"k${i}":""`)}}}`,
    codes: [413],
  },
  { name: "10^5 levels", method: "POST", path, type: json, body: '{"a":'.repeat(100_000), codes: [400, 413] },
  { name: "nine levels of aliases", method: "POST", path, type: "application/yaml", body: aliases(9), codes: [400, 413] },
  {
    name: "YAML that names a function, which stays a text",
    method: "POST",
    path,
    type: "application/yaml",
    body: yamlFunction,
    codes: [201],
  },
  { name: "protobuf of 10^6 empty entries", method: "POST", path, type: protobuf, body: emptyEntries(1_000_000), codes: [413] },
  { name: "protobuf of 10^6 groups in groups", method: "POST", path, type: protobuf, body: groups(1_000_000), codes: [400] },
  {
    name: "a request for a certificate that begins 15,000 times",
    method: "POST",
    path: "/apis/certificates.k8s.io/v1/certificatesigningrequests",
    type: json,
    body: JSON.stringify({
      metadata: { name: "begins" },
      spec: {
        signerName: "example.com/a",
        usages: ["client auth"],
        request: Buffer.from(Array.from({ length: 15_000 }, (_, i) => `-----BEGIN A${i}-----\n`).join("")).toString("base64"),
      },
    }),
    codes: [422],
  },
  {
    name: "a node of 25,000 ranges for pods",
    method: "POST",
    path: "/api/v1/nodes",
    type: json,
    body: `{"metadata":{"name":"wide"},"spec":{"podCIDRs":[${each(25_000, (i) => `"10.${i >> 8}.${i & 255}.0/24"`)}]}}`,
    codes: [422],
  },
  // Last, because its unread remainder fills the client's flow-control window.
  { name: "a text of 10 MB", method: "POST", path, type: json, body: `{"data":{"a":"${"x".repeat(10_000_000)}"}}`, codes: [413] },
];

/** A value merged into an absent one is copied instead of merged. */
const owner = { apiVersion: "v1", kind: "Pod", name: "p", uid: "u" };

test("hostile requests are refused or done, soon, and delay no other request", async (t) => {
  const server: TestServer = await startTestServer(t);
  const made = await server.request("POST", path, { metadata: { name: "a", ownerReferences: [owner] }, data: { a: "b" } });
  assert.equal(made.code, 201);
  for (const { name, method, path: at, type, body, codes } of requests) {
    await t.test(name, async () => {
      let mostMs = maxCpuMs.refused;
      // Rejected requests have no effect and can be repeated.
      const enoughMs = codes.every((code) => refusals.includes(code)) ? mostMs : Number.POSITIVE_INFINITY;
      const cpuMs = await leastOf(enoughMs, async () => {
        // Of this thread: large YAML is parsed in a worker thread, which does not block the event loop.
        const cpu = process.threadCpuUsage();
        const { code, text } = await server.request(method, at, body, { "content-type": type });
        const { user, system } = process.threadCpuUsage(cpu);
        assert.ok(codes.includes(code), `${code} ${text.slice(0, 300)}`);
        if (!refusals.includes(code)) mostMs = maxCpuMs.done;
        return (user + system) / 1000;
      });
      assert.ok(cpuMs < mostMs, `took ${cpuMs} ms`);
    });
  }
});

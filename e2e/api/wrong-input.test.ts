import assert from "node:assert/strict";
import { test } from "node:test";
import { send } from "../framework/api.ts";
import { tryKubectl } from "../framework/kubectl.ts";

const configMaps = "/api/v1/namespaces/default/configmaps";
const pods = "/api/v1/namespaces/default/pods";
const named = (name: string, more: object = {}): string =>
  JSON.stringify({ apiVersion: "v1", kind: "ConfigMap", metadata: { name }, ...more });
const aPod = (spec: object): string => JSON.stringify({ apiVersion: "v1", kind: "Pod", metadata: { name: "wrong" }, spec });

for (const { name, method = "POST", path = configMaps, body, headers, code, reason } of [
  { name: "JSON that ends too early", body: '{"kind":"ConfigMap"', code: 400, reason: "BadRequest" },
  { name: "bytes that are no JSON", body: "\u0000\u0001", code: 400, reason: "BadRequest" },
  { name: "an empty body", body: "", code: 400, reason: "BadRequest" },
  { name: "a list where an object belongs", body: "[]", code: 400, reason: "BadRequest" },
  {
    name: "YAML with a tab for indentation",
    body: "a:\n\tb: 1",
    headers: { "content-type": "application/yaml" },
    code: 400,
    reason: "BadRequest",
  },
  {
    name: "a YAML alias bomb",
    body: `a: &a [x,x,x,x,x,x,x,x,x]\n${"bcdefghij"
      .split("")
      .map((letter, i) => `${letter}: &${letter} [${`*${"abcdefghi"[i]},`.repeat(9)}]`)
      .join("\n")}`,
    headers: { "content-type": "application/yaml" },
    code: 400,
    reason: "BadRequest",
  },
  {
    name: "an unknown kind",
    body: JSON.stringify({ apiVersion: "v1", kind: "Nothing", metadata: { name: "x" } }),
    code: 400,
    reason: "BadRequest",
  },
  { name: "a number where text belongs", body: named("x", { data: { a: 1 } }), code: 400, reason: "BadRequest" },
  {
    name: "text where a number belongs",
    path: "/apis/apps/v1/namespaces/default/deployments",
    body: JSON.stringify({ apiVersion: "apps/v1", kind: "Deployment", metadata: { name: "x" }, spec: { replicas: "three" } }),
    code: 400,
    reason: "BadRequest",
  },
  { name: "a name that is no name", body: named("Not_A_Name"), code: 422, reason: "Invalid" },
  {
    name: "no name at all",
    body: JSON.stringify({ apiVersion: "v1", kind: "ConfigMap", metadata: {} }),
    code: 422,
    reason: "Invalid",
  },
  { name: "a Pod without containers", path: pods, body: aPod({ containers: [] }), code: 422, reason: "Invalid" },
  {
    name: "a body over 3 MiB",
    body: named("big", { data: { a: "x".repeat(3 << 20) } }),
    code: 413,
    reason: "RequestEntityTooLarge",
  },
  {
    name: "10,000 levels of lists",
    body: `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"deep"},"data":${"[".repeat(10_001)}${"]".repeat(10_001)}}`,
    code: 400,
    reason: "BadRequest",
  },
  {
    name: "100,000 levels of objects",
    body: `${'{"a":'.repeat(100_000)}1${"}".repeat(100_000)}`,
    code: 400,
    reason: "BadRequest",
  },
  {
    name: "another namespace in the body than in the path",
    body: JSON.stringify({ apiVersion: "v1", kind: "ConfigMap", metadata: { name: "x", namespace: "kube-system" } }),
    code: 400,
    reason: "BadRequest",
  },
  {
    name: "an unknown content type",
    body: "x",
    headers: { "content-type": "text/csv" },
    code: 415,
    reason: "UnsupportedMediaType",
  },
  {
    name: "a patch of no known type",
    method: "PATCH",
    path: `${configMaps}/kube-root-ca.crt`,
    body: "{}",
    headers: { "content-type": "application/json" },
    code: 415,
    reason: "UnsupportedMediaType",
  },
  { name: "an Accept that cannot be met", method: "GET", headers: { accept: "text/csv" }, code: 406, reason: "NotAcceptable" },
  {
    name: "a label selector that does not parse",
    method: "GET",
    path: `${configMaps}?labelSelector=a%20in%20(`,
    code: 400,
    reason: "BadRequest",
  },
  {
    name: "a field selector that no ConfigMap has",
    method: "GET",
    path: `${configMaps}?fieldSelector=spec.nothing%3Dx`,
    code: 400,
    reason: "BadRequest",
  },
  { name: "a limit that is no number", method: "GET", path: `${configMaps}?limit=many`, code: 400, reason: "BadRequest" },
  {
    name: "a continue token that was made up",
    method: "GET",
    path: `${configMaps}?limit=1&continue=abc`,
    code: 400,
    reason: "BadRequest",
  },
  {
    name: "a resourceVersion that is no number",
    method: "GET",
    path: `${configMaps}?resourceVersion=latest`,
    // As upstream, whose Status has no reason here.
    code: 500,
    reason: undefined,
  },
  {
    name: "a dryRun value that does not exist",
    path: `${configMaps}?dryRun=Some`,
    body: named("x"),
    code: 422,
    reason: "Invalid",
  },
  { name: "an object that is not there", method: "GET", path: `${configMaps}/nothing`, code: 404, reason: "NotFound" },
  {
    name: "a resource that is not there",
    method: "GET",
    path: "/api/v1/namespaces/default/nothings",
    code: 404,
    reason: "NotFound",
  },
  {
    name: "a verb the resource does not have",
    method: "PUT",
    path: configMaps,
    body: named("x"),
    code: 405,
    reason: "MethodNotAllowed",
  },
  {
    name: "a creation in a namespace that is not there",
    path: "/api/v1/namespaces/nowhere/configmaps",
    body: named("x"),
    code: 404,
    reason: "NotFound",
  },
  {
    name: "a JSON patch of a field that is not there",
    method: "PATCH",
    path: `${configMaps}/kube-root-ca.crt`,
    body: '[{"op":"test","path":"/data/none","value":1}]',
    headers: { "content-type": "application/json-patch+json" },
    code: 422,
    reason: "Invalid",
  },
]) {
  test(`${name}: ${code} ${reason}`, async () => {
    const answer = await send(method, path, method === "GET" ? undefined : body, headers);
    assert.equal(answer.code, code, answer.text);
    assert.equal(answer.body?.kind, "Status", answer.text);
    assert.equal(answer.body?.reason, reason, answer.text);
    assert.equal(answer.body?.code, code);
  });
}

test("duplicate keys, __proto__ as data, unknown fields and query names are accepted, as upstream does", async (t) => {
  t.after(() => send("DELETE", `${configMaps}/odd`));
  const created = await send(
    "POST",
    `${configMaps}?nothing=1`,
    '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"odd"},"data":{"a":"1","a":"2","__proto__":"data","constructor":"data"},"unknown":{"x":1}}',
  );
  assert.equal(created.code, 201, created.text);
  const stored = await send("GET", `${configMaps}/odd`);
  assert.match(stored.text, /"data":\{"__proto__":"data","a":"2","constructor":"data"\}/);
  assert.doesNotMatch(stored.text, /"unknown":\{/);
});

test("kubectl shows the server's refusal in its own words", async () => {
  const refused = await tryKubectl(["create", "--validate=false", "-f", "-"], {
    input: aPod({ containers: [{ name: "Main" }] }),
  });
  assert.equal(refused.code, 1);
  assert.match(refused.stderr, /The Pod "wrong" is invalid:/);
  assert.match(refused.stderr, /spec\.containers\[0\]\.image: Required value/);
  assert.match(refused.stderr, /spec\.containers\[0\]\.name: Invalid value: "Main"/);
});

test("a group that is not there is answered in plain text, as by every server without aggregation for it", async () => {
  const answer = await send("GET", "/apis/nothing.example.com/v1/things");
  assert.equal(answer.code, 404);
  assert.equal(answer.text, "404 page not found\n");
});

test("after all wrong input the server answers", async () => assert.equal((await send("GET", "/readyz")).text, "ok"));

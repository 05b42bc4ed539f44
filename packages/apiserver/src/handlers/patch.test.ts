import assert from "node:assert/strict";
import { test } from "node:test";
import type { StatusError } from "@coxswain/apimachinery/objects/errors/status-error";
import { formatGroupVersion } from "@coxswain/apimachinery/objects/meta/group-version";
import type { KubeObject } from "@coxswain/apimachinery/objects/meta/types";
import { atOnce } from "@coxswain/apimachinery/process/event-loop/steps";
import { LoopbackExchange } from "../loopback/exchange.ts";
import { parseRequestInfo } from "../request/request-info.ts";
import { ServerRequest } from "../request/server-request.ts";
import type { Call } from "./env.ts";
import { patchTypeOf, readPatch } from "./patch.ts";

const kind = { group: "", version: "v1", kind: "Pod" };
const path = "/api/v1/namespaces/web/pods/a";
const added = { labels: { a: "b" }, annotations: { note: "x" } };

const bodies = {
  merge: { metadata: added, spec: { nodeSelector: { disk: "ssd" }, tolerations: [{ key: "k" }] } },
  strategic: { metadata: added, spec: { nodeSelector: { disk: "ssd" }, tolerations: [{ key: "k" }] } },
  json: [
    { op: "add", path: "/metadata/labels", value: added.labels },
    { op: "add", path: "/metadata/annotations", value: added.annotations },
    { op: "add", path: "/spec/nodeSelector", value: { disk: "ssd" } },
    { op: "add", path: "/spec/tolerations", value: [{ key: "k" }] },
  ],
};

/** Reads a patch of a pod; `warnings` are those of its application. */
async function reading(body: string, query = "", type: "merge" | "strategic" | "json" = "merge", ofKind = kind) {
  const warnings: string[] = [];
  const url = `${path}${query}`;
  const exchange = new LoopbackExchange({ method: "PATCH", path: url, headers: {}, body });
  const ctx = Object.assign(new ServerRequest(exchange, parseRequestInfo("PATCH", url), 0, false), {
    warn: (text: string) => void warnings.push(text),
  });
  const call = { env: { gates: { validatesFields: true } }, ctx } as unknown as Call;
  const patched = await readPatch(call, type, ofKind);
  const apiVersion = formatGroupVersion(ofKind);
  const live = { apiVersion, kind: ofKind.kind, metadata: { name: "a" }, spec: { containers: [] } } as unknown as KubeObject;
  return { warnings, apply: () => atOnce(patched(live)) };
}

test("a refusal quotes the first 1024 characters of the result", async () => {
  const { apply } = await reading(JSON.stringify({ kind: "Other", metadata: { annotations: { a: "x".repeat(2000) } } }));
  assert.throws(apply, ({ message }: Error) => {
    const [, quoted = '""'] = /Invalid value: ("(?:[^"\\]|\\.)*"): no kind "Other"/.exec(message) ?? [];
    const value = JSON.parse(quoted) as string;
    return value.length === 1028 && value.startsWith('{"apiVersion":"v1","kind":"Other"') && value.endsWith("xx ...");
  });
});

test("of repeated fields the first hundred are named, each once", async () => {
  const labels = Array.from({ length: 150 }, (_, i) => `"k${i}":"a","k${i}":"b","k${i}":"c"`);
  const body = `{"metadata":{"labels":{${labels.join()}}}}`;
  const { warnings, apply } = await reading(body);
  apply();
  assert.deepEqual(
    [warnings.length, warnings[0], warnings.at(-1)],
    [100, 'duplicate field "metadata.labels.k0"', 'duplicate field "metadata.labels.k99"'],
  );
  const ignored = await reading(body, "?fieldValidation=Ignore");
  ignored.apply();
  assert.deepEqual(ignored.warnings, []);
});

test("a merge patch may be a list, which replaces the object and is then none", async () => {
  const { apply } = await reading('[{"op":"remove","path":"/spec"}]');
  assert.throws(apply, ({ message }: Error) => !message.includes("Invalid JSON Patch"));
  for (const scalar of ["1", "null", "true", "x"]) assert.throws((await reading(scalar)).apply, /Invalid JSON Patch/, scalar);
});

for (const type of ["merge", "strategic", "json"] as const) {
  test(`a ${type} patch that is applied again after a conflict is the one that was sent`, async () => {
    const exchange = new LoopbackExchange({ method: "PATCH", path, headers: {}, body: JSON.stringify(bodies[type]) });
    const ctx = new ServerRequest(exchange, parseRequestInfo("PATCH", path), 0, false);
    const call = { env: { gates: { validatesFields: true } }, ctx } as unknown as Call;
    const patched = await readPatch(call, type, kind);
    const live = (): KubeObject =>
      ({ apiVersion: "v1", kind: "Pod", metadata: { name: "a" }, spec: { containers: [] } }) as never;
    const first = atOnce(patched(live())) as KubeObject & { spec: { nodeSelector: object; tolerations: object[] } };
    const want = structuredClone(first);
    // As defaults and mutating admission do before the write.
    Object.assign(first.metadata.labels as object, { c: "d" });
    Object.assign(first.metadata.annotations as object, { other: "y" });
    Object.assign(first.spec.nodeSelector, { zone: "1" });
    first.spec.tolerations.push({ key: "l" });
    assert.deepEqual(atOnce(patched(live())), want);
  });
}

for (const type of ["merge", "strategic"] as const) {
  test(`a ${type} patch that removes the metadata leaves an object without a name, which is refused later`, async () => {
    const { apply } = await reading('{"metadata":null}', "", type);
    assert.deepEqual(apply().metadata, {});
  });
}

test("a strategic merge patch cannot change the kind", async () => {
  const { apply } = await reading('{"kind":"Other","apiVersion":"v2","metadata":{"labels":{"a":"b"}}}', "", "strategic");
  assert.partialDeepStrictEqual(apply(), { apiVersion: "v1", kind: "Pod", metadata: { name: "a", labels: { a: "b" } } });
});

const custom = { group: "x.io", version: "v1", kind: "Thing" };
for (const [contentType, of, want] of [
  ["application/json-patch+json", kind, "json"],
  ["application/merge-patch+json; charset=utf-8", kind, "merge"],
  [" Application/Strategic-Merge-Patch+JSON ", kind, "strategic"],
  ["application/apply-patch+yaml", kind, "apply"],
  ["application/apply-patch+yaml;charset=utf-8", custom, "apply"],
  ["application/merge-patch+json", custom, "merge"],
  ["application/strategic-merge-patch+json", custom, 415],
  ["application/json", custom, 415],
  ["application/json", kind, 415],
  ["toString", kind, 415],
  ["", kind, 415],
] as const) {
  test(`a patch of ${of === kind ? "pods" : "custom resources"} as ${JSON.stringify(contentType)} is ${want === 415 ? "refused" : want}`, () => {
    const headers = { "content-type": contentType, "content-length": "2" };
    const call = { env: { gates: { tracksFields: true } }, ctx: { exchange: { headers } } } as unknown as Call;
    if (want === 415) assert.throws(() => patchTypeOf(call, of), { code: 415 });
    else assert.equal(patchTypeOf(call, of), want);
  });
}

for (const [length, code] of [
  ["1", 415],
  ["0", 406],
  [undefined, 406],
] as const) {
  test(`a patch of an unknown type with the length ${length} is ${code}`, () => {
    const headers = { "content-type": "text/plain", ...(length && { "content-length": length }) };
    const call = { env: { gates: { tracksFields: true } }, ctx: { exchange: { headers } } } as unknown as Call;
    assert.throws(() => patchTypeOf(call, kind), { code });
  });
}

test("without field management there is no apply, and the refusal does not offer it", () => {
  const headers = { "content-type": "application/apply-patch+yaml", "content-length": "2" };
  const call = { env: { gates: { tracksFields: false } }, ctx: { exchange: { headers } } } as unknown as Call;
  assert.throws(() => patchTypeOf(call, kind), { code: 415 });
  assert.throws(() => patchTypeOf(call, custom), {
    message:
      "the body of the request was in an unknown format - accepted media types include: " +
      "application/json-patch+json, application/merge-patch+json",
  });
});

for (const [body, word] of [
  ["[]", "array"],
  ["true", "bool"],
  ['"a"', "string"],
  ["5", "number"],
  ["9007199254740993", "number"],
] as const) {
  test(`a strategic merge patch ${body} is refused, a merge patch ${body} is none`, async () => {
    const strategic = await reading(body, "", "strategic");
    const message = `json: cannot unmarshal ${word} into Go value of type map[string]interface {}`;
    assert.throws(strategic.apply, { code: 400, message });
    if (word !== "array") assert.throws((await reading(body)).apply, { code: 400, message: "Invalid JSON Patch" });
  });
}

test("null as a strategic merge patch changes nothing, as a merge patch it is none", async () => {
  const unchanged = (await reading("null", "", "strategic")).apply();
  assert.deepEqual(unchanged.metadata, { name: "a" });
  assert.throws((await reading("null")).apply, { message: "Invalid JSON Patch" });
});

for (const { name, ofKind, operation, why } of [
  {
    name: "nothing of the object",
    ofKind: kind,
    operation: { path: "", value: null },
    why: "Object 'Kind' is missing in 'null'",
  },
  {
    name: "another version of the object",
    ofKind: kind,
    operation: { path: "/apiVersion", value: "v2" },
    why: 'no kind "Pod" is registered for version "v2"',
  },
  {
    name: "a text of a custom resource's metadata",
    ofKind: custom,
    operation: { path: "/metadata", value: "a" },
    why: "metadata is not an object",
  },
  {
    name: "nothing of a custom resource's metadata",
    ofKind: custom,
    operation: { path: "/metadata", value: null },
    why: "metadata is not an object",
  },
]) {
  test(`a patch that makes ${name} is refused`, async () => {
    const { apply } = await reading(JSON.stringify([{ op: "replace", ...operation }]), "", "json", ofKind);
    assert.throws(apply, ({ code, message }: StatusError) => code === 422 && message.endsWith(`: ${why}`));
  });
}

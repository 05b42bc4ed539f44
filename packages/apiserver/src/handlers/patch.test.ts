import assert from "node:assert/strict";
import { test } from "node:test";
import type { KubeObject } from "@coxswain/apimachinery/objects/meta/types";
import { atOnce } from "@coxswain/apimachinery/process/event-loop/steps";
import { LoopbackExchange } from "../loopback/exchange.ts";
import { parseRequestInfo } from "../request/request-info.ts";
import { ServerRequest } from "../request/server-request.ts";
import type { Call } from "./env.ts";
import { readPatch } from "./patch.ts";

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
async function reading(body: string, query = "") {
  const warnings: string[] = [];
  const url = `${path}${query}`;
  const exchange = new LoopbackExchange({ method: "PATCH", path: url, headers: {}, body });
  const ctx = Object.assign(new ServerRequest(exchange, parseRequestInfo("PATCH", url), 0, false), {
    warn: (text: string) => void warnings.push(text),
  });
  const call = { env: { gates: { validatesFields: true } }, ctx } as unknown as Call;
  const patched = await readPatch(call, "merge", kind);
  const live = { apiVersion: "v1", kind: "Pod", metadata: { name: "a" }, spec: { containers: [] } } as unknown as KubeObject;
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

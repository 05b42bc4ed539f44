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

import assert from "node:assert/strict";
import { test } from "node:test";
import { Turns } from "@coxswain/apimachinery/process/event-loop/turns";
import { LoopbackExchange } from "../loopback/exchange.ts";
import { parseRequestInfo } from "../request/request-info.ts";
import { ServerRequest } from "../request/server-request.ts";
import type { Entry } from "../storage/storage.ts";
import { remove } from "./delete.ts";
import { type Call, handlerGates } from "./env.ts";

const path = "/api/v1/namespaces/web/configmaps/a";
const entry = {
  ...{ smallBytes: 0, isLarge: false, revision: 7 },
  object: () => ({ metadata: { name: "a", uid: "u" } }),
  jsonLine: () => Buffer.from('{"the":"object"}\n'),
} as unknown as Entry;

/** Deletes an object that the store removes or keeps. */
async function deletion(deleted: boolean, query: string, returnDeletedObject: boolean, group = "") {
  const exchange = new LoopbackExchange({ method: "DELETE", path: path + query, headers: {} });
  const call = {
    env: { services: { now: () => 0, turns: new Turns(), featureEnabled: () => true }, gates: handlerGates(() => true) },
    ctx: new ServerRequest(exchange, parseRequestInfo("DELETE", path), 0, false),
    served: {
      store: { delete: async () => ({ entry, deleted }) },
      definition: { group, resource: "configmaps", returnDeletedObject },
      kind: { group: "", version: "v1", kind: "ConfigMap" },
      isHub: true,
    },
    ...{ namespace: "web", name: "a", subresource: "" },
  } as unknown as Call;
  await remove(call);
  const { status, body } = await exchange.response;
  return [status, JSON.parse(Buffer.concat(await body.toArray()).toString())];
}

const success = {
  ...{ kind: "Status", apiVersion: "v1", metadata: {}, status: "Success" },
  details: { name: "a", kind: "configmaps", uid: "u" },
};
const kept = { the: "object" };

for (const { name, deleted, query = "", whole = false, want } of [
  { name: "that is removed", deleted: true, want: [200, success] },
  { name: "that is removed, of a kind that is returned", deleted: true, whole: true, want: [200, kept] },
  { name: "that is removed, without its dependents", deleted: true, query: "?orphanDependents=false", want: [200, success] },
  { name: "that stays for now", deleted: false, want: [200, kept] },
  { name: "that stays for now, with its dependents", deleted: false, query: "?orphanDependents=true", want: [200, kept] },
  { name: "that stays for now, without its dependents", deleted: false, query: "?orphanDependents=false", want: [202, kept] },
]) {
  test(`a deletion of an object ${name} is answered with ${want[0]} and ${want[1] === kept ? "the object" : "a Status"}`, async () => {
    assert.deepEqual(await deletion(deleted, query, whole), want);
  });
}

test("the Status of a removed object names its group, except the core group", async () => {
  const [, { details }] = await deletion(true, "", false, "apps");
  assert.deepEqual(details, { name: "a", group: "apps", kind: "configmaps", uid: "u" });
});

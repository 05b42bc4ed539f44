/** PUT with a store that begins its update several times, as after conflicts. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { KubeObject } from "@coxswain/apimachinery/objects/meta/types";
import { Turns } from "@coxswain/apimachinery/process/event-loop/turns";
import { LoopbackExchange } from "../loopback/exchange.ts";
import { parseRequestInfo } from "../request/request-info.ts";
import { ServerRequest } from "../request/server-request.ts";
import type { Entry } from "../storage/storage.ts";
import { type Call, handlerGates } from "./env.ts";
import { update } from "./update.ts";

const path = "/api/v1/namespaces/web/configmaps/a";
const entry = {
  ...{ smallBytes: 0, isLarge: false, revision: 7 },
  object: () => ({ metadata: { name: "a" } }),
  jsonLine: () => Buffer.from("{}\n"),
} as unknown as Entry;

interface UpdateRequest {
  readonly preconditions?: object;
  readonly untrackedWhenTooLarge?: boolean;
}

/** @param metadata of the object that is sent */
async function updating(metadata: object, query: string, between: (object: KubeObject) => void = () => {}) {
  const body = JSON.stringify({ apiVersion: "v1", kind: "ConfigMap", metadata: { name: "a", ...metadata }, data: { a: "1" } });
  const headers = { "content-type": "application/json" };
  const exchange = new LoopbackExchange({ method: "PUT", path: path + query, headers, body });
  const attempts: KubeObject[] = [];
  let requested: UpdateRequest | undefined;
  const store = {
    async update(_ctx: unknown, _name: string, change: (current: KubeObject) => Promise<KubeObject>, request: UpdateRequest) {
      requested = request;
      for (let attempt = 0; attempt < 2; attempt++) {
        const object = await change({ metadata: { name: "a" } });
        attempts.push(structuredClone(object));
        between(object);
      }
      return { entry, created: query.includes("created") };
    },
  };
  const kind = { group: "", version: "v1", kind: "ConfigMap" };
  const call = {
    env: { services: { now: () => 0, turns: new Turns(), featureEnabled: () => false }, gates: handlerGates(() => false) },
    ctx: new ServerRequest(exchange, parseRequestInfo("PUT", path + query), 0, false),
    served: {
      store,
      definition: { group: "", resource: "configmaps" },
      version: { version: "v1" },
      kind,
      hubKind: kind,
      isHub: true,
    },
    ...{ namespace: "web", name: "a", subresource: "" },
  } as unknown as Call;
  Object.assign(call.env, { gates: { ...call.env.gates, namesLinks: false } });
  await update(call);
  return { attempts, requested, status: (await exchange.response).status };
}

test("an update that is begun again after a conflict is the one that was sent", async () => {
  const { attempts } = await updating({ labels: { a: "b" } }, "", (object) => {
    // As mutating admission does before the write.
    Object.assign(object.metadata.labels as object, { added: "x" });
    Object.assign(object, { data: {} });
  });
  assert.equal(attempts.length, 2);
  assert.deepEqual(attempts[1], attempts[0]);
  assert.partialDeepStrictEqual(attempts[1], { metadata: { labels: { a: "b" } }, data: { a: "1" } });
});

for (const { metadata, want } of [
  { metadata: { uid: "u" }, want: { uid: "u" } },
  { metadata: { uid: "" }, want: undefined },
  { metadata: {}, want: undefined },
]) {
  test(`an update with the metadata ${JSON.stringify(metadata)} ${want ? "is of that object alone" : "is of any object of the name"}`, async () => {
    const { requested } = await updating(metadata, "");
    assert.deepEqual([requested?.preconditions, requested?.untrackedWhenTooLarge], [want, true]);
  });
}

for (const [query, status] of [
  ["", 200],
  ["?created", 201],
] as const) {
  test(`an update that ${status === 201 ? "creates" : "replaces"} the object is answered with ${status}`, async () => {
    assert.equal((await updating({}, query)).status, status);
  });
}

import assert from "node:assert/strict";
import { test } from "node:test";
import { Turns } from "@coxswain/apimachinery/process/event-loop/turns";
import { ByteShare } from "@coxswain/apimachinery/process/memory/byte-share";
import { LoopbackExchange } from "../loopback/exchange.ts";
import { parseRequestInfo } from "../request/request-info.ts";
import { ServerRequest } from "../request/server-request.ts";
import { type Call, handlerGates } from "./env.ts";
import { list } from "./list.ts";
import { ListBodies } from "./list-body.ts";

for (const isEnabled of [true, false]) {
  test(`a page says how many items remain ${isEnabled ? "with" : "only with"} the gate RemainingItemCount`, async () => {
    const path = "/api/v1/namespaces/web/configmaps?limit=1";
    const exchange = new LoopbackExchange({ method: "GET", path, headers: {} });
    const kind = { group: "", version: "v1", kind: "ConfigMap" };
    const found = { entries: [], revision: 9, continueToken: "t", remainingItemCount: 3 };
    const call = {
      env: {
        gates: handlerGates((gate) => isEnabled || gate !== "RemainingItemCount"),
        services: { turns: new Turns(), featureEnabled: () => true },
        listBodies: new ListBodies(new ByteShare(1024)),
      },
      ctx: new ServerRequest(exchange, parseRequestInfo("GET", path), 0, false),
      served: {
        definition: { group: "", resource: "configmaps", listKind: "ConfigMapList", table: { columns: [] } },
        version: { version: "v1" },
        ...{ kind, hubKind: kind, isHub: true, store: { storage: {}, list: async () => ({ ...found }) } },
      },
      ...{ namespace: "web", name: "", subresource: "" },
    } as unknown as Call;
    await list(call);
    const body = JSON.parse(Buffer.concat(await (await exchange.response).body.toArray()).toString());
    const metadata = { resourceVersion: "9", continue: "t", ...(isEnabled && { remainingItemCount: 3 }) };
    assert.deepEqual(body.metadata, metadata);
  });
}

import assert from "node:assert/strict";
import { test } from "node:test";
import { Turns } from "@coxswain/apimachinery/process/event-loop/turns";
import { discardLogger } from "@coxswain/apimachinery/process/logging/logger";
import { ByteShare } from "@coxswain/apimachinery/process/memory/byte-share";
import type { RequestContext } from "../request/context.ts";
import { parseRequestInfo } from "../request/request-info.ts";
import type { AggregatedApis } from "./env.ts";
import { newRouter } from "./router.ts";
import { newServedResources } from "./served-resources.ts";

/** A router without resources. @returns its response; rejects with its error */
async function fetchFrom(
  aggregated: Partial<AggregatedApis>,
  path: string,
  { headers = {}, gates = () => true }: { headers?: Record<string, string>; gates?: (gate: string) => boolean } = {},
): Promise<{ code: number; body: string }> {
  const router = newRouter({
    resources: newServedResources(),
    services: { now: () => 0, turns: new Turns(), featureEnabled: gates },
    aggregated: { remote: new Map(), ...aggregated },
    documents: new ByteShare(1_000_000),
    log: discardLogger,
  } as unknown as Parameters<typeof newRouter>[0]);
  const answer = { code: 0, body: "" };
  const exchange = {
    method: "GET",
    url: path,
    headers,
    respond(code: number, _headers: object, body: string | Buffer = "") {
      Object.assign(answer, { code, body: body.toString() });
    },
  };
  const info = parseRequestInfo("GET", path);
  const { signal } = new AbortController();
  await router({ exchange, info, query: new URLSearchParams(), signal } as unknown as RequestContext);
  return answer;
}

for (const path of ["/apis/example.com/v1", "/apis/example.com/v1/things", "/apis/example.com", "/nowhere"]) {
  test(`${path} is 503 until it is known who answers for what, then 404`, async () => {
    await assert.rejects(fetchFrom({ synced: false, groups: () => [] }, path), (err: { status: object }) => {
      assert.deepEqual(err.status, {
        kind: "Status",
        apiVersion: "v1",
        metadata: {},
        status: "Failure",
        message: "the request has been made before all known HTTP paths have been installed, please try again",
        reason: "ServiceUnavailable",
        details: { retryAfterSeconds: 5 },
        code: 503,
      });
      return true;
    });
    assert.deepEqual(await fetchFrom({ synced: true, groups: () => [] }, path), { code: 404, body: "404 page not found\n" });
  });
}

test("a document of OpenAPI v3 comes from the server that has it", async () => {
  const openApi: AggregatedApis["openApi"] = {
    generation: 1,
    // biome-ignore lint/correctness/useYield: nothing is merged.
    *merge(own) {
      return own;
    },
    v3Roots: () => ["apis/example.com/v1"],
    v3: async (root) =>
      root === "apis/example.com/v1"
        ? { code: 200, contentType: "application/json", body: Buffer.from('{"openapi":"3.0.0"}'), etag: '"1"' }
        : undefined,
  };
  const aggregated = { synced: true, groups: () => [], openApi };
  assert.ok(JSON.parse((await fetchFrom(aggregated, "/openapi/v3")).body).Paths.includes("apis/example.com/v1"));
  assert.equal((await fetchFrom(aggregated, "/openapi/v3/apis/example.com/v1")).body, '{"openapi":"3.0.0"}');
  assert.deepEqual(await fetchFrom(aggregated, "/openapi/v3/apis/other.example.com/v1"), { code: 200, body: "" });
});

for (const isCompressed of [true, false]) {
  test(`with APIResponseCompression=${isCompressed} a request ${isCompressed ? "may" : "may not"} have a compressed answer`, async () => {
    const headers: Record<string, string> = { "accept-encoding": "gzip" };
    const gates = (gate: string): boolean => gate !== "APIResponseCompression" || isCompressed;
    await fetchFrom({ synced: true, groups: () => [] }, "/nowhere", { headers, gates });
    assert.deepEqual(headers, isCompressed ? { "accept-encoding": "gzip" } : {});
  });
}

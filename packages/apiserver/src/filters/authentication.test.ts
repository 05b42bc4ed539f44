/** Effects of credentials and of the authorizer's decision in the first filters. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { StatusError } from "@coxswain/apimachinery/objects/errors/status-error";
import { realClock } from "@coxswain/apimachinery/process/clock/clock";
import { discardLogger } from "@coxswain/apimachinery/process/logging/logger";
import { newMetricsRegistry } from "@coxswain/apimachinery/process/metrics/registry";
import type { Authenticator } from "@coxswain/apimachinery/serving/authentication/authenticator";
import type { Decision } from "../authorization/authorizer.ts";
import { LoopbackExchange } from "../loopback/exchange.ts";
import { parseRequestInfo } from "../request/request-info.ts";
import { ServerRequest } from "../request/server-request.ts";
import { authentication } from "./authentication.ts";
import { authorization } from "./authorization.ts";
import type { Filter } from "./filter.ts";
import { newRequestMetrics } from "./metrics.ts";

async function passed(filterOf: Filter) {
  const headers = { authorization: "Bearer secret" };
  const exchange = new LoopbackExchange({ method: "GET", path: "/api", headers });
  const request = new ServerRequest(exchange, parseRequestInfo("GET", "/api"), 0, false);
  let isThrough = false;
  let thrown: unknown;
  try {
    await filterOf(request, async () => {
      isThrough = true;
    });
  } catch (err) {
    thrown = err;
  }
  const code = thrown instanceof StatusError ? thrown.code : exchange.status;
  return { request, isThrough, code, left: request.exchange.headers.authorization };
}

const jane = { name: "jane", groups: ["dev"] };
for (const { name, answer, want } of [
  { name: "a good one", answer: () => ({ user: jane }), want: { isThrough: true, left: undefined } },
  { name: "none", answer: () => undefined, want: { isThrough: false, code: 401 } },
  {
    name: "one of which an audience is ours",
    answer: () => ({ user: jane, audiences: ["other", "api"] }),
    want: { isThrough: true },
  },
  { name: "one for others", answer: () => ({ user: jane, audiences: ["other"] }), want: { isThrough: false, code: 401 } },
  { name: "for no audience", answer: () => ({ user: jane, audiences: [] }), want: { isThrough: false, code: 401 } },
  ...[
    [400, 401],
    [403, 401],
    [500, 500],
    [503, 503],
  ].map(([failed, code]) => ({
    name: `one whose verification fails with ${failed}`,
    answer: () => {
      throw new StatusError({ kind: "Status", apiVersion: "v1", metadata: {}, status: "Failure", code: failed });
    },
    want: { isThrough: false, code },
  })),
] as { name: string; answer: () => unknown; want: object }[]) {
  test(`a credential that is ${name}: ${JSON.stringify(want)}`, async () => {
    const options = {
      clock: realClock,
      authenticate: (async () => answer()) as Authenticator,
      apiAudiences: ["api", "api-too"],
      metrics: newRequestMetrics(newMetricsRegistry()),
      log: discardLogger,
    };
    assert.partialDeepStrictEqual(await passed(authentication(options)), want);
  });
}

for (const [decision, code] of [
  [{ decision: "allow", error: new Error("another authorizer is away") }, undefined],
  [{ decision: "no-opinion" }, 403],
  [{ decision: "deny", reason: "never" }, 403],
  [{ decision: "no-opinion", error: new Error("away") }, 500],
  [{ decision: "no-opinion", reason: "none of the others", error: new Error("away") }, 500],
] as [Decision, number | undefined][]) {
  for (const later of [false, true]) {
    test(`${decision.decision}${decision.reason ? " with a reason" : ""}${decision.error ? " with an error" : ""}, said ${later ? "later" : "at once"}, is ${code ?? "passed"}`, async () => {
      const found = await passed(authorization(() => (later ? Promise.resolve(decision) : decision)));
      assert.equal(found.isThrough, code === undefined);
      if (code !== undefined) assert.equal(found.code, code);
    });
  }
}

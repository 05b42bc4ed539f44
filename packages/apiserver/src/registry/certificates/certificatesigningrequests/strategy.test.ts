import assert from "node:assert/strict";
import { test } from "node:test";
import type { CertificateSigningRequest } from "@coxswain/apimachinery/objects/schema/kinds/certificates/v1";
import type { StrategyContext } from "../../generic/strategy.ts";
import {
  certificateApprovalStrategy,
  certificateSigningRequestStatusStrategy,
  certificateSigningRequestStrategy,
} from "./strategy.ts";

const since = "2022-01-01T00:00:00Z";
const nowText = "2022-01-01T00:01:00Z";
const ctx = { now: () => Date.parse(nowText) } as StrategyContext;
const request = (conditions: object[]): CertificateSigningRequest =>
  ({ metadata: { name: "r" }, spec: {}, status: { conditions } }) as unknown as CertificateSigningRequest;

for (const { name, user, want } of [
  { name: "nobody", user: undefined, want: {} },
  { name: "a user of a name alone", user: { name: "joe", uid: "", groups: [], extra: {} }, want: { username: "joe" } },
  {
    name: "a user of all",
    user: { name: "joe", uid: "7", groups: ["a", "b"], extra: { c: ["d"] } },
    want: { username: "joe", uid: "7", groups: ["a", "b"], extra: { c: ["d"] } },
  },
])
  test(`a new request is of who makes it, ${name}, and has no status, whatever it says`, () => {
    const said = { username: "x", uid: "x", groups: ["x"], extra: { x: ["x"] } };
    const next = { ...request([{ type: "Approved", status: "True" }]), spec: { signerName: "s", ...said } };
    certificateSigningRequestStrategy.prepareForCreate?.(next as never, { ...ctx, user } as StrategyContext);
    assert.deepEqual([next.spec, next.status], [{ signerName: "s", ...want }, {}]);
  });

test("an approval changes the conditions alone, and removes them all when it has none", () => {
  const [current, next] = [request([{ type: "Approved", status: "True" }]), request([])];
  Object.assign(current, { status: { ...current.status, certificate: "b2xk" } });
  next.status = { certificate: "bmV3", conditions: [] };
  certificateApprovalStrategy.prepareForUpdate?.(next, current, ctx);
  assert.deepEqual(next.status, { certificate: "b2xk" });
  next.status = { conditions: [{ type: "Denied", status: "True", lastUpdateTime: since, lastTransitionTime: since }] };
  certificateApprovalStrategy.prepareForUpdate?.(next, current, ctx);
  assert.deepEqual(next.status, {
    certificate: "b2xk",
    conditions: [{ type: "Denied", status: "True", lastUpdateTime: since, lastTransitionTime: since }],
  });
});

for (const { path, strategy, type } of [
  { path: "approval", strategy: certificateApprovalStrategy, type: "Approved" },
  { path: "status", strategy: certificateSigningRequestStatusStrategy, type: "Failed" },
]) {
  for (const { name, status, given, want } of [
    { name: "that stays has the time since when it holds", status: "True", given: {}, want: [nowText, since] },
    { name: "whose state changes has the present time", status: "False", given: {}, want: [nowText, nowText] },
    {
      name: "with times keeps them",
      status: "False",
      given: { lastUpdateTime: since, lastTransitionTime: since },
      want: [since, since],
    },
  ]) {
    test(`a condition of ${path} ${name}`, () => {
      const current = request([{ type, status: "True", lastUpdateTime: since, lastTransitionTime: since }]);
      const next = request([{ type, status, ...given }]);
      strategy.prepareForUpdate?.(next, current, ctx);
      const [condition] = next.status?.conditions ?? [];
      assert.deepEqual([condition?.lastUpdateTime, condition?.lastTransitionTime], want);
    });
  }
}

import assert from "node:assert/strict";
import { test } from "node:test";
import { newFakeClock } from "@coxswain/apimachinery/process/clock/fake-clock";
import type { ReviewWebhook } from "../authentication/review-webhook.ts";
import type { Attributes } from "./authorizer.ts";
import { webhookAuthorizer } from "./webhook.ts";

const attributes: Attributes = {
  user: { name: "jane", uid: "u1", groups: ["dev"], extra: { scopes: ["a"] } },
  verb: "get",
  isResourceRequest: true,
  namespace: "web",
  group: "apps",
  version: "v1",
  resource: "deployments",
  subresource: "scale",
  name: "d",
  path: "/apis/apps/v1/namespaces/web/deployments/d/scale",
};

function authorizerOf(answer: () => object | Error, version = "v1") {
  const clock = newFakeClock();
  const requested: object[] = [];
  const review: ReviewWebhook = async (question) => {
    requested.push(question);
    const status = answer();
    if (status instanceof Error) throw status;
    return status as Record<string, unknown>;
  };
  const authorize = webhookAuthorizer({
    review,
    version,
    authorizedTtlMs: 300_000,
    unauthorizedTtlMs: 30_000,
    now: () => clock.monotonic(),
  });
  return { clock, requested, authorize };
}

for (const { name, status, want } of [
  { name: "allowed is yes", status: { allowed: true, reason: "ok" }, want: { decision: "allow", reason: "ok" } },
  {
    name: "denied is a no that ends the asking",
    status: { allowed: false, denied: true, reason: "never" },
    want: { decision: "deny", reason: "never" },
  },
  { name: "neither is no opinion", status: { allowed: false, reason: "who?" }, want: { decision: "no-opinion", reason: "who?" } },
  { name: "an empty answer is no opinion", status: {}, want: { decision: "no-opinion" } },
  { name: "a text is not a yes", status: { allowed: "true" }, want: { decision: "no-opinion" } },
]) {
  test(`an authorization webhook's ${name}`, async () => {
    assert.deepEqual(await authorizerOf(() => status).authorize(attributes), want);
  });
}

test("an authorization webhook that says both yes and no means no", async () => {
  const decision = await authorizerOf(() => ({ allowed: true, denied: true })).authorize(attributes);
  assert.equal(decision.decision, "deny");
  assert.equal(decision.error?.message, "webhook subject access review returned both allow and deny response");
});

test("an authorization webhook that fails has no opinion and is called again", async () => {
  const { authorize, requested } = authorizerOf(() => new Error("away"));
  for (let i = 0; i < 2; i++) {
    const decision = await authorize(attributes);
    assert.equal(decision.decision, "no-opinion");
    assert.equal(decision.error?.message, "away");
  }
  assert.equal(requested.length, 2);
});

for (const { version, groups } of [
  { version: "v1", groups: "groups" },
  { version: "v1beta1", groups: "group" },
]) {
  test(`the question in ${version}`, async () => {
    const { authorize, requested } = authorizerOf(() => ({ allowed: true }), version);
    await authorize(attributes);
    await authorize({ ...attributes, isResourceRequest: false, path: "/metrics" });
    const user = { user: "jane", [groups]: ["dev"], extra: { scopes: ["a"] }, uid: "u1" };
    const { path: _path, isResourceRequest: _is, user: _user, ...resourceAttributes } = attributes;
    const rest = {
      kind: "SubjectAccessReview",
      apiVersion: `authorization.k8s.io/${version}`,
      metadata: { creationTimestamp: null },
    };
    assert.deepEqual(requested, [
      { ...rest, spec: { resourceAttributes, ...user }, status: { allowed: false } },
      { ...rest, spec: { nonResourceAttributes: { path: "/metrics", verb: "get" }, ...user }, status: { allowed: false } },
    ]);
  });
}

test("a question leaves out what is empty, of the request and of the user", async () => {
  const { authorize, requested } = authorizerOf(() => ({ allowed: true }), "v1");
  const nobody = { name: "", groups: [], extra: {}, uid: "" };
  await authorize({ ...attributes, namespace: "", subresource: "", name: "", user: nobody });
  const { verb, group, version, resource } = attributes;
  assert.deepEqual((requested[0] as { spec: unknown }).spec, { resourceAttributes: { verb, group, version, resource } });
});

for (const { name, status, ttlMs } of [
  { name: "yes", status: { allowed: true }, ttlMs: 300_000 },
  { name: "no", status: { allowed: false }, ttlMs: 30_000 },
  { name: "denial", status: { allowed: false, denied: true }, ttlMs: 30_000 },
]) {
  test(`a ${name} is remembered for its time and no longer`, async () => {
    const { authorize, requested, clock } = authorizerOf(() => status);
    await authorize(attributes);
    await clock.advance(ttlMs - 1);
    await authorize(attributes);
    assert.equal(requested.length, 1);
    await clock.advance(ttlMs);
    await authorize(attributes);
    assert.equal(requested.length, 2);
    await clock.advance(ttlMs - 1); // the time to live counts from the last response
    await authorize(attributes);
    assert.equal(requested.length, 2);
    await clock.advance(1);
    await authorize(attributes);
    assert.equal(requested.length, 3);
  });
}

for (const { length, asked } of [
  { length: 9_999, asked: 1 },
  { length: 10_000, asked: 2 },
]) {
  test(`a decision about a request of ${length} characters is ${asked === 1 ? "" : "not "}cached`, async () => {
    const { authorize, requested } = authorizerOf(() => ({ allowed: true }));
    const none = { namespace: "", group: "", version: "", resource: "", subresource: "", name: "" };
    const long = { ...attributes, ...none, isResourceRequest: false, verb: "get", path: "/".repeat(length - "get".length) };
    await authorize(long);
    await authorize(long);
    assert.equal(requested.length, asked);
  });
}

test("each part of a user and of a request is another question", async () => {
  const { authorize, requested } = authorizerOf(() => ({ allowed: true }));
  const user = attributes.user;
  const all: Attributes[] = [
    attributes,
    ...[{ uid: "u2" }, { name: "joe" }, { groups: ["ops"] }, { extra: { scopes: ["b"] } }].map((change) => ({
      ...attributes,
      user: { ...user, ...change },
    })),
    ...["verb", "namespace", "group", "version", "resource", "subresource", "name"].map((part) => ({
      ...attributes,
      [part]: "x",
    })),
    { ...attributes, isResourceRequest: false },
  ];
  for (let i = 0; i < 2; i++) for (const one of all) await authorize(one);
  assert.equal(requested.length, all.length);
});

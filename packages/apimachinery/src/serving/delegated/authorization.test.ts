import assert from "node:assert/strict";
import { test } from "node:test";
import { forbidden } from "../../objects/errors/status-error.ts";
import type { SubjectAccessReviewSpec } from "../../objects/schema/kinds/authorization/v1.ts";
import { newFakeClock } from "../../process/clock/fake-clock.ts";
import { newMetricsRegistry } from "../../process/metrics/registry.ts";
import { newFakeClient } from "../../testing/fake-client.ts";
import { delegatedAuthorization } from "./authorization.ts";

interface Answer {
  readonly allowed: boolean;
  readonly denied?: boolean;
  readonly reason?: string;
}

/** Access of ann to a path, as the API server says. */
function reviewing(options: { isAlone?: boolean; groups?: readonly string[]; paths?: readonly string[] } = {}) {
  const clock = newFakeClock();
  const client = newFakeClient({ clock });
  const asked: SubjectAccessReviewSpec[] = [];
  const server: { answer: Answer | Error } = { answer: { allowed: true } };
  client.react("create", "subjectaccessreviews", ({ sent }) => {
    asked.push((sent as { spec: SubjectAccessReviewSpec }).spec);
    if (server.answer instanceof Error) throw server.answer;
    return { status: server.answer };
  });
  const authorize = delegatedAuthorization({
    client: options.isAlone === true ? undefined : client,
    ...{ authorizedTtlMs: 10_000, unauthorizedTtlMs: 2_000, clock, metrics: newMetricsRegistry() },
    alwaysAllowGroups: options.groups ?? [],
    alwaysAllowPaths: options.paths ?? [],
  });
  const ann = { name: "ann", uid: "u1", groups: ["a", "b"], extra: { scope: ["s"] } };
  return {
    clock,
    server,
    authorize,
    ann,
    asked: () => asked.splice(0),
    get: async (path: string, user = ann) => (await authorize(user, { nonResourceAttributes: { path, verb: "get" } })).allowed,
  };
}

test("the review has the whole user and the attributes, and its reason is returned", async () => {
  const { authorize, ann, server, asked } = reviewing();
  server.answer = { allowed: false, reason: "not yours" };
  const attributes = { resourceAttributes: { verb: "get", version: "v1", resource: "nodes", name: "n1" } };
  assert.deepEqual(await authorize(ann, attributes), { allowed: false, reason: "not yours" });
  assert.deepEqual(asked(), [{ user: "ann", uid: "u1", groups: ["a", "b"], extra: { scope: ["s"] }, ...attributes }]);
});

for (const { answer, want } of [
  { answer: { allowed: true }, want: true },
  { answer: { allowed: true, denied: true }, want: false },
  { answer: { allowed: false }, want: false },
]) {
  test(`a review that answers ${JSON.stringify(answer)} ${want ? "allows" : "refuses"}`, async () => {
    const { server, get } = reviewing();
    server.answer = answer;
    assert.equal(await get("/x"), want);
  });
}

test("a permission is kept for its time and a refusal for its own, each until it is over exactly", async () => {
  const { clock, server, get, asked } = reviewing();
  assert.equal(await get("/x"), true);
  server.answer = { allowed: false };
  assert.equal(await get("/y"), false);
  await clock.advance(1_999);
  assert.deepEqual([await get("/x"), await get("/y")], [true, false]);
  assert.equal(asked().length, 2);
  server.answer = { allowed: true };
  await clock.advance(1);
  assert.equal(await get("/y"), true);
  server.answer = { allowed: false };
  await clock.advance(7_999);
  assert.equal(await get("/x"), true);
  await clock.advance(1);
  assert.equal(await get("/x"), false);
  assert.equal(asked().length, 2);
});

test("answers are kept by user, with groups and extra, and by attributes", async () => {
  const { ann, get, server } = reviewing();
  assert.equal(await get("/x"), true);
  server.answer = { allowed: false };
  for (const other of [{ groups: ["a"] }, { extra: { scope: ["t"] } }, { uid: "u2" }, { name: "bob" }])
    assert.equal(await get("/x", { ...ann, ...other }), false, JSON.stringify(other));
  assert.equal(await get("/x/"), false);
  assert.equal(await get("/x"), true);
});

test("a failed review is an error, and is not kept", async () => {
  const { server, get } = reviewing();
  server.answer = forbidden({ group: "", resource: "subjectaccessreviews" }, "", "no");
  await assert.rejects(get("/x"), /forbidden/);
  server.answer = { allowed: true };
  assert.equal(await get("/x"), true);
});

test("open paths and groups need no review, also without a client; the second pattern counts as the first", async () => {
  for (const isAlone of [false, true]) {
    const { get, ann, asked, server } = reviewing({
      isAlone,
      groups: ["system:masters", "b2"],
      paths: ["/healthz", "livez/*", "/readyz"],
    });
    server.answer = { allowed: false };
    for (const path of ["/healthz", "/livez/", "/livez/etcd", "readyz"]) assert.equal(await get(path), true, path);
    for (const path of ["/", "/healthz/x", "/livez", "/metrics"]) assert.equal(await get(path), false, path);
    assert.equal(asked().length, isAlone ? 0 : 4);
    assert.equal(await get("/metrics", { ...ann, groups: ["a", "b2"] }), true);
    assert.equal(asked().length, 0);
  }
});

test("a pattern with a star in the middle is refused", () => {
  for (const path of ["/a*b", "*/a"]) assert.throws(() => reviewing({ paths: ["/ok", path] }), /only trailing \* allowed/);
});

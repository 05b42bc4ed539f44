import assert from "node:assert/strict";
import { test } from "node:test";
import { StatusError } from "@coxswain/apimachinery/objects/errors/status-error";
import type { Attributes } from "../authorization/authorizer.ts";
import { LoopbackExchange } from "../loopback/exchange.ts";
import type { AuditTrail } from "../request/audit-trail.ts";
import { parseRequestInfo } from "../request/request-info.ts";
import { ServerRequest } from "../request/server-request.ts";
import { impersonation } from "./authentication.ts";

/** Sends a request of `admin` with these headers; `refused` names what may not be impersonated: `groups/dev`. */
async function send(headers: Record<string, string | string[]>, refused: readonly string[] = [], reason = "") {
  const exchange = new LoopbackExchange({ method: "GET", path: "/api", headers });
  const request = new ServerRequest(exchange, parseRequestInfo("GET", "/api"), 0, false);
  request.user = { name: "admin", groups: ["ops"] };
  const requested: string[] = [];
  let passed = false;
  const filter = impersonation(async ({ user, verb, resource, subresource, group, namespace, name }: Attributes) => {
    const what = [group, resource, subresource, namespace, name].filter((part) => part !== "").join("/");
    requested.push(`${user.name} ${verb} ${what}`);
    return { decision: refused.includes(what) ? "no-opinion" : "allow", reason };
  });
  const audited: unknown[] = [];
  request.audit = { impersonated: (user: unknown) => void audited.push(user) } as unknown as AuditTrail; // cast: all that is used
  const result = Promise.resolve(
    filter(request, async () => {
      passed = true;
    }),
  );
  const code = await result.then(
    () => exchange.status,
    (err: unknown) => (err instanceof StatusError ? err.code : String(err)),
  );
  const message = await result.then(
    () => "",
    (err: Error) => err.message,
  );
  const rights = requested.map((one) => one.replace("admin impersonate ", ""));
  return { request, exchange, requested: rights, passed, code, message, audited };
}

const all = {
  "impersonate-user": "jane",
  "impersonate-uid": "u1",
  "impersonate-group": ["dev", "qa"],
  "impersonate-extra-a": ["1", "2"],
  "impersonate-extra-b%2Fc": "3",
  accept: "*/*",
};
const reviews = "authentication.k8s.io";
const rights = [
  "users/jane",
  "groups/dev",
  "groups/qa",
  `${reviews}/userextras/a/1`,
  `${reviews}/userextras/a/2`,
  `${reviews}/userextras/b/c/3`,
  `${reviews}/uids/u1`,
];

test("an impersonated user has all that the headers say, each requested; the next ones see the headers no more", async () => {
  const { request, requested, passed, audited } = await send(all);
  assert.deepEqual(requested, rights);
  assert.deepEqual(audited, [request.user], "the audit names the user who is impersonated");
  assert.equal(passed, true);
  assert.deepEqual(request.user, {
    name: "jane",
    groups: ["dev", "qa", "system:authenticated"],
    uid: "u1",
    extra: { a: ["1", "2"], "b/c": ["3"] },
  });
  assert.deepEqual(
    Object.keys(request.exchange.headers).filter((name) => name.startsWith("impersonate")),
    [],
  );
});

for (const right of rights) {
  test(`impersonation without the right to ${right} gets 403 before later filters run`, async () => {
    const { request, requested, passed, code } = await send(all, [right]);
    assert.deepEqual([code, passed, request.user.name], [403, false, "admin"]);
    assert.deepEqual(requested, rights.slice(0, rights.indexOf(right) + 1));
  });
}

for (const { name, headers, user } of [
  { name: "nobody", headers: {}, user: { name: "admin", groups: ["ops"] } },
  { name: "a user alone", headers: { "impersonate-user": "jane" }, user: { name: "jane", groups: ["system:authenticated"] } },
  {
    name: "somebody unauthenticated",
    headers: { "impersonate-user": "jane", "impersonate-group": "system:unauthenticated" },
    user: { name: "jane", groups: ["system:unauthenticated"] },
  },
  {
    name: "the anonymous user",
    headers: { "impersonate-user": "system:anonymous", "impersonate-group": "dev" },
    user: { name: "system:anonymous", groups: ["dev", "system:unauthenticated"] },
  },
  {
    name: "a service account",
    headers: { "impersonate-user": "system:serviceaccount:web:robot" },
    user: {
      name: "system:serviceaccount:web:robot",
      groups: ["system:serviceaccounts", "system:serviceaccounts:web", "system:authenticated"],
    },
  },
  {
    name: "a service account in other groups",
    headers: { "impersonate-user": "system:serviceaccount:web:robot", "impersonate-group": "dev" },
    user: { name: "system:serviceaccount:web:robot", groups: ["dev", "system:authenticated"] },
  },
]) {
  test(`impersonating ${name} results in the user ${user.name} in ${user.groups.join()}`, async () => {
    const { request, passed } = await send(headers);
    assert.deepEqual([request.user, passed], [user, true]);
  });
}

test("the spellings of one key of the extras are one key", async () => {
  const { request } = await send({ "impersonate-user": "jane", "impersonate-extra-ab": "1", "impersonate-extra-a%62": "2" });
  assert.deepEqual(request.user.extra, { ab: ["1", "2"] });
});

test("the anonymous user that is said to be unauthenticated is that once", async () => {
  const headers = { "impersonate-user": "system:anonymous", "impersonate-group": "system:unauthenticated" };
  assert.deepEqual((await send(headers)).request.user.groups, ["system:unauthenticated"]);
});

for (const part of ["impersonate-uid", "impersonate-group", "impersonate-extra-a"]) {
  test(`${part} without a user is an error, and the request is not handled`, async () => {
    const { passed, code, requested } = await send({ [part]: "x" });
    assert.deepEqual([passed, code, requested], [false, 500, []]);
  });
}

test("a refused impersonation says why", async () => {
  const { message, audited } = await send({ "impersonate-user": "jane" }, ["users/jane"], "not on Sundays");
  const what = 'users "jane" is forbidden: User "admin" cannot impersonate resource "users" in API group "" at the cluster scope';
  assert.equal(message, `${what}: not on Sundays`);
  assert.deepEqual(audited, []);
});

test("parts without a user are listed as Go prints them", async () => {
  const { "impersonate-user": _, ...parts } = all;
  const { exchange } = await send(parts);
  const v1 = "authentication.k8s.io/v1";
  const listed = [
    ...["{Group  dev    }", "{Group  qa    }"],
    ...[`{UserExtra  1  ${v1}  a}`, `{UserExtra  2  ${v1}  a}`, `{UserExtra  3  ${v1}  b/c}`, `{UID  u1  ${v1}  }`],
  ].join(" ");
  const body = String(Buffer.concat(await Array.fromAsync((await exchange.response).body as AsyncIterable<Buffer>)));
  assert.equal(body, `Internal Server Error: "/api": requested [${listed}] without impersonating a user\n`);
});

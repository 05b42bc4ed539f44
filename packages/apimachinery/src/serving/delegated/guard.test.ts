import assert from "node:assert/strict";
import { test } from "node:test";
import { discardLogger } from "../../process/logging/logger.ts";
import type { Authenticator } from "../authentication/authenticator.ts";
import type { Exchange } from "../exchange.ts";
import type { DelegatedAuthorizer } from "./authorization.ts";
import { newGuard } from "./guard.ts";

interface Answer {
  readonly code: number;
  readonly type: string;
  readonly text: string;
}

/** What a guard says about `GET /metrics` of a user. */
async function ask(
  authenticate: Authenticator,
  authorize: DelegatedAuthorizer,
  path = "/metrics",
): Promise<{ isAllowed: boolean; answer: Answer | undefined; logged: string[] }> {
  const logged: string[] = [];
  let answer: Answer | undefined;
  const exchange = {
    ...{ method: "GET", url: path, headers: {} },
    respond(code: number, headers: Record<string, string>, text: string) {
      assert.equal(answer, undefined, "one answer only");
      assert.equal(headers["x-content-type-options"], "nosniff");
      answer = { code, type: headers["content-type"] ?? "", text };
    },
  } as Partial<Exchange> as Exchange;
  const log = { ...discardLogger, error: (message: string, err?: unknown) => void logged.push(`${message}: ${String(err)}`) };
  return { isAllowed: await newGuard({ authenticate, authorize, log })(exchange, path), answer, logged };
}

const asUser =
  (name: string): Authenticator =>
  () =>
    Promise.resolve({ user: { name, groups: [] } });
const never: DelegatedAuthorizer = () => assert.fail("nobody to authorize");

test("a request of an allowed user gets no answer of the guard, and is asked about by path and verb", async () => {
  const asked: unknown[] = [];
  const authorize: DelegatedAuthorizer = async (user, attributes) => {
    asked.push([user.name, attributes]);
    return { allowed: true, reason: "" };
  };
  assert.deepEqual(await ask(asUser("ann"), authorize), { isAllowed: true, answer: undefined, logged: [] });
  assert.deepEqual(asked, [["ann", { nonResourceAttributes: { path: "/metrics", verb: "get" } }]]);
});

for (const { name, authenticate, logged } of [
  { name: "no credentials", authenticate: () => Promise.resolve(undefined), logged: [] },
  {
    name: "credentials that cannot be checked",
    authenticate: () => Promise.reject(new Error("no such server")),
    logged: ["Unable to authenticate the request due to an error: Error: no such server"],
  },
]) {
  test(`a request with ${name} is answered with 401, and nobody is authorized`, async () => {
    const asked = await ask(authenticate, never);
    assert.deepEqual([asked.isAllowed, asked.answer?.code, asked.answer?.type], [false, 401, "application/json"]);
    assert.equal((JSON.parse(asked.answer?.text ?? "") as { reason: string }).reason, "Unauthorized");
    assert.deepEqual(asked.logged, logged);
  });
}

for (const { reason, want } of [
  { reason: "", want: 'forbidden: User "a&lt;b&gt;" cannot get path "/x&amp;y"' },
  { reason: "no <role>", want: 'forbidden: User "a&lt;b&gt;" cannot get path "/x&amp;y": no <role>' },
]) {
  test(`a refused request is answered with 403 and names the user and the path, escaped${reason && ", and the reason"}`, async () => {
    const { isAllowed, answer } = await ask(asUser("a<b>"), async () => ({ allowed: false, reason }), "/x&y");
    assert.deepEqual([isAllowed, answer?.code, answer?.type], [false, 403, "application/json"]);
    const status = JSON.parse(answer?.text ?? "") as { message: string; reason: string; code: number };
    assert.deepEqual(status, { ...status, message: want, reason: "Forbidden", code: 403 });
  });
}

test("a failed check of access is answered with 500, and refuses the request", async () => {
  const asked = await ask(asUser("ann"), () => Promise.reject(new Error("<gone>")));
  assert.deepEqual(asked, {
    isAllowed: false,
    answer: {
      code: 500,
      type: "text/plain; charset=utf-8",
      text: 'Internal Server Error: "/metrics": &lt;gone&gt;\n',
    },
    logged: ["cannot check whether a request is allowed: Error: <gone>"],
  });
});

import assert from "node:assert/strict";
import { test } from "node:test";
import type { Attributes, Authorizer, Decision } from "./authorizer.ts";
import { unionAuthorizer } from "./union.ts";

const allow = { decision: "allow", reason: "a" } as const;
const deny = { decision: "deny", reason: "d" } as const;
const none = (reason: string) => ({ decision: "no-opinion", reason }) as const;
const fails = (): Decision => {
  throw new Error("away");
};

for (const later of [false, true]) {
  const one = (decide: Decision | (() => Decision)): Authorizer => {
    const made = () => (typeof decide === "function" ? decide() : decide);
    return later ? async () => made() : made;
  };
  for (const { name, of, want } of [
    { name: "the second allows what the first has no opinion of", of: [one(none("1")), one(allow)], want: allow },
    {
      name: "a denial is final, also when a later authorizer would allow the request",
      of: [one(none("1")), one(deny), one(allow)],
      want: deny,
    },
    { name: "a first authorizer that allows is not overruled", of: [one(allow), one(deny)], want: allow },
    { name: "one that fails neither allows nor keeps the next one from it", of: [one(fails), one(allow)], want: allow },
    { name: "one that fails does not keep the next one from denying", of: [one(fails), one(deny)], want: deny },
    {
      name: "no opinions are no, with all reasons",
      of: [one(none("1")), one(none("2"))],
      want: { decision: "no-opinion", reason: "1\n2" },
    },
    { name: "an empty union denies", of: [], want: { decision: "no-opinion" } },
  ]) {
    test(`${name}${later ? ", when they take their time" : ""}`, async () => {
      assert.deepEqual(await unionAuthorizer(of)({} as Attributes), want);
    });
  }

  test(`the errors of all are reported${later ? ", when they take their time" : ""}`, async () => {
    const alone = await unionAuthorizer([one(fails), one(none("2"))])({} as Attributes);
    assert.deepEqual([alone.decision, alone.reason, alone.error?.message], ["no-opinion", "2", "away"]);
    const both = await unionAuthorizer([one(fails), one(fails)])({} as Attributes);
    assert.equal(both.error?.message, "away, away");
  });
}

test("one that fails with a reason is reported with both", async () => {
  const fault = new Error("away");
  const decision = await unionAuthorizer([() => ({ decision: "no-opinion", reason: "unknown", error: fault })])({} as Attributes);
  assert.deepEqual(decision, { decision: "no-opinion", reason: "unknown", error: fault });
});

import assert from "node:assert/strict";
import { test } from "node:test";
import type { ServiceAccount } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import type { StrategyContext } from "../../generic/strategy.ts";
import { serviceAccountStrategy } from "./strategy.ts";

const accountOf = (): ServiceAccount => ({
  metadata: { name: "a" },
  secrets: [{ kind: "Secret", namespace: "other", name: "s" }, { fieldPath: "x" }],
});

for (const { verb, prepared } of [
  { verb: "create", prepared: (next: ServiceAccount) => serviceAccountStrategy.prepareForCreate?.(next, {} as StrategyContext) },
  {
    verb: "update",
    prepared: (next: ServiceAccount) => serviceAccountStrategy.prepareForUpdate?.(next, accountOf(), {} as StrategyContext),
  },
]) {
  test(`${verb} keeps only the names of an account's secrets`, () => {
    const account = accountOf();
    prepared(account);
    assert.deepEqual(account.secrets, [{ name: "s" }, {}]);
    const without: ServiceAccount = { metadata: { name: "a" } };
    prepared(without);
    assert.equal(without.secrets, undefined);
  });
}

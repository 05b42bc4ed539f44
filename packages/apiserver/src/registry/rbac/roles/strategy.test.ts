import assert from "node:assert/strict";
import { test } from "node:test";
import type { ClusterRole } from "@coxswain/apimachinery/objects/schema/kinds/rbac/v1";
import { Turns } from "@coxswain/apimachinery/process/event-loop/turns";
import type { StrategyContext } from "../../generic/strategy.ts";
import { newRoleStrategy } from "./strategy.ts";

/** A user who may read pods, and nothing else. */
const rules = [{ verbs: ["get"], apiGroups: [""], resources: ["pods"] }];
const services = {
  authorize: async () => ({ decision: "no-opinion" }),
  rbacRules: async () => ({ rules, errors: [] }),
  turns: new Turns(),
};
const strategyOf = (more: object = {}): ReturnType<typeof newRoleStrategy> =>
  newRoleStrategy({ services: () => ({ ...services, ...more }) } as never, false);
const strategy = strategyOf();
const ctx = { user: { name: "joe", groups: [] }, signal: new AbortController().signal } as unknown as StrategyContext;
const secrets = [{ verbs: ["get"], apiGroups: [""], resources: ["secrets"] }];
const aRole = (metadata: object = {}, fields: Partial<ClusterRole> = {}): ClusterRole => ({
  metadata: { name: "r", ...metadata },
  rules: secrets,
  ...fields,
});
const aggregationRule = { clusterRoleSelectors: [{ matchLabels: { a: "b" } }] };

for (const { name, next, current, refused } of [
  {
    name: "change a role's owners",
    next: aRole({ ownerReferences: [] }),
    current: aRole({ ownerReferences: [{ uid: "u" }] }),
    refused: false,
  },
  { name: "change a role's finalizers", next: aRole(), current: aRole({ finalizers: ["a/b"] }), refused: false },
  {
    name: "change a role's owners of an older version and by another manager",
    next: aRole({ ownerReferences: [], resourceVersion: "1", managedFields: [{ manager: "m" }] }),
    current: aRole({ ownerReferences: [{ uid: "u" }], resourceVersion: "2" }),
    refused: false,
  },
  {
    name: "change a role's finalizers and rules",
    next: aRole({ finalizers: ["a/b"] }),
    current: aRole({}, { rules: [] }),
    refused: true,
  },
  { name: "change a role's labels", next: aRole({ labels: { a: "b" } }), current: aRole(), refused: true },
  { name: "change a role's annotations", next: aRole({ annotations: { a: "b" } }), current: aRole(), refused: true },
  { name: "change a role's rules", next: aRole(), current: aRole({}, { rules: [] }), refused: true },
  { name: "reduce a role's rules to what the user has", next: aRole({}, { rules }), current: aRole(), refused: false },
  {
    name: "take its aggregationRule from a role",
    next: aRole({}, { rules }),
    current: aRole({}, { rules, aggregationRule }),
    refused: true,
  },
]) {
  test(`a user without the permissions of a role ${refused ? "may not" : "may"} ${name}`, async () => {
    const begun = Promise.resolve(strategy.beginUpdate?.(next, current, ctx));
    if (refused) await assert.rejects(begun, { code: 403 });
    else assert.equal(await begun, undefined);
  });
}

test("a role that is created is asked for without a name, as by the path, a role that is changed by its name", async () => {
  const asked: unknown[] = [];
  const authorize = async ({ verb, name }: { verb: string; name: string }): Promise<{ decision: string }> => {
    asked.push([verb, name]);
    return { decision: "allow" };
  };
  await strategyOf({ authorize }).beginCreate?.(aRole(), ctx);
  await strategyOf({ authorize }).beginUpdate?.(aRole({ labels: { a: "b" } }), aRole(), ctx);
  assert.deepEqual(asked, [
    ["escalate", ""],
    ["escalate", "r"],
  ]);
});

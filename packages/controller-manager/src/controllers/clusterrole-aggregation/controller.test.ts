import assert from "node:assert/strict";
import { test } from "node:test";
import { serviceUnavailable, unsupportedMediaType } from "@coxswain/apimachinery/objects/errors/status-error";
import type { ClusterRole, PolicyRule } from "@coxswain/apimachinery/objects/schema/kinds/rbac/v1";
import { clusterRoles } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { cpuMsOf, leastOf } from "@coxswain/apimachinery/testing/cpu-time";
import { settle } from "@coxswain/apimachinery/testing/wait-for";
import { newTestContext } from "../../testing/test-context.ts";
import { aggregatedRules, newClusterRoleAggregationController } from "./controller.ts";

const rule = (resource: string, ...verbs: string[]): PolicyRule => ({ apiGroups: [""], resources: [resource], verbs });
const aRole = (name: string, labels: Record<string, string>, ...rules: PolicyRule[]): ClusterRole => ({
  metadata: { name, labels },
  rules,
});
const toView = { "rbac.authorization.k8s.io/aggregate-to-view": "true" };
const toEdit = { "rbac.authorization.k8s.io/aggregate-to-edit": "true" };
const anAggregate = (name: string, labels: Record<string, string>, ...selectors: Record<string, string>[]): ClusterRole => ({
  ...aRole(name, labels),
  aggregationRule: { clusterRoleSelectors: selectors.map((matchLabels) => ({ matchLabels })) },
});

const pods = rule("pods", "get");
const services = rule("services", "get");
for (const { name, role, others, want } of [
  {
    name: "takes rules in the order of the roles' names",
    role: anAggregate("view", {}, toView),
    others: [aRole("b", toView, services), aRole("a", toView, pods)],
    want: [pods, services],
  },
  {
    name: "takes a rule once",
    role: anAggregate("view", {}, toView),
    others: [aRole("a", toView, pods), aRole("b", toView, pods, services)],
    want: [pods, services],
  },
  ...(["verbs", "apiGroups", "resources", "resourceNames", "nonResourceURLs"] as const).map((field) => ({
    name: `takes rules that differ in their ${field} alone`,
    role: anAggregate("view", {}, toView),
    others: [aRole("a", toView, pods), aRole("b", toView, { ...pods, [field]: ["other"] })],
    want: [pods, { ...pods, [field]: ["other"] }],
  })),
  {
    name: "aggregates in the order of the selectors",
    role: anAggregate("edit", {}, toEdit, toView),
    others: [aRole("a", toView, pods), aRole("b", toEdit, services)],
    want: [services, pods],
  },
  {
    name: "leaves out what no selector chooses, and itself",
    role: { ...anAggregate("view", toView, toView), rules: [services] },
    others: [aRole("a", toEdit, pods)],
    want: [],
  },
]) {
  test(name, () => assert.deepEqual(aggregatedRules(role, [role, ...others]), want));
}

for (const { name, without } of [
  { name: "applies", without: false },
  { name: "updates where the server has no apply", without: true },
]) {
  test(`fills a role, follows its parts, and passes rules on to roles that aggregate it: ${name}`, async (t) => {
    const { client, ctx, run } = newTestContext(t);
    if (without)
      client.react("patch", "clusterroles", () => {
        throw unsupportedMediaType("no apply here");
      });
    client.put(clusterRoles, anAggregate("edit", {}, toEdit));
    client.put(clusterRoles, anAggregate("view", toEdit, toView));
    client.put(clusterRoles, aRole("part", toView, pods));
    await run(newClusterRoleAggregationController(ctx));
    const rules = (of: string) => client.object<ClusterRole>(clusterRoles, of)?.rules;
    assert.deepEqual(rules("view"), [pods]);
    assert.deepEqual(rules("edit"), [pods]);

    client.put(clusterRoles, aRole("part", toView, pods, services));
    await settle(30);
    assert.deepEqual(rules("edit"), [pods, services]);
    client.remove(clusterRoles, "part");
    await settle(30);
    assert.deepEqual(rules("view"), []);
    client.clearActions();
    client.put(clusterRoles, aRole("unrelated", {}, services));
    await settle(30);
    assert.deepEqual(client.writes, []);
  });
}

test("10,000 rules of two roles are aggregated in time that is linear in their number", async () => {
  const rules = Array.from({ length: 10_000 }, (_, at) => rule(`r${at}`, "get"));
  const all = [aRole("a", toView, ...rules), aRole("b", toView, ...rules.map((one) => ({ ...one, resourceNames: [] })))];
  let found: PolicyRule[] = [];
  const took = await leastOf(300, async () =>
    cpuMsOf(() => {
      found = aggregatedRules(anAggregate("view", {}, toView), all);
    }),
  );
  assert.equal(found.length, 10_000);
  assert.ok(took < 300, `${took} ms`);
});

test("rules are applied by force under the controller's own name, with nothing but the rules", async (t) => {
  const { client, ctx, run } = newTestContext(t);
  const asked: object[] = [];
  const patching = new Proxy(ctx.client, {
    get(target, verb: keyof typeof ctx.client) {
      if (verb !== "patch") return target[verb];
      return (...[ref, target_, patch, { fieldManager, force } = {}]: Parameters<typeof client.patch>) => {
        asked.push({ fieldManager, force, patch });
        return client.patch(ref, target_, patch);
      };
    },
  });
  client.put(clusterRoles, anAggregate("view", { kept: "yes" }, toView), aRole("part", toView, pods));
  await run(newClusterRoleAggregationController({ ...ctx, client: patching }));
  const body = { apiVersion: "rbac.authorization.k8s.io/v1", kind: "ClusterRole", metadata: { name: "view" }, rules: [pods] };
  assert.deepEqual(asked, [{ fieldManager: "clusterrole-aggregation-controller", force: true, patch: { type: "apply", body } }]);
});

test("another failure than that of a server without apply is tried again, not updated", async (t) => {
  const { client, clock, ctx, run } = newTestContext(t);
  let failures = 0;
  client.react("patch", "clusterroles", () => {
    if (failures++ === 0) throw serviceUnavailable("away");
    return undefined;
  });
  client.put(clusterRoles, anAggregate("view", {}, toView), aRole("part", toView, pods));
  await run(newClusterRoleAggregationController(ctx));
  await clock.advance(1000);
  await settle(30);
  assert.deepEqual(
    client.writes.map(({ verb }) => verb),
    ["patch", "patch"],
  );
});

test("an aggregate without rules, of no roles, is not written", async (t) => {
  const { client, ctx, run } = newTestContext(t);
  const { rules: _, ...empty } = anAggregate("view", {}, toView);
  client.put(clusterRoles, empty as ClusterRole);
  await run(newClusterRoleAggregationController(ctx));
  assert.deepEqual(client.writes, []);
});

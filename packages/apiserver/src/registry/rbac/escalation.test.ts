import assert from "node:assert/strict";
import { test } from "node:test";
import { atOnce } from "@coxswain/apimachinery/process/event-loop/steps";
import { Turns } from "@coxswain/apimachinery/process/event-loop/turns";
import { cpuMsOf, longestTurnOf } from "@coxswain/apimachinery/testing/cpu-time";
import { hasFields } from "@coxswain/apimachinery/testing/has-fields";
import type { PolicyRule } from "../../authorization/authorizer.ts";
import { compactRules, refuseAggregation, refuseEscalation, uncoveredRules as uncoveredSteps } from "./escalation.ts";

const uncoveredRules = (owned: readonly PolicyRule[], wanted: readonly PolicyRule[]): PolicyRule[] =>
  atOnce(uncoveredSteps(owned, wanted));
const rule = (verbs: string[], apiGroups: string[], resources: string[], resourceNames?: string[]): PolicyRule => ({
  verbs,
  apiGroups,
  resources,
  ...(resourceNames && { resourceNames }),
});

for (const { name, owned, wanted, missing } of [
  { name: "the same rule", owned: [rule(["get"], [""], ["pods"])], wanted: [rule(["get"], [""], ["pods"])], missing: 0 },
  {
    name: "a part of a wildcard",
    owned: [rule(["*"], ["*"], ["*"])],
    wanted: [rule(["get"], ["apps"], ["deployments/scale"])],
    missing: 0,
  },
  {
    name: "a wildcard out of parts",
    owned: [rule(["get", "list"], [""], ["pods"])],
    wanted: [rule(["*"], [""], ["pods"])],
    missing: 1,
  },
  {
    name: "rights from two rules",
    owned: [rule(["get"], [""], ["pods"]), rule(["list"], [""], ["pods"])],
    wanted: [rule(["get", "list"], [""], ["pods"])],
    missing: 0,
  },
  {
    name: "a subresource by its parent",
    owned: [rule(["get"], [""], ["pods"])],
    wanted: [rule(["get"], [""], ["pods/log"])],
    missing: 1,
  },
  {
    name: "a subresource by its wildcard",
    owned: [rule(["get"], [""], ["*/log"])],
    wanted: [rule(["get"], [""], ["pods/log"])],
    missing: 0,
  },
  { name: "one name of all", owned: [rule(["get"], [""], ["pods"])], wanted: [rule(["get"], [""], ["pods"], ["a"])], missing: 0 },
  {
    name: "all names of one",
    owned: [rule(["get"], [""], ["pods"], ["a"])],
    wanted: [rule(["get"], [""], ["pods"])],
    missing: 1,
  },
  {
    name: "another name",
    owned: [rule(["get"], [""], ["pods"], ["a"])],
    wanted: [rule(["get"], [""], ["pods"], ["a", "b"])],
    missing: 1,
  },
  {
    name: "a URL below a prefix",
    owned: [{ verbs: ["get"], nonResourceURLs: ["/logs/*"] }],
    wanted: [{ verbs: ["get"], nonResourceURLs: ["/logs/x"] }],
    missing: 0,
  },
  {
    name: "a URL below one that ends with several stars",
    owned: [{ verbs: ["get"], nonResourceURLs: ["/logs/**"] }],
    wanted: [{ verbs: ["get"], nonResourceURLs: ["/logs/x"] }],
    missing: 0,
  },
  {
    name: "every URL",
    owned: [{ verbs: ["get"], nonResourceURLs: ["/logs/*"] }],
    wanted: [{ verbs: ["get"], nonResourceURLs: ["*"] }],
    missing: 1,
  },
]) {
  test(`${missing === 0 ? "may" : "may not"} grant ${name}`, () => assert.equal(uncoveredRules(owned, wanted).length, missing));
}

const many = (count: number, prefix: string): string[] => Array.from({ length: count }, (_, i) => `${prefix}${i}`);

for (const { name, groups, resources, missing } of [
  { name: "one combination", groups: ["g4"], resources: ["r4"], missing: 0 },
  { name: "some combinations", groups: ["g0", "g4"], resources: ["r0", "r4"], missing: 0 },
  { name: "a combination too many", groups: ["g4", "g5"], resources: ["r4"], missing: 1 },
]) {
  test(`of a rule of 25 combinations of groups and resources, ${name} ${missing === 0 ? "may" : "may not"} be granted`, () => {
    const owned = [rule(["get"], many(5, "g"), many(5, "r"))];
    assert.equal(uncoveredRules(owned, [rule(["get"], groups, resources)]).length, missing);
  });
}

for (const { name, owned, wanted, missing } of [
  { name: "rules that the user lacks", owned: [rule(["get"], [""], ["pods"])], missing: 5000, of: 30 },
  { name: "rules that one wildcard rule covers", owned: [rule(["*"], ["*"], ["*"])], missing: 0, of: 1000 },
  {
    name: "rules that two rules cover together",
    owned: [rule(many(20, "v"), ["*"], ["*"]), rule(["*"], ["*"], ["*"], ["a"]), rule(["v20"], ["*"], ["*"])],
    missing: 0,
    of: 21,
  },
  { name: "more combinations than are examined", owned: [rule(["*"], many(500, "g"), ["*"])], missing: 1, of: 1000 },
].map(({ of, ...one }) => ({ ...one, wanted: [rule(many(of, "v"), many(of, "g"), many(of, "r"))] }))) {
  test(`rules whose lists multiply are decided soon: ${name}`, () => {
    const tookMs = cpuMsOf(() => assert.equal(uncoveredRules(owned, wanted).length, missing));
    assert.ok(tookMs < 500, `${tookMs} ms`);
  });
}

test("the combinations that are examined are counted over all rules", () => {
  const owned = [rule(many(20, "v"), ["*"], ["*"]), rule(["v20", "v21", "v22", "v23", "v24", "v25", "v26"], ["*"], ["*"])];
  const wanted = rule(many(27, "v"), many(27, "g"), many(27, "r"));
  for (const [count, missing] of [
    [2, 0],
    [3, 1],
  ] as const)
    assert.equal(uncoveredRules(owned, Array<PolicyRule>(count).fill(wanted)).length, missing);
});

const urls = (from: string): PolicyRule => ({ verbs: ["get"], nonResourceURLs: many(40_000, from).map((url) => `/${url}/*`) });
for (const { name, owned, wanted } of [
  {
    name: "10,000 rules with 10,000",
    owned: many(10_000, "g").map((group) => rule(["get"], [group], ["a", "b"], ["x"])),
    wanted: many(10_000, "g").map((group) => rule(["get"], [group], ["a", "b"], ["x"])),
  },
  {
    name: "a rule of 60,000 verbs with another",
    owned: [rule(many(60_000, "v"), [""], ["a"])],
    wanted: [rule(many(60_000, "v"), [""], ["a"])],
  },
  { name: "40,000 patterns of URLs with as many", owned: [urls("a")], wanted: [urls("a")] },
]) {
  test(`comparing ${name} takes no long turn`, async () => {
    const longest = await longestTurnOf(300, async () => {
      assert.deepEqual(await new Turns().run(uncoveredSteps(owned, wanted.toReversed())), []);
    });
    assert.ok(longest < 300, `a turn of ${longest} ms`);
  });
}

test("rules that differ by their verbs alone are reported as one", () => {
  const several = [["a", "b"], undefined].flatMap((names) =>
    ["get", "list"].map((verb) => (names ? rule([verb], [""], ["pods"], names) : rule([verb], ["", "apps"], ["pods"]))),
  );
  assert.deepEqual(
    compactRules([
      rule(["get"], [""], ["pods"]),
      rule(["get"], [""], ["pods"], ["a"]),
      rule(["list"], [""], ["pods"]),
      ...several,
      { verbs: ["get"], nonResourceURLs: ["/a"] },
      { verbs: ["put"], nonResourceURLs: ["/a"] },
    ]),
    [
      ...several,
      { verbs: ["get"], nonResourceURLs: ["/a"] },
      { verbs: ["put"], nonResourceURLs: ["/a"] },
      rule(["get", "list"], [""], ["pods"]),
      rule(["get"], [""], ["pods"], ["a"]),
    ],
  );
});

const joe = { name: "joe", groups: ["devs"] };
const target = { resource: "clusterroles", namespace: "", name: "r", urlName: "u" };

/** Services whose authorizer returns this decision and whose users have these rules. */
function asking(decision: "allow" | "deny", owned: readonly PolicyRule[], errors: Error[] = []) {
  const requested: object[] = [];
  const services = {
    authorize: async (attributes: object) => {
      requested.push(attributes);
      return { decision };
    },
    turns: new Turns(),
    rbacRules: async () => ({ rules: owned, errors, incomplete: false }),
  };
  return { requested, config: { services: () => services } as unknown as Parameters<typeof refuseEscalation>[0] };
}
const as = (user: object | undefined) => ({ user }) as unknown as Parameters<typeof refuseEscalation>[1];
const secrets = rule(["get"], [""], ["secrets"]);

test("missing rights are granted only by users with the verb escalate on the role, by its name in the path", async () => {
  const { requested, config } = asking("deny", [rule(["get"], [""], ["pods"])], [new Error("no role x"), new Error("no role y")]);
  await assert.rejects(
    refuseEscalation(config, as(joe), target, [secrets, rule(["list"], [""], ["secrets"]), rule(["get"], [""], ["pods"])]),
    {
      message:
        'clusterroles.rbac.authorization.k8s.io "r" is forbidden: user "joe" (groups=["devs"]) is attempting to grant RBAC permissions not currently held:\n' +
        '{APIGroups:[""], Resources:["secrets"], Verbs:["get" "list"]}; resolution errors: [no role x, no role y]',
    },
  );
  const log = { verbs: ["get"], nonResourceURLs: ["/logs"] };
  await assert.rejects(refuseEscalation(asking("deny", []).config, as(joe), target, [log, log]), {
    message: /not currently held:\n{NonResourceURLs:\["\/logs"\], Verbs:\["get"\]}$/,
  });
  hasFields(requested, [{ verb: "escalate", group: "rbac.authorization.k8s.io", resource: "clusterroles", name: "u" }]);
  await assert.rejects(refuseEscalation(asking("deny", []).config, as(joe), target, [secrets, rule(["get"], [""], ["pods"])]), {
    message:
      /not currently held:\n{APIGroups:\[""\], Resources:\["pods"\], Verbs:\["get"\]}\n{APIGroups:\[""\], Resources:\["secrets"\], Verbs:\["get"\]}$/,
  });
  const named = ["a", "b"].map((name) => rule(["get"], ["", "x"], ["pods"], [name]));
  await assert.rejects(refuseEscalation(asking("deny", []).config, as(joe), target, named), {
    message:
      'clusterroles.rbac.authorization.k8s.io "r" is forbidden: user "joe" (groups=["devs"]) is attempting to grant RBAC permissions not currently held:\n' +
      ["", "x"]
        .flatMap((group) => ["a", "b"].map((name) => ({ group, name })))
        .map(({ group, name }) => `{APIGroups:["${group}"], Resources:["pods"], ResourceNames:["${name}"], Verbs:["get"]}`)
        .join("\n"),
  });
  await refuseEscalation(config, as(joe), target, [rule(["get"], [""], ["pods"])]);
  await refuseEscalation(asking("allow", []).config, as(joe), target, [secrets]);
  await refuseEscalation(config, as({ name: "root", groups: ["a", "system:masters"] }), target, [secrets]);
  await assert.rejects(refuseEscalation(config, as({ name: "system:masters", groups: [] }), target, [secrets]));
});

test("an aggregationRule is refused to users who lack any permission, those for URLs included", async () => {
  const everything = rule(["*"], ["*"], ["*"]);
  const text =
    'clusterroles.rbac.authorization.k8s.io "r" is forbidden: must have cluster-admin privileges to use the aggregationRule';
  await assert.rejects(refuseAggregation(asking("deny", [everything]).config, as(joe), target), { message: text });
  const urls = { verbs: ["*"], nonResourceURLs: ["*"] };
  await refuseAggregation(asking("deny", [everything, urls]).config, as(joe), target);
  const broken = { services: () => ({ authorize: () => Promise.reject(new Error("away")), rbacRules: async () => undefined }) };
  await assert.rejects(refuseAggregation(broken as never, as(joe), target), /^Error: away$/);
});

for (const { name, wanted } of [
  { name: "verb", wanted: rule(["get", "list"], [""], ["pods"]) },
  { name: "group", wanted: rule(["get"], ["", "apps"], ["pods"]) },
  { name: "resource", wanted: rule(["get"], [""], ["pods", "secrets"]) },
  { name: "subresource", wanted: rule(["get"], [""], ["pods", "pods/exec"]) },
]) {
  test(`the second ${name} of a rule has to be had too`, () => {
    assert.equal(uncoveredRules([rule(["get"], [""], ["pods"])], [wanted]).length, 1);
  });
}

test("of a rule with names each name has to be had, and a URL beside resources too", () => {
  const named = rule(["get"], [""], ["pods"], ["a"]);
  assert.equal(uncoveredRules([named], [rule(["get"], [""], ["pods"], ["a", "b"])]).length, 1);
  assert.equal(
    uncoveredRules([named, rule(["get"], [""], ["pods"], ["b"])], [rule(["get"], [""], ["pods"], ["a", "b"])]).length,
    0,
  );
  const urls = (...nonResourceURLs: string[]) => ({ verbs: ["get"], nonResourceURLs });
  assert.equal(uncoveredRules([urls("/a", "/b/*")], [urls("/a", "/b/c")]).length, 0);
  assert.equal(uncoveredRules([urls("/a", "/b/*")], [urls("/a", "/bc")]).length, 1);
});

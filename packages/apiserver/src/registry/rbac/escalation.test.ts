import assert from "node:assert/strict";
import { test } from "node:test";
import { cpuMsOf } from "@coxswain/apimachinery/testing/cpu-time";
import type { PolicyRule } from "../../authorization/authorizer.ts";
import { compactRules, uncoveredRules } from "./escalation.ts";

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
    name: "every URL",
    owned: [{ verbs: ["get"], nonResourceURLs: ["/logs/*"] }],
    wanted: [{ verbs: ["get"], nonResourceURLs: ["*"] }],
    missing: 1,
  },
]) {
  test(`${missing === 0 ? "may" : "may not"} grant ${name}`, () => assert.equal(uncoveredRules(owned, wanted).length, missing));
}

const many = (count: number, prefix: string): string[] => Array.from({ length: count }, (_, i) => `${prefix}${i}`);

for (const { name, owned, wanted, missing } of [
  { name: "what nobody has", owned: [rule(["get"], [""], ["pods"])], missing: 5000, of: 30 },
  { name: "what one rule gives, whatever it is", owned: [rule(["*"], ["*"], ["*"])], missing: 0, of: 1000 },
  {
    name: "what two rules give together",
    owned: [rule(many(20, "v"), ["*"], ["*"]), rule(["*"], ["*"], ["*"], ["a"]), rule(["v20"], ["*"], ["*"])],
    missing: 0,
    of: 21,
  },
  { name: "more than is looked at", owned: [rule(["*"], many(500, "g"), ["*"])], missing: 1, of: 1000 },
].map(({ of, ...one }) => ({ ...one, wanted: [rule(many(of, "v"), many(of, "g"), many(of, "r"))] }))) {
  test(`rules whose lists multiply are soon decided: ${name}`, () => {
    const tookMs = cpuMsOf(() => assert.equal(uncoveredRules(owned, wanted).length, missing));
    assert.ok(tookMs < 500, `${tookMs} ms`);
  });
}

test("rules that differ by their verbs alone are told as one", () => {
  assert.deepEqual(
    compactRules([
      rule(["get"], [""], ["pods"]),
      rule(["get"], [""], ["pods"], ["a"]),
      rule(["list"], [""], ["pods"]),
      { verbs: ["get"], nonResourceURLs: ["/a"] },
      { verbs: ["put"], nonResourceURLs: ["/a"] },
    ]),
    [
      { verbs: ["get"], nonResourceURLs: ["/a"] },
      { verbs: ["put"], nonResourceURLs: ["/a"] },
      rule(["get", "list"], [""], ["pods"]),
      rule(["get"], [""], ["pods"], ["a"]),
    ],
  );
});

import assert from "node:assert/strict";
import { test } from "node:test";
import { type FieldError, formatFieldError } from "@coxswain/apimachinery/objects/errors/field-error";
import { minorOf, policyOf, readPodSecurityConfiguration } from "./policy.ts";

const label = (name: string, value: string) => ({ [`pod-security.kubernetes.io/${name}`]: value });
const privileged = { level: "privileged", version: "latest" } as const;
const none = { enforce: privileged, audit: privileged, warn: privileged };
const must = "must be one of privileged, baseline, restricted";

for (const { name, labels, want, errors = [] } of [
  { name: "no labels", labels: {}, want: none },
  {
    name: "a level and a version of each mode",
    labels: { ...label("enforce", "baseline"), ...label("audit-version", "v1.22"), ...label("warn", "restricted") },
    want: {
      enforce: { level: "baseline", version: "latest" },
      audit: { level: "privileged", version: "v1.22" },
      warn: { level: "restricted", version: "latest" },
    },
  },
  {
    name: "an unknown level to enforce, which is taken for the strictest",
    labels: label("enforce", "x"),
    want: { ...none, enforce: { level: "restricted", version: "latest" } },
    errors: [`metadata.labels[pod-security.kubernetes.io/enforce]: Invalid value: "x": ${must}`],
  },
  {
    name: "unknown levels to audit and to warn, which are taken for none",
    labels: { ...label("warn", ""), ...label("audit", "x") },
    want: none,
    errors: ["audit", "warn"].map(
      (mode) => `metadata.labels[pod-security.kubernetes.io/${mode}]: Invalid value: "${mode === "warn" ? "" : "x"}": ${must}`,
    ),
  },
  {
    name: "versions that are none",
    labels: { ...label("enforce-version", "1.22"), ...label("warn-version", "v1.x") },
    want: none,
    errors: [
      'metadata.labels[pod-security.kubernetes.io/enforce-version]: Invalid value: "1.22": must be "latest" or "v1.x"',
      'metadata.labels[pod-security.kubernetes.io/warn-version]: Invalid value: "v1.x": must be "latest" or "v1.x"',
    ],
  },
]) {
  test(`the policy of a namespace with ${name}`, () => {
    const found: FieldError[] = [];
    assert.deepEqual(policyOf(labels, found), want);
    assert.deepEqual(found.map(formatFieldError), errors);
  });
}

test("what labels leave open is the default, the version apart from the level", () => {
  const defaults = { ...none, enforce: { level: "restricted", version: "v1.20" } } as const;
  assert.deepEqual(policyOf({}, [], defaults), defaults);
  assert.deepEqual(policyOf(label("enforce", "baseline"), [], defaults).enforce, { level: "baseline", version: "v1.20" });
  assert.deepEqual(policyOf(label("enforce-version", "latest"), [], defaults).enforce, {
    level: "restricted",
    version: "latest",
  });
});

test("runtime classes that are exempt may have dots in their names, namespaces may not", () => {
  const exempting = (exemptions: object) => readPodSecurityConfiguration({ exemptions }).exemptions;
  assert.deepEqual([...exempting({ runtimeClasses: ["a.b"] }).runtimeClasses], ["a.b"]);
  assert.throws(() => exempting({ namespaces: ["a.b"] }), /^Error: exemptions\.namespaces\[0\]: Invalid value: "a\.b"/);
  assert.throws(() => exempting({ usernames: ["a", "b", "a"] }), /^Error: exemptions\.usernames\[2\]: Duplicate value: "a"/);
  assert.throws(() => exempting({ usernames: ["a", "a"] }), /^Error: exemptions\.usernames\[1\]: Duplicate value: "a"/);
});

for (const { configuration, want } of [
  { configuration: [], want: "configuration: must be an object" },
  { configuration: { defaults: "baseline" }, want: "defaults: must be an object" },
  { configuration: { exemptions: ["a"] }, want: "exemptions: must be an object" },
  { configuration: { defaults: { enforce: 1 } }, want: "defaults.enforce: must be a string" },
  { configuration: { exemptions: { usernames: "a" } }, want: "exemptions.usernames: must be a list of strings" },
  { configuration: { exemptions: { namespaces: ["a", 1] } }, want: "exemptions.namespaces[1]: must be a string" },
  {
    configuration: { exemptions: { usernames: ["a", null] } },
    want: 'exemptions.usernames[1]: Invalid value: "": username must not be empty',
  },
  {
    configuration: { defaults: { enforce: null } },
    want: 'defaults.enforce: Invalid value: "": must be one of privileged, baseline, restricted',
  },
]) {
  test(`a configuration of the standards ${JSON.stringify(configuration)} is refused`, () =>
    assert.throws(() => readPodSecurityConfiguration(configuration), { message: want }));
}

test("empty sections of the configuration are like missing ones", () => {
  const { defaults, exemptions } = readPodSecurityConfiguration({ defaults: null, exemptions: { usernames: null } });
  assert.deepEqual([defaults, exemptions.usernames.size], [none, 0]);
  assert.deepEqual(readPodSecurityConfiguration(null).defaults, none);
});

for (const [version, minor] of [
  ["latest", 23],
  ["v1.0", 0],
  ["v1.22", 22],
  ["v1.24", 23],
] as const) {
  test(`${version} of the standards is that of 1.${minor}`, () => assert.equal(minorOf(version), minor));
}

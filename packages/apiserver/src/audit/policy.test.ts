import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { parseRequestInfo } from "../request/request-info.ts";
import { loadPolicy, newPolicyEvaluator, type PolicyRule, parsePolicy } from "./policy.ts";

const jane = { name: "jane", groups: ["developers", "system:authenticated"] };
const rule = (changes: Partial<PolicyRule>): PolicyRule => ({ level: "Metadata", ...changes });
const pods = "/api/v1/namespaces/web/pods";

for (const { name, method = "GET", url = pods, user = jane, matcher, want } of [
  { name: "an empty rule matches everything", matcher: {}, want: true },
  { name: "a user by name", matcher: { users: ["jane"] }, want: true },
  { name: "another user", matcher: { users: ["joe"] }, want: false },
  { name: "without a user no list of users matches", user: undefined, matcher: { users: ["jane"] }, want: false },
  { name: "without a user no list of groups matches", user: undefined, matcher: { userGroups: ["developers"] }, want: false },
  { name: "without a user a rule that names no users matches", user: null, matcher: { verbs: ["list"] }, want: true },
  { name: "one group of several", matcher: { userGroups: ["x", "developers"] }, want: true },
  { name: "the verb", matcher: { verbs: ["list"] }, want: true },
  { name: "another verb", matcher: { verbs: ["get"] }, want: false },
  { name: "the second of two verbs", matcher: { verbs: ["get", "list"] }, want: true },
  { name: "the second of two namespaces", matcher: { namespaces: ["", "web"] }, want: true },
  { name: "the second of two users", matcher: { users: ["joe", "jane"] }, want: true },
  { name: "the namespace", matcher: { namespaces: ["web"] }, want: true },
  { name: "cluster scope is the empty namespace", url: "/api/v1/nodes", matcher: { namespaces: [""] }, want: true },
  { name: "a namespace rule matches no path", url: "/healthz", matcher: { namespaces: [""] }, want: false },
  { name: "a whole group", matcher: { resources: [{ group: "" }] }, want: true },
  { name: "another group", matcher: { resources: [{ group: "apps" }] }, want: false },
  { name: "a resource", matcher: { resources: [{ resources: ["pods"] }] }, want: true },
  {
    name: "a resource is not its subresource",
    url: `${pods}/a/log`,
    matcher: { resources: [{ resources: ["pods"] }] },
    want: false,
  },
  { name: "a subresource", url: `${pods}/a/log`, matcher: { resources: [{ resources: ["pods/log"] }] }, want: true },
  { name: "any subresource", url: `${pods}/a/log`, matcher: { resources: [{ resources: ["pods/*"] }] }, want: true },
  { name: "a resource, by all of its subresources", matcher: { resources: [{ resources: ["pods/*"] }] }, want: true },
  {
    name: "another resource's subresources",
    url: `${pods}/a/log`,
    matcher: { resources: [{ resources: ["pod/*"] }] },
    want: false,
  },
  { name: "a subresource of anything", url: `${pods}/a/log`, matcher: { resources: [{ resources: ["*/log"] }] }, want: true },
  {
    name: "another subresource of anything",
    url: `${pods}/a/log`,
    matcher: { resources: [{ resources: ["*/status"] }] },
    want: false,
  },
  { name: "no subresource, of anything", url: `${pods}/a`, matcher: { resources: [{ resources: ["*/"] }] }, want: false },
  { name: "everything", url: `${pods}/a/log`, matcher: { resources: [{ resources: ["*"] }] }, want: true },
  {
    name: "the second entry of a group",
    url: `${pods}/a`,
    matcher: { resources: [{ resources: ["secrets"] }, { resources: ["pods"] }] },
    want: true,
  },
  {
    name: "a name",
    url: `${pods}/a`,
    matcher: { resources: [{ resources: ["pods"], resourceNames: ["a"] }] },
    want: true,
  },
  {
    name: "another name",
    url: `${pods}/b`,
    matcher: { resources: [{ resources: ["pods"], resourceNames: ["a"] }] },
    want: false,
  },
  {
    name: "a collection, by names of objects",
    url: pods,
    matcher: { resources: [{ resources: ["pods"], resourceNames: ["a"] }] },
    want: false,
  },
  { name: "a path", url: "/healthz", matcher: { nonResourceURLs: ["/healthz"] }, want: true },
  { name: "a path below", url: "/healthz/ping", matcher: { nonResourceURLs: ["/healthz*"] }, want: true },
  { name: "a path that the pattern is longer than", url: "/healt", matcher: { nonResourceURLs: ["/healthz*"] }, want: false },
  {
    name: "a path that ends before the pattern's last letter",
    url: "/health",
    matcher: { nonResourceURLs: ["/healthz*"] },
    want: false,
  },
  { name: "the second of two paths", url: "/version", matcher: { nonResourceURLs: ["/healthz", "/version"] }, want: true },
  { name: "every path", url: "/version", matcher: { nonResourceURLs: ["*"] }, want: true },
  { name: "a path rule matches no resource", matcher: { nonResourceURLs: ["*"] }, want: false },
] as {
  name: string;
  method?: string;
  url?: string;
  user?: typeof jane | null;
  matcher: Partial<PolicyRule>;
  want: boolean;
}[]) {
  test(`a rule: ${name}`, () => {
    const who = name.startsWith("without a user") ? undefined : (user ?? undefined);
    const { level } = newPolicyEvaluator({ rules: [rule(matcher)] })(who, parseRequestInfo(method, url));
    assert.equal(level, want ? "Metadata" : "None");
  });
}

test("the first rule that matches decides, and stages are left out by both lists", () => {
  const evaluate = newPolicyEvaluator({
    omitStages: ["RequestReceived"],
    omitManagedFields: true,
    rules: [
      rule({ level: "Request", verbs: ["create"], omitStages: ["Panic"], omitManagedFields: false }),
      rule({ level: "Metadata" }),
    ],
  });
  const create = evaluate(jane, parseRequestInfo("POST", pods));
  assert.equal(create.level, "Request");
  assert.deepEqual([...create.omitStages], ["RequestReceived", "Panic"]);
  assert.equal(create.omitManagedFields, false);
  const list = evaluate(jane, parseRequestInfo("GET", pods));
  assert.deepEqual(
    { ...list, omitStages: [...list.omitStages] },
    { level: "Metadata", omitStages: ["RequestReceived"], omitManagedFields: true },
  );
});

for (const { name, text, error } of [
  { name: "another kind", text: "apiVersion: v1\nkind: Pod", error: /no kind "Pod" is registered for version "v1"/ },
  { name: "no rules", text: "apiVersion: audit.k8s.io/v1\nkind: Policy", error: /loaded illegal policy with 0 rules/ },
  { name: "a rule without level", text: "rules: [{}]", error: /rules\[0\]\.level: Required value/ },
  {
    name: "an unknown level",
    text: "rules: [{level: Full}]",
    error:
      /rules\[0\]\.level: Unsupported value: "Full": supported values: "Metadata", "None", "Request", "RequestResponse"|"None", "Metadata", "Request", "RequestResponse"/,
  },
  { name: "an unknown stage", text: "rules: [{level: None, omitStages: [End]}]", error: /allowed stages are RequestReceived,/ },
  {
    name: "a path without slash",
    text: "rules: [{level: None, nonResourceURLs: [x]}]",
    error: /must begin with a '\/' character/,
  },
  {
    name: "a path that is none behind one for every path",
    text: "rules: [{level: None, nonResourceURLs: ['*', 'a']}]",
    error: /nonResourceURLs\[1\]: .*must begin with a '\/' character/,
  },
  {
    name: "a wildcard in the middle",
    text: "rules: [{level: None, nonResourceURLs: ['/a*b']}]",
    error: /wildcards '\*' must be the final character/,
  },
  {
    name: "a wildcard in the middle and one at the end",
    text: "rules: [{level: None, nonResourceURLs: ['/a*b*']}]",
    error: /wildcards '\*' must be the final character/,
  },
  { name: "a second rule", text: "rules: [{level: None}, {level: Full}]", error: /rules\[1\]\.level: Unsupported value/ },
  { name: "another version", text: "apiVersion: audit.k8s.io/v2\nkind: Policy", error: /no kind "Policy" is registered/ },
  {
    name: "paths and resources together",
    text: "rules: [{level: None, nonResourceURLs: [/a], namespaces: [b]}]",
    error: /rules cannot apply to both regular resources and non-resource URLs/,
  },
  {
    name: "paths and a group together",
    text: "rules: [{level: None, nonResourceURLs: [/a], resources: [{group: apps}]}]",
    error: /rules cannot apply to both regular resources and non-resource URLs/,
  },
  {
    name: "names without resources",
    text: "rules: [{level: None, resources: [{resourceNames: [a]}]}]",
    error: /using resourceNames requires at least one resource/,
  },
  {
    name: "a group with its version",
    text: "rules: [{level: None, resources: [{group: apps/v1}]}]",
    error: /rules\[0\]\.resources\.group: Invalid value: "apps\/v1"/,
  },
  {
    name: "two wrong levels",
    text: "rules: [{level: Full}, {level: None}, {}]",
    error: /^Error: \[rules\[0\]\.level: Unsupported value: "Full": [^\]]*, rules\[2\]\.level: Required value[^\]]*\]$/,
  },
  {
    name: "a flag that is none",
    text: "rules: [{level: None, omitManagedFields: 1}]",
    error: /omitManagedFields is not a boolean$/,
  },
  { name: "a level that is none", text: "rules: [{level: 5}]", error: /failed decoding: rules\[0\]\.level is not a string$/ },
  { name: "a second user that is none", text: "rules: [{level: None, users: [a, 1]}]", error: /users is not a list of strings$/ },
  {
    name: "a group that is none",
    text: "rules: [{level: None, resources: [{group: 1}]}]",
    error: /failed decoding: rules\[0\]\.resources\[0\]\.group is not a string$/,
  },
  { name: "a list that is none", text: "rules: [{level: None, users: jane}]", error: /users is not a list of strings/ },
]) {
  test(`a policy is refused: ${name}`, () => {
    const whole = text.startsWith("apiVersion") ? text : `apiVersion: audit.k8s.io/v1\nkind: Policy\n${text}`;
    assert.throws(() => parsePolicy(whole), error);
  });
}

for (const version of ["v1", "v1beta1", "v1alpha1"]) {
  test(`a policy of ${version} is read with all stages and levels`, () => {
    const omitStages = ["RequestReceived", "ResponseStarted", "ResponseComplete", "Panic"];
    const rules = ["None", "Metadata", "Request", "RequestResponse"].map((level) => ({ level, omitStages }));
    const policy = { apiVersion: `audit.k8s.io/${version}`, kind: "Policy", omitStages, omitManagedFields: true, rules };
    assert.deepEqual(parsePolicy(JSON.stringify(policy)), { omitStages, omitManagedFields: true, rules });
  });
}

test("a file of a policy is named when it cannot be read or is wrong", (t) => {
  const folder = mkdtempSync(join(tmpdir(), "cox-audit-policy-"));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  const path = join(folder, "policy.yaml");
  const missing = `failed to read file path ${JSON.stringify(path)}: `;
  assert.throws(
    () => loadPolicy(path),
    ({ message }: Error) => message.startsWith(missing),
  );
  writeFileSync(path, "apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: []");
  assert.throws(() => loadPolicy(path), { message: `loaded illegal policy with 0 rules: from file ${path}` });
  writeFileSync(path, "apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: None}]");
  assert.deepEqual(loadPolicy(path).rules, [{ level: "None" }]);
});

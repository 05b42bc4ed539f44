import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { abac, abacRules, loadAbacPolicies, parseAbacPolicies } from "./abac.ts";
import type { Attributes } from "./authorizer.ts";

const alice = { name: "alice", groups: ["dev", "system:authenticated"] };
const nobody = { name: "system:anonymous", groups: ["system:unauthenticated"] };

function asks(changes: Partial<Attributes>): Attributes {
  return {
    user: alice,
    verb: "create",
    isResourceRequest: true,
    namespace: "web",
    group: "",
    version: "v1",
    resource: "pods",
    subresource: "",
    name: "",
    path: "",
    ...changes,
  };
}
const path = (text: string, verb = "get"): Partial<Attributes> => ({ isResourceRequest: false, path: text, verb });

const v1beta1 = (spec: object): string =>
  JSON.stringify({ apiVersion: "abac.authorization.kubernetes.io/v1beta1", kind: "Policy", spec });
const everything = { namespace: "*", resource: "*", apiGroup: "*", nonResourcePath: "*" };

for (const { name, line, request, allowed } of [
  { name: "a policy allows its user what it names", line: { user: "alice", ...everything }, request: {}, allowed: true },
  { name: "a policy says nothing of other users", line: { user: "bob", ...everything }, request: {}, allowed: false },
  { name: "a policy without user and group matches no user", line: everything, request: {}, allowed: false },
  { name: "a group's policy is its members'", line: { group: "dev", ...everything }, request: {}, allowed: true },
  { name: "both user and group must fit", line: { user: "alice", group: "ops", ...everything }, request: {}, allowed: false },
  { name: "* is every authenticated user", line: { user: "*", ...everything }, request: {}, allowed: true },
  { name: "* does not match the anonymous user", line: { user: "*", ...everything }, request: { user: nobody }, allowed: false },
  {
    name: "* as group does not match the anonymous user",
    line: { group: "*", ...everything },
    request: { user: nobody },
    allowed: false,
  },
  {
    name: "readonly allows to read",
    line: { user: "alice", readonly: true, ...everything },
    request: { verb: "watch" },
    allowed: true,
  },
  { name: "readonly forbids to write", line: { user: "alice", readonly: true, ...everything }, request: {}, allowed: false },
  { name: "the namespace must fit", line: { user: "alice", ...everything, namespace: "db" }, request: {}, allowed: false },
  {
    name: "no namespace is the cluster's scope alone",
    line: { user: "alice", ...everything, namespace: "" },
    request: {},
    allowed: false,
  },
  { name: "the resource must fit", line: { user: "alice", ...everything, resource: "secrets" }, request: {}, allowed: false },
  {
    name: "no API group is the core group",
    line: { user: "alice", ...everything, apiGroup: "" },
    request: { group: "apps" },
    allowed: false,
  },
  {
    name: "the API group must fit",
    line: { user: "alice", ...everything, apiGroup: "apps" },
    request: { group: "apps" },
    allowed: true,
  },
  { name: "a path must fit", line: { user: "alice", nonResourcePath: "/version" }, request: path("/version"), allowed: true },
  {
    name: "another path does not fit",
    line: { user: "alice", nonResourcePath: "/version" },
    request: path("/metrics"),
    allowed: false,
  },
  {
    name: "a path with * is a prefix",
    line: { user: "alice", nonResourcePath: "/healthz*" },
    request: path("/healthz/etcd"),
    allowed: true,
  },
  {
    name: "a path with ** is a prefix, too",
    line: { user: "alice", nonResourcePath: "/api/**" },
    request: path("/api/v1"),
    allowed: true,
  },
  {
    name: "a policy of resources allows no path",
    line: { user: "alice", namespace: "*", resource: "*", apiGroup: "*" },
    request: path("/version"),
    allowed: false,
  },
  { name: "a policy of paths allows no resource", line: { user: "alice", nonResourcePath: "*" }, request: {}, allowed: false },
]) {
  test(`ABAC: ${name}`, () => {
    const { policies, legacy } = parseAbacPolicies(v1beta1(line), "policy");
    assert.equal(legacy, false);
    const decision = abac(policies)(asks(request));
    assert.deepEqual(decision, allowed ? { decision: "allow" } : { decision: "no-opinion", reason: "No policy matched." });
  });
}

for (const { name, line, request, allowed } of [
  { name: "an empty line allows the authenticated everything", line: "{}", request: {}, allowed: true },
  {
    name: "a policy that names no user does not match the anonymous user",
    line: "{}",
    request: { user: nobody },
    allowed: false,
  },
  { name: "a user alone is everywhere", line: `{"user":"alice"}`, request: { group: "apps", namespace: "db" }, allowed: true },
  { name: "a user alone may see all paths", line: `{"user":"alice"}`, request: path("/metrics"), allowed: true },
  {
    name: "a namespace takes the paths away",
    line: `{"user":"alice","namespace":"web"}`,
    request: path("/metrics"),
    allowed: false,
  },
  { name: "a resource is of every group", line: `{"user":"alice","resource":"pods"}`, request: { group: "apps" }, allowed: true },
  { name: "readonly holds", line: `{"user":"alice","readonly":true}`, request: {}, allowed: false },
  {
    name: "the version v0 is the same",
    line: `{"apiVersion":"abac.authorization.kubernetes.io/v0","kind":"Policy","user":"alice"}`,
    request: {},
    allowed: true,
  },
]) {
  test(`ABAC, legacy form: ${name}`, () => {
    const { policies } = parseAbacPolicies(line, "policy");
    assert.equal(abac(policies)(asks(request)) instanceof Promise, false);
    assert.deepEqual(
      abac(policies)(asks(request)),
      allowed ? { decision: "allow" } : { decision: "no-opinion", reason: "No policy matched." },
    );
  });
}

test("comments and empty lines are ignored, and count in line numbers", () => {
  const text = `# who may\n\n  # indented\n${v1beta1({ user: "a" })}\r\n{"user":"b"}\n`;
  const { policies, legacy } = parseAbacPolicies(text, "policy");
  assert.deepEqual(
    policies.map(({ user }) => user),
    ["a", "b"],
  );
  assert.equal(legacy, true);
});

for (const { name, line, want } of [
  {
    name: "no JSON",
    line: `{"user":`,
    want: /^error reading policy file p, line 2: \{"user":: couldn't get version\/kind; json parse error: (?!json: cannot unmarshal)./,
  },
  {
    name: "a word",
    line: "alice",
    want: /^error reading policy file p, line 2: alice: couldn't get version\/kind; json parse error: json: cannot unmarshal string/,
  },
  {
    name: "another kind",
    line: `{"apiVersion":"v1","kind":"Pod"}`,
    want: /line 2: .*: no kind "Pod" is registered for version "v1"$/,
  },
  {
    name: "a legacy line with a kind",
    line: `{"kind":"Pod"}`,
    want: /no kind "Pod" is registered for version "abac.authorization.kubernetes.io\/v0"$/,
  },
  {
    name: "a version without a kind that is not the former one",
    line: `{"apiVersion":"abac.authorization.kubernetes.io/v1beta1"}`,
    want: /no kind "Policy" is registered for version "abac.authorization.kubernetes.io\/v1beta1"$/,
  },
  {
    name: "a list",
    line: "[]",
    want: /json parse error: json: cannot unmarshal array into an object$/,
  },
  {
    name: "a spec that is a list",
    line: `{"apiVersion":"abac.authorization.kubernetes.io/v1beta1","kind":"Policy","spec":[]}`,
    want: /json: cannot unmarshal the field spec into an object$/,
  },
  {
    name: "a flag that is a text",
    line: `{"user":"alice","readonly":"true"}`,
    want: /cannot unmarshal string into the field readonly of type bool$/,
  },
  {
    name: "a field of another type",
    line: `{"user":["alice"]}`,
    want: /line 2: .*cannot unmarshal array into the field user of type string$/,
  },
]) {
  test(`a policy file with ${name} is refused with the line's number`, () => {
    assert.throws(() => parseAbacPolicies(`${v1beta1({ user: "a" })}\n${line}\n`, "p"), { message: want });
  });
}

test("the rules of a user are those of the policies that fit", async () => {
  const { policies } = parseAbacPolicies(
    [
      v1beta1({ user: "alice", readonly: true, namespace: "web", resource: "pods" }),
      v1beta1({ user: "bob", ...everything }),
    ].join("\n"),
    "p",
  );
  assert.deepEqual(await abacRules(policies)(alice, "web"), {
    rules: [
      { verbs: ["get", "list", "watch"], apiGroups: [""], resources: ["pods"] },
      { verbs: ["get", "list", "watch"], nonResourceURLs: [""] },
    ],
    incomplete: false,
    errors: [],
  });
});

test("the paths of a policy are its user's in every namespace", async () => {
  const { policies, legacy } = parseAbacPolicies(
    [`{"user":"bob"}`, v1beta1({ user: "alice", namespace: "db", resource: "pods", nonResourcePath: "/healthz" })].join("\n"),
    "p",
  );
  assert.equal(legacy, true, "one line of the former format is enough");
  const { rules } = await abacRules(policies)(alice, "web");
  assert.deepEqual(rules, [{ verbs: ["*"], nonResourceURLs: ["/healthz"] }]);
});

test("a policy of all namespaces has its rules in each", async () => {
  const line = v1beta1({ user: "alice", namespace: "*", resource: "pods", apiGroup: "apps", readonly: true });
  const { policies } = parseAbacPolicies(line, "p");
  const verbs = ["get", "list", "watch"];
  const { rules } = await abacRules(policies)(alice, "web");
  assert.deepEqual(rules, [
    { verbs, apiGroups: ["apps"], resources: ["pods"] },
    { verbs, nonResourceURLs: [""] },
  ]);
});

test("a policy without a spec, or whose fields are null, says nothing", () => {
  for (const spec of [undefined, null, { user: null, readonly: null }]) {
    const { policies } = parseAbacPolicies(v1beta1(spec as object), "p"); // cast: as it may be written
    assert.equal(policies.length, 1);
    assert.deepEqual(abac(policies)(asks({})), { decision: "no-opinion", reason: "No policy matched." });
  }
});

test("a line is shorter than 64 KiB, in bytes", () => {
  const lineOf = (bytes: number): string => `{"user":"${"é".repeat((bytes - `{"user":""}`.length) / 2)}"}`;
  assert.equal(parseAbacPolicies(lineOf(65_535), "p").policies.length, 1);
  for (const tooLong of [lineOf(65_537), ` ${lineOf(65_535)}`]) {
    assert.throws(() => parseAbacPolicies(`# one\n${tooLong}`, "p"), {
      message: "error reading policy file p: bufio.Scanner: token too long",
    });
  }
});

test("a policy file is read by its path, and named when it is not there", (t) => {
  const folder = mkdtempSync(join(tmpdir(), "cox-abac-"));
  t.after(() => rmSync(folder, { recursive: true }));
  const path = join(folder, "policy");
  assert.throws(() => loadAbacPolicies(path), { message: `open ${path}: no such file or directory` });
  assert.throws(() => loadAbacPolicies(folder), { code: "EISDIR" });
  writeFileSync(path, `{"user":"bob"}`);
  assert.equal(loadAbacPolicies(path).policies[0]?.user, "bob");
});

import assert from "node:assert/strict";
import { test } from "node:test";
import type { PolicyRulesWithSubjects, Subject } from "@coxswain/apimachinery/objects/schema/kinds/flowcontrol/v1beta2";
import { parseRequestInfo } from "../request/request-info.ts";
import { matchesRules } from "./flow-rules.ts";

const user = { name: "system:serviceaccount:web:builder", groups: ["system:serviceaccounts", "system:authenticated"] };
const anything = { verbs: ["*"], apiGroups: ["*"], resources: ["*"], namespaces: ["*"], clusterScope: true };
const matches = (rule: PolicyRulesWithSubjects, url: string, method = "GET") =>
  matchesRules([rule], { info: parseRequestInfo(method, url), user });
const everybody: Subject[] = [{ kind: "Group", group: { name: "*" } }];

for (const [subject, want] of [
  [{ kind: "User", user: { name: "*" } }, true],
  [{ kind: "User", user: { name: "somebody" } }, false],
  [{ kind: "Group", group: { name: "system:authenticated" } }, true],
  [{ kind: "Group", group: { name: "system:masters" } }, false],
  [{ kind: "ServiceAccount", serviceAccount: { namespace: "web", name: "builder" } }, true],
  [{ kind: "ServiceAccount", serviceAccount: { namespace: "web", name: "*" } }, true],
  [{ kind: "ServiceAccount", serviceAccount: { namespace: "we", name: "*" } }, false],
  [{ kind: "ServiceAccount", serviceAccount: { namespace: "web", name: "other" } }, false],
  [{ kind: "User" }, false],
] as [Subject, boolean][]) {
  test(`${JSON.stringify(subject)} is ${want ? "" : "not "}the builder of web`, () => {
    assert.equal(matches({ subjects: [subject], resourceRules: [anything] }, "/api/v1/pods"), want);
  });
}

for (const { what, rule, url, want } of [
  {
    what: "a subresource is named with its resource",
    rule: { resources: ["pods/log"] },
    url: "/api/v1/namespaces/a/pods/b/log",
    want: true,
  },
  {
    what: "a resource is not its subresources",
    rule: { resources: ["pods"] },
    url: "/api/v1/namespaces/a/pods/b/log",
    want: false,
  },
  { what: "all namespaces are cluster scope", rule: { clusterScope: false }, url: "/api/v1/pods", want: false },
  { what: "cluster scope needs no namespace", rule: { namespaces: [] }, url: "/api/v1/pods", want: true },
  { what: "one namespace is named", rule: { namespaces: ["b"] }, url: "/api/v1/namespaces/a/pods", want: false },
  { what: "the verb is named", rule: { verbs: ["create"] }, url: "/api/v1/namespaces/a/pods", want: false },
  { what: "the group is named", rule: { apiGroups: ["apps"] }, url: "/apis/apps/v1/namespaces/a/deployments", want: true },
  { what: "a path is no resource", rule: {}, url: "/healthz", want: false },
]) {
  test(`${what}: ${want}`, () => {
    assert.equal(matches({ subjects: everybody, resourceRules: [{ ...anything, ...rule }] }, url), want);
  });
}

for (const { paths, url, want } of [
  { paths: ["/healthz"], url: "/healthz", want: true },
  { paths: ["/healthz"], url: "/healthz/etcd", want: false },
  { paths: ["/healthz/*"], url: "/healthz/etcd", want: true },
  { paths: ["*"], url: "/version", want: true },
  { paths: ["*"], url: "/api/v1/pods", want: false },
  { paths: ["/healthz*"], url: "/healthz", want: true },
  { paths: ["/healthz*"], url: "/health", want: false },
]) {
  test(`${paths} ${want ? "speaks" : "does not speak"} of ${url}`, () => {
    assert.equal(matches({ subjects: everybody, nonResourceRules: [{ verbs: ["get"], nonResourceURLs: paths }] }, url), want);
  });
}

test("each rule counts: for the second subject of the second rule, or by its second path or resource rule", () => {
  const nobody: Subject = { kind: "User", user: { name: "nobody" } };
  const second = { kind: "User", user: { name: user.name } } as Subject;
  const elsewhere = { ...anything, namespaces: ["b"], clusterScope: false };
  const rules: PolicyRulesWithSubjects[] = [
    { subjects: [nobody], resourceRules: [anything], nonResourceRules: [{ verbs: ["*"], nonResourceURLs: ["*"] }] },
    { subjects: [second], resourceRules: [elsewhere] },
    {
      subjects: [nobody, second],
      resourceRules: [elsewhere, anything],
      nonResourceRules: [
        { verbs: ["post"], nonResourceURLs: ["*"] },
        { verbs: ["get"], nonResourceURLs: ["/version", "/healthz"] },
      ],
    },
  ];
  for (const url of ["/api/v1/namespaces/a/pods", "/healthz"]) {
    const requested = { info: parseRequestInfo("GET", url), user };
    assert.deepEqual([matchesRules(rules, requested), matchesRules(rules.slice(0, 2), requested)], [true, false]);
  }
});

test("all accounts of a namespace are accounts: a user whose name holds it is none of them", () => {
  const subjects: Subject[] = [{ kind: "ServiceAccount", serviceAccount: { namespace: "web", name: "*" } }];
  const info = parseRequestInfo("GET", "/api/v1/pods");
  for (const [name, want] of [
    ["system:serviceaccount:web:other", true],
    ["system:serviceaccount:webs:web", false],
    ["admin:web:x", false],
    ["system:serviceaccount:web:a:b", false],
  ] as const) {
    const user = { name, groups: [] };
    assert.equal(matchesRules([{ subjects, resourceRules: [anything] }], { info, user }), want, name);
  }
});

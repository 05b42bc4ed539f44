import assert from "node:assert/strict";
import { test } from "node:test";
import type { KubeObject } from "@coxswain/apimachinery/objects/meta/types";
import { bindingFromV1alpha1, bindingToV1alpha1 } from "./conversion.ts";
import { defaultBinding } from "./defaults.ts";

const apiGroup = "rbac.authorization.k8s.io";
const apiVersion = `${apiGroup}/v1alpha1`;
const service: object = { kind: "ServiceAccount", name: "first", namespace: "n" };
const oldService: object = { ...service, apiVersion: "v1" };
/** A binding whose second subject is the given one. */
const binding = (subject: object, first = service) =>
  ({ metadata: { name: "b" }, roleRef: {}, subjects: [first, subject] }) as unknown as KubeObject & { subjects: never[] };

for (const { name, old, now } of [
  { name: "a user", old: { kind: "User", apiVersion, name: "u" }, now: { kind: "User", apiGroup, name: "u" } },
  { name: "a group", old: { kind: "Group", apiVersion, name: "*" }, now: { kind: "Group", apiGroup, name: "*" } },
  {
    name: "an account",
    old: { kind: "ServiceAccount", apiVersion: "v1", name: "s", namespace: "n" },
    now: { kind: "ServiceAccount", name: "s", namespace: "n" },
  },
  {
    name: "another kind of no group",
    old: { kind: "Other", apiVersion: "", name: "o" },
    now: { kind: "Other", apiGroup: "", name: "o" },
  },
]) {
  test(`${name} is a subject in v1alpha1 and v1`, () => {
    assert.deepEqual(bindingFromV1alpha1(binding(old, oldService)), binding(now));
    assert.deepEqual(bindingToV1alpha1(binding(now)), binding(old, oldService));
  });
}

for (const { name, old, now } of [
  {
    name: "every user is the group of those who are signed in",
    old: { kind: "User", apiVersion: "x", name: "*" },
    now: { kind: "Group", apiGroup, name: "system:authenticated" },
  },
  {
    name: "a user has the group of users, whatever version it says",
    old: { kind: "User", apiVersion: "v1", name: "u" },
    now: { kind: "User", apiGroup, name: "u" },
  },
  {
    name: "another kind has the group of its version",
    old: { kind: "Other", apiVersion: "g/v1", name: "o" },
    now: { kind: "Other", apiGroup: "g", name: "o" },
  },
  {
    name: "another kind of the core group has none",
    old: { kind: "Other", apiVersion: "v1", name: "o" },
    now: { kind: "Other", apiGroup: "", name: "o" },
  },
]) {
  test(`from v1alpha1: ${name}`, () => assert.deepEqual(bindingFromV1alpha1(binding(old, oldService)), binding(now)));
}

for (const { name, now, old } of [
  {
    name: "a user of another group",
    now: { kind: "User", apiGroup: "g", name: "u" },
    old: { kind: "User", apiVersion: "g/", name: "u" },
  },
  {
    name: "an account of a group",
    now: { kind: "ServiceAccount", apiGroup: "g", name: "s" },
    old: { kind: "ServiceAccount", apiVersion: "g/", name: "s" },
  },
]) {
  test(`to v1alpha1: ${name} keeps it, though it has no version`, () =>
    assert.deepEqual(bindingToV1alpha1(binding(now)), binding(old, oldService)));
}

test("a binding without subjects is the same in both versions", () => {
  const none = { metadata: { name: "b" } };
  assert.deepEqual([bindingFromV1alpha1(none), bindingToV1alpha1(none)], [none, none]);
});

test("users and groups without a group get the default one, others and given ones stay", () => {
  const given = {
    metadata: {},
    roleRef: { apiGroup: "g" },
    subjects: [{ kind: "Group" }, { kind: "User", apiGroup: "g" }, { kind: "ServiceAccount" }],
  };
  defaultBinding(given as never);
  assert.deepEqual(given.roleRef, { apiGroup: "g" });
  assert.deepEqual(given.subjects, [{ kind: "Group", apiGroup }, { kind: "User", apiGroup: "g" }, { kind: "ServiceAccount" }]);
});

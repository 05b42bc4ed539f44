import assert from "node:assert/strict";
import { test } from "node:test";
import { nodeNameOf, serviceAccountGroups, serviceAccountUsername, splitServiceAccountUsername } from "./user-names.ts";

for (const [username, want] of [
  [serviceAccountUsername("web", "app"), { namespace: "web", name: "app" }],
  ["system:serviceaccount:a-1:b.c-2", { namespace: "a-1", name: "b.c-2" }],
  ["system:serviceaccount:a.b:c", undefined],
  ["system:serviceaccount:A:c", undefined],
  ["system:serviceaccount:a:C", undefined],
  ["system:serviceaccount:-a:c", undefined],
  ["system:serviceaccount:a:c-", undefined],
  ["system:serviceaccount:a:", undefined],
  ["system:serviceaccount::c", undefined],
  ["system:serviceaccount:a", undefined],
  ["system:serviceaccount:a:b:c", undefined],
  ["system:serviceaccounts:a:b", undefined],
  ["x:system:serviceaccount:a:b", undefined],
] as const) {
  test(`${username} is ${want === undefined ? "no service account" : "a service account"}`, () => {
    assert.deepEqual(splitServiceAccountUsername(username), want);
  });
}

test("a service account is in the group of all and in that of its namespace", () => {
  assert.deepEqual(serviceAccountGroups("web"), ["system:serviceaccounts", "system:serviceaccounts:web"]);
});

for (const [name, groups, want] of [
  ["system:node:n1", ["system:nodes"], "n1"],
  ["system:node:n1", ["other", "system:nodes"], "n1"],
  ["system:node:n1", ["system:masters"], undefined],
  ["system:node:", ["system:nodes"], undefined],
  ["n1", ["system:nodes"], undefined],
] as const) {
  test(`the user ${name} of ${groups} is ${want === undefined ? "no node" : `the node ${want}`}`, () => {
    assert.equal(nodeNameOf({ name, groups }), want);
  });
}

import assert from "node:assert/strict";
import { test } from "node:test";
import { notFound, StatusError } from "@coxswain/apimachinery/objects/errors/status-error";
import type { RoleBinding } from "@coxswain/apimachinery/objects/schema/kinds/rbac/v1";
import { Turns } from "@coxswain/apimachinery/process/event-loop/turns";
import type { StrategyContext } from "../../generic/strategy.ts";
import { newBindingStrategy } from "./strategy.ts";

const reads = [{ verbs: ["get"], apiGroups: [""], resources: ["pods"] }];
const secrets = [{ verbs: ["get"], apiGroups: [""], resources: ["secrets"] }];
/** The roles that exist, by resource, namespace and name. */
const stored: Readonly<Record<string, object[]>> = {
  "roles/default/own": reads,
  "roles/default/more": secrets,
  "clusterroles//own": reads,
  "clusterroles//more": secrets,
};

function servicesOf(asked: object[], may = "no-opinion") {
  return {
    authorize: async (question: object) => {
      asked.push(question);
      return { decision: may };
    },
    rbacRules: async () => ({ rules: reads, errors: [] }),
    turns: new Turns(),
    store: (_group: string, resource: string) => ({
      get: async (namespace: string, name: string) => {
        const rules = stored[`${resource}/${namespace}/${name}`];
        if (rules === undefined) throw notFound({ group: "rbac.authorization.k8s.io", resource } as never, name);
        return { object: () => ({ metadata: { name }, rules }) };
      },
    }),
  };
}

const ctxOf = (...groups: string[]) =>
  ({ user: { name: "joe", groups }, signal: new AbortController().signal }) as unknown as StrategyContext;
const binding = (kind: string, name: string, metadata: object = {}): RoleBinding => ({
  metadata: { name: "b", namespace: "default", ...metadata },
  roleRef: { apiGroup: "rbac.authorization.k8s.io", kind, name },
});
/** @returns the code of the refusal, or undefined */
async function codeOf(begun: unknown): Promise<number | undefined> {
  try {
    await begun;
    return undefined;
  } catch (err) {
    if (err instanceof StatusError) return err.status.code;
    throw err;
  }
}

for (const { kind, name, want } of [
  { kind: "Role", name: "own", want: undefined },
  { kind: "Role", name: "more", want: 403 },
  { kind: "Role", name: "none", want: 404 },
  { kind: "ClusterRole", name: "own", want: undefined },
  { kind: "ClusterRole", name: "more", want: 403 },
]) {
  test(`binding the ${kind} "${name}" is ${want === undefined ? "allowed" : `refused with ${want}`}`, async () => {
    const asked: object[] = [];
    const strategy = newBindingStrategy({ services: () => servicesOf(asked) } as never, true);
    assert.equal(await codeOf(strategy.beginCreate?.(binding(kind, name), ctxOf("devs"))), want);
    assert.deepEqual(asked, [
      {
        user: { name: "joe", groups: ["devs"] },
        verb: "bind",
        isResourceRequest: true,
        namespace: "default",
        group: "rbac.authorization.k8s.io",
        version: "*",
        resource: kind === "Role" ? "roles" : "clusterroles",
        subresource: "",
        name,
        path: "",
      },
    ]);
  });
}

test("who may bind a role needs none of its permissions, nor does it have to exist", async () => {
  const strategy = newBindingStrategy({ services: () => servicesOf([], "allow") } as never, true);
  assert.equal(await codeOf(strategy.beginCreate?.(binding("Role", "more"), ctxOf("devs"))), undefined);
  assert.equal(await codeOf(strategy.beginCreate?.(binding("Role", "none"), ctxOf("devs"))), undefined);
});

test("the masters are not asked, nor is who is no user, nor a server without authorization", async () => {
  const asked: object[] = [];
  const strategy = newBindingStrategy({ services: () => servicesOf(asked) } as never, true);
  assert.equal(await codeOf(strategy.beginCreate?.(binding("Role", "more"), ctxOf("devs", "system:masters"))), undefined);
  assert.equal(await codeOf(strategy.beginCreate?.(binding("Role", "more"), {} as StrategyContext)), undefined);
  const open = newBindingStrategy({ services: () => ({ ...servicesOf(asked), authorize: undefined }) } as never, true);
  assert.equal(await codeOf(open.beginCreate?.(binding("Role", "more"), ctxOf("devs"))), undefined);
  assert.deepEqual(asked, []);
});

test("an update of a binding is checked as its creation, unless it changes owners and finalizers alone", async () => {
  const strategy = newBindingStrategy({ services: () => servicesOf([]) } as never, true);
  const current = binding("Role", "more", { resourceVersion: "1", managedFields: [] });
  for (const { metadata, want } of [
    { metadata: {}, want: undefined },
    { metadata: { resourceVersion: "2", managedFields: [{ manager: "m" }] }, want: undefined },
    { metadata: { finalizers: ["a/b"], ownerReferences: [{ uid: "u" }] }, want: undefined },
    { metadata: { labels: { a: "b" } }, want: 403 },
    { metadata: { annotations: { a: "b" } }, want: 403 },
  ]) {
    const next = binding("Role", "more", metadata);
    assert.equal(await codeOf(strategy.beginUpdate?.(next, current, ctxOf("devs"))), want, JSON.stringify(metadata));
  }
});

import assert from "node:assert/strict";
import { test } from "node:test";
import type { ResourceRef } from "@coxswain/apimachinery/objects/meta/group-version";
import { clusterRoles, flowSchemas, leases } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { newFakeClock } from "@coxswain/apimachinery/process/clock/fake-clock";
import { discardLogger } from "@coxswain/apimachinery/process/logging/logger";
import { newFakeClient } from "@coxswain/apimachinery/testing/fake-client";
import { settle, waitFor } from "@coxswain/apimachinery/testing/wait-for";
import type { IdentityLeaseOptions } from "../bootstrap/identity-lease.ts";
import type { KubernetesServiceOptions } from "../bootstrap/kubernetes-service.ts";
import type { Foundation } from "./foundation.ts";
import type { Modules } from "./modules.ts";
import { startHooks } from "./start-hooks.ts";

interface Given {
  modes?: string[];
  /** Groups that --runtime-config disables. */
  unserved?: string[];
  flags?: Record<string, string>;
  isFair?: boolean;
  hasIdentity?: boolean;
}

/** The hooks of a server over a fake client, whose informers show what `isShown` permits. */
function aStart({ modes = ["RBAC"], unserved = [], flags = {}, isFair = true, hasIdentity = false }: Given = {}) {
  const clock = newFakeClock();
  const client = newFakeClient({ clock });
  const state = { isShown: true, followed: 0 };
  const ending = new AbortController();
  const informers = {
    waitForSync: async () => {},
    for: (ref: ResourceRef) => ({
      lister: { get: (key: string) => (state.isShown ? client.object(ref, key as never) : undefined) },
    }),
  };
  const foundation = {
    ...{ clock, log: discardLogger, featureEnabled: () => false, certificates: { authenticationInfo: () => ({}) } },
    config: {
      served: (group: string) => !unserved.includes(group),
      authorizationModes: modes,
      flags: { "proxy-client-cert-file": "", "proxy-client-key-file": "", ...flags },
    },
  } as unknown as Foundation;
  const follow = isFair ? () => void state.followed++ : undefined;
  const modules = {
    ...{ client, informers, aggregator: {}, repair: {}, customResources: undefined, storageVersions: undefined },
    loadLimit: { follow },
  } as unknown as Modules;
  const identity = {
    client,
    identity: "kube-apiserver-me",
    durationSeconds: 60,
    renewIntervalSeconds: 10,
    clock,
    log: discardLogger,
  };
  const hooks = startHooks(
    foundation,
    modules,
    {} as KubernetesServiceOptions,
    hasIdentity ? (identity as IdentityLeaseOptions) : undefined,
  );
  const run = (name: string): Promise<void> => {
    const hook = hooks.find((one) => one.name === name);
    assert.ok(hook, name);
    return hook.run(ending.signal);
  };
  return { clock, client, state, ending, run, names: hooks.map(({ name }) => name) };
}

const always = [
  "start-kube-apiserver-admission-initializer",
  "generic-apiserver-start-informers",
  "priority-and-fairness-config-consumer",
  "priority-and-fairness-filter",
  "bootstrap-controller",
  "rbac/bootstrap-roles",
  "scheduling/bootstrap-system-priority-classes",
  "priority-and-fairness-config-producer",
  "start-cluster-authentication-info-controller",
  "start-kube-aggregator-informers",
  "apiservice-registration-controller",
  "apiservice-status-available-controller",
  "kube-apiserver-autoregistration",
  "apiservice-openapi-controller",
];
const certificate = { "proxy-client-cert-file": "/x.crt", "proxy-client-key-file": "/x.key" };
for (const { name, given, more = [], fewer = [] } of [
  { name: "everything served", given: {} },
  { name: "no RBAC", given: { modes: ["Node", "Webhook"] }, fewer: ["rbac/bootstrap-roles"] },
  { name: "no group of roles", given: { unserved: ["rbac.authorization.k8s.io"] }, fewer: ["rbac/bootstrap-roles"] },
  {
    name: "no group of priority classes",
    given: { unserved: ["scheduling.k8s.io"] },
    fewer: ["scheduling/bootstrap-system-priority-classes"],
  },
  {
    name: "no group of flow schemas",
    given: { unserved: ["flowcontrol.apiserver.k8s.io"] },
    fewer: ["priority-and-fairness-config-producer"],
  },
  {
    name: "max in flight",
    given: { isFair: false },
    more: ["max-in-flight-filter"],
    fewer: ["priority-and-fairness-config-consumer", "priority-and-fairness-filter"],
  },
  {
    name: "an identity",
    given: { hasIdentity: true },
    more: ["start-kube-apiserver-identity-lease-controller", "start-kube-apiserver-identity-lease-garbage-collector"],
  },
  { name: "a proxy's certificate", given: { flags: certificate }, more: ["aggregator-reload-proxy-client-cert"] },
  { name: "a proxy's certificate without a key", given: { flags: { ...certificate, "proxy-client-key-file": "" } } },
] as { name: string; given: Given; more?: string[]; fewer?: string[] }[]) {
  test(`the hooks of a server with ${name}`, () => {
    const wanted = new Set([...always, ...more]).difference(new Set(fewer));
    assert.deepEqual(aStart(given).names.toSorted(), [...wanted].sort());
  });
}

test("the default roles count as written when the informers show them", async () => {
  const { client, clock, state, run } = aStart();
  state.isShown = false;
  let isDone = false;
  const done = run("rbac/bootstrap-roles").then(() => {
    isDone = true;
  });
  await waitFor(() => client.objects(clusterRoles).length > 50 && clock.waiting > 0, { what: "the roles" });
  await clock.advance(1_000);
  await settle();
  assert.equal(isDone, false);
  state.isShown = true;
  await waitFor(async () => {
    await clock.advance(100);
    return isDone;
  });
  await done;
});

test("the default flow schemas are written, and maintained until the server stops", async () => {
  const { client, clock, ending, run } = aStart();
  await run("priority-and-fairness-config-producer");
  assert.notEqual(client.object(flowSchemas, "exempt" as never), undefined);
  client.remove(flowSchemas, "exempt" as never);
  await clock.advance(60_000);
  await waitFor(() => client.object(flowSchemas, "exempt" as never) !== undefined, { what: "the schema" });
  ending.abort(new Error("stopped"));
  await settle();
  assert.equal(clock.waiting, 0);
});

test("the configuration of priority and fairness is followed with the start", async () => {
  const { state, run } = aStart();
  assert.equal(state.followed, 0);
  await run("priority-and-fairness-config-consumer");
  assert.equal(state.followed, 1);
});

test("a server with an identity writes its lease, and deletes the expired ones of others", async () => {
  const { client, run } = aStart({ hasIdentity: true });
  const metadata = { namespace: "kube-system", name: "kube-apiserver-former", labels: { "k8s.io/component": "kube-apiserver" } };
  client.put(leases, { metadata });
  await run("start-kube-apiserver-identity-lease-controller");
  await run("start-kube-apiserver-identity-lease-garbage-collector");
  assert.deepEqual(
    client.objects(leases).map((lease) => lease.metadata.name),
    ["kube-apiserver-me"],
  );
});

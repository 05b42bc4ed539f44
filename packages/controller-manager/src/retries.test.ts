/** How often controllers try again, and how long they wait for more changes, with a server that rejects what they ask for. */
import assert from "node:assert/strict";
import { generateKeyPairSync } from "node:crypto";
import { test } from "node:test";
import { serviceUnavailable } from "@coxswain/apimachinery/objects/errors/status-error";
import type { ResourceRef } from "@coxswain/apimachinery/objects/meta/group-version";
import type { KubeObject } from "@coxswain/apimachinery/objects/meta/types";
import type { ConfigMap, Secret } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import * as resources from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { aDeployment, aNamespace, aService, aServiceAccount, someEndpoints } from "@coxswain/apimachinery/testing/builders";
import { settle } from "@coxswain/apimachinery/testing/wait-for";
import { catalogue } from "./catalogue.ts";
import type { ControllerManagerConfig } from "./config/controller-manager-config.ts";
import type { ControllerContext } from "./controller-context.ts";
import { aBootstrapToken } from "./testing/bootstrap-tokens.ts";
import { newTestContext, type TestContext } from "./testing/test-context.ts";

const { privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });

/** Starts a controller beside a server that rejects all but lists and watches. @returns when it has tried, in ms */
async function started(
  t: { after(fn: () => void): void },
  controller: string,
  objects: readonly (readonly [ResourceRef, object])[],
  config: Partial<ControllerManagerConfig> = {},
) {
  const serviceAccountKey = privateKey.export({ type: "pkcs8", format: "pem" }).toString();
  const context = newTestContext(t, { ...config, serviceAccountKey });
  const { client, clock, ctx, run } = context;
  const start = clock.now();
  const tries: number[] = [];
  const none = (): void => {};
  const queueMetrics: NonNullable<ControllerContext["queueMetrics"]> = () => ({
    ...{ added: none, done: none, retried: none },
    got: () => void tries.push(clock.now() - start),
  });
  for (const [ref, object] of objects) client.put(ref, object as KubeObject);
  client.react("*", "*", ({ verb }) => {
    if (verb !== "list" && verb !== "watch") throw serviceUnavailable("away");
    return undefined;
  });
  await run(catalogue.find(({ name }) => name === controller)?.make({ ...ctx, queueMetrics }));
  return { ...context, tries };
}

const service = [resources.services, aService()] as const;
const subsets = [{ addresses: [{ ip: "10.0.0.1" }], ports: [{ port: 1 }] }];

for (const [controller, retries, ...objects] of [
  ["endpoint", 15, service],
  ["endpointslice", 15, service],
  [
    "endpointslicemirroring",
    15,
    [resources.services, { ...aService(), spec: {} }],
    [resources.endpoints, someEndpoints({ subsets })],
  ],
  ["deployment", 15, [resources.deployments, aDeployment()]],
  ["serviceaccount-token", 10, [resources.serviceAccounts, aServiceAccount({ name: "a" })]],
] as const) {
  test(`${controller} gives an object up after ${retries} retries, until it changes`, async (t) => {
    const { clock, tries } = await started(t, controller, objects);
    for (let i = 0; i < 40; i++) {
      await clock.advance(20_000 * (i < 20 ? 1 : 50));
      await settle(20);
    }
    assert.equal(tries.length, 1 + retries, String(tries));
  });
}

const webToken = (): Secret => ({
  metadata: { namespace: "web", name: "old", annotations: { "kubernetes.io/service-account.name": "gone" } },
  type: "kubernetes.io/service-account-token",
});
const version = {
  metadata: { name: "core.pods" },
  spec: {},
  status: { storageVersions: [{ apiServerID: "a", encodingVersion: "v1", decodableVersions: ["v1"] }] },
};
const withVersions = { APIServerIdentity: true, StorageVersionAPI: true };

for (const { controller, verb, resource, gates, objects, want } of [
  {
    controller: "bootstrapsigner",
    verb: "update",
    resource: "configmaps",
    objects: [
      [resources.configMaps, { metadata: { namespace: "kube-public", name: "cluster-info" }, data: { kubeconfig: "x" } }],
      [resources.secrets, aBootstrapToken("aaaaaa")],
    ],
    want: ({ client }) => "jws-kubeconfig-aaaaaa" in (client.objects<ConfigMap>(resources.configMaps)[0]?.data ?? {}),
  },
  {
    controller: "tokencleaner",
    verb: "delete",
    resource: "secrets",
    objects: [[resources.secrets, aBootstrapToken("aaaaaa", { expiration: "2000-01-01T00:00:00Z" })]],
    want: ({ client }) => client.objects(resources.secrets).length === 0,
  },
  {
    controller: "serviceaccount-token",
    verb: "get",
    resource: "serviceaccounts",
    objects: [[resources.secrets, webToken()]],
    want: ({ client }) => client.objects(resources.secrets).length === 0,
  },
  {
    controller: "serviceaccount-token",
    verb: "update",
    resource: "secrets",
    objects: [
      [resources.serviceAccounts, aServiceAccount({ namespace: "web", name: "gone" })],
      [resources.secrets, webToken()],
    ],
    want: ({ client }) => client.objects<Secret>(resources.secrets)[0]?.data?.["token"] !== undefined,
  },
  {
    controller: "serviceaccount-token",
    verb: "delete",
    resource: "secrets",
    objects: [[resources.secrets, webToken()]],
    want: ({ client }) => client.objects(resources.secrets).length === 0,
  },
  {
    controller: "serviceaccount-token",
    verb: "create",
    resource: "secrets",
    objects: [[resources.serviceAccounts, aServiceAccount({ namespace: "web" })]],
    want: ({ client }) => client.objects(resources.secrets).length === 1,
  },
  ...(["leases", "storageversions"] as const).map((resource) => ({
    ...{ controller: "storage-version-gc", verb: "get" as const, resource, gates: withVersions },
    objects: [[resources.storageVersions, version]] as const,
    want: ({ client }: TestContext) => client.objects(resources.storageVersions).length === 0,
  })),
] satisfies {
  controller: string;
  verb: Parameters<TestContext["client"]["react"]>[0];
  resource: string;
  gates?: Readonly<Record<string, boolean>>;
  objects: readonly (readonly [ResourceRef, object])[];
  want: (context: TestContext) => boolean;
}[]) {
  test(`${controller} does not go on after a ${verb} of ${resource} that the server cannot answer, and tries again`, async (t) => {
    const serviceAccountKey = privateKey.export({ type: "pkcs8", format: "pem" }).toString();
    const context = newTestContext(t, { serviceAccountKey }, gates);
    const { client, clock, ctx, run } = context;
    let isAway = true;
    let tries = 0;
    client.react(verb, resource, () => {
      tries++;
      if (isAway) throw serviceUnavailable("away");
      return undefined;
    });
    for (const [ref, object] of objects) client.put(ref, object as KubeObject);
    await run(catalogue.find(({ name }) => name === controller)?.make(ctx));
    assert.deepEqual([tries > 0, want(context)], [true, false]);
    assert.ok(
      client.writes.every((write) => write.verb === verb && write.resource === resource),
      "nothing else is written",
    );
    isAway = false;
    await clock.advance(5000);
    await settle(60);
    assert.ok(want(context));
  });
}

test("a namespace that cannot be emptied is tried again after twice the time, at most each minute", async (t) => {
  const leaving = aNamespace({ name: "web", deletedAt: "2022-01-01T00:00:00Z" });
  const config = { namespaceSyncPeriodMs: 900_000_000, resourceQuotaSyncPeriodMs: 1000 };
  const { clock, tries } = await started(t, "namespace", [[resources.namespaces, leaving]], config);
  for (let i = 0; i < 60; i++) await clock.advance(5000);
  const waits = tries.slice(1).map((at, i) => at - (tries[i] ?? 0));
  assert.deepEqual(waits.slice(0, 4), [5, 10, 20, 40]);
  assert.deepEqual(waits.slice(12, 16), [20_480, 40_960, 60_000, 60_000]);
});

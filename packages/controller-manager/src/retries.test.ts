/** How often controllers try again, and how long they wait for more changes, with a server that rejects what they ask for. */
import assert from "node:assert/strict";
import { generateKeyPairSync } from "node:crypto";
import { test } from "node:test";
import { serviceUnavailable } from "@coxswain/apimachinery/objects/errors/status-error";
import type { ResourceRef } from "@coxswain/apimachinery/objects/meta/group-version";
import type { KubeObject } from "@coxswain/apimachinery/objects/meta/types";
import * as resources from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { aDeployment, aNamespace, aService, aServiceAccount, someEndpoints } from "@coxswain/apimachinery/testing/builders";
import { settle } from "@coxswain/apimachinery/testing/wait-for";
import { catalogue } from "./catalogue.ts";
import type { ControllerManagerConfig } from "./config/controller-manager-config.ts";
import type { ControllerContext } from "./controller-context.ts";
import { newTestContext } from "./testing/test-context.ts";

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

test("a namespace that cannot be emptied is tried again after twice the time, at most each minute", async (t) => {
  const leaving = aNamespace({ name: "web", deletedAt: "2022-01-01T00:00:00Z" });
  const config = { namespaceSyncPeriodMs: 900_000_000, resourceQuotaSyncPeriodMs: 1000 };
  const { clock, tries } = await started(t, "namespace", [[resources.namespaces, leaving]], config);
  for (let i = 0; i < 60; i++) await clock.advance(5000);
  const waits = tries.slice(1).map((at, i) => at - (tries[i] ?? 0));
  assert.deepEqual(waits.slice(0, 4), [5, 10, 20, 40]);
  assert.deepEqual(waits.slice(12, 16), [20_480, 40_960, 60_000, 60_000]);
});

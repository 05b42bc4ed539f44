/** Which APIServices are written and when, against a client in memory. */
import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { newInformerFactory } from "@coxswain/apimachinery/informers/factory";
import { alreadyExists, conflict, notFound, serviceUnavailable } from "@coxswain/apimachinery/objects/errors/status-error";
import { apiServices as apiServicesRef } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { newFakeClock } from "@coxswain/apimachinery/process/clock/fake-clock";
import { discardLogger } from "@coxswain/apimachinery/process/logging/logger";
import { newFakeClient } from "@coxswain/apimachinery/testing/fake-client";
import { settle, waitFor } from "@coxswain/apimachinery/testing/wait-for";
import type { ApiService } from "./api-services.ts";
import { newAutoregistration } from "./autoregistration.ts";

const label = "kube-aggregator.kubernetes.io/automanaged";
const groupVersion = { group: "a.b", version: "v1" };

function anApiService(
  versionPriority = 100,
  { name = "v1.a.b", available }: { name?: string; available?: string } = {},
): ApiService {
  return {
    metadata: { name, labels: { [label]: "true" } },
    spec: { ...groupVersion, groupPriorityMinimum: 1000, versionPriority },
    ...(available && { status: { conditions: [{ type: "Available", status: available as "True" }] } }),
  };
}

/** @param there what is stored before the start */
async function running(t: TestContext, there: readonly ApiService[], known: Promise<void> = Promise.resolve()) {
  const client = newFakeClient();
  for (const apiService of there) client.put(apiServicesRef, apiService);
  const clock = newFakeClock();
  const informers = newInformerFactory(client, { log: discardLogger, clock });
  const stop = new AbortController();
  const apiServices = informers.for<ApiService>(apiServicesRef);
  const builtIn = ["apps", "batch", "apiregistration.k8s.io", "unknown.io"].map((group) => ({ group, version: "v1" }));
  const registration = newAutoregistration({ client, apiServices, builtIn, clock, log: discardLogger });
  informers.start(stop.signal);
  const ended = registration.run(known, stop.signal);
  t.after(async () => {
    stop.abort();
    await ended;
  });
  await informers.waitForSync(stop.signal);
  const writes = (): string[] =>
    client.actions
      .filter(({ verb }) => ["create", "update", "delete"].includes(verb))
      .map(({ verb, name }) => `${verb} ${name}`)
      .filter((text) => text.includes("v1.a.b"));
  return { client, clock, registration, writes };
}

test("nothing is deleted before the group versions of custom resources are known", async (t) => {
  const known = Promise.withResolvers<void>();
  const { clock, registration, writes } = await running(
    t,
    [anApiService(), anApiService(100, { name: "v1.gone.v1.a.b" })],
    known.promise,
  );
  await clock.advance(60_000);
  await settle();
  assert.deepEqual(writes(), []);
  registration.add(groupVersion);
  known.resolve();
  await waitFor(() => writes().length > 0, { what: "the deletion" });
  await clock.advance(60_000);
  assert.deepEqual(writes(), ["delete v1.gone.v1.a.b"]);
});

test("an APIService that is no longer wanted is deleted at once, without an event", async (t) => {
  const { registration, writes } = await running(t, []);
  registration.add(groupVersion);
  await waitFor(() => writes().length === 1, { what: "the creation" });
  await settle(50);
  registration.remove(groupVersion);
  await waitFor(() => writes().length === 2, { what: "the deletion" });
  assert.deepEqual(writes(), ["create v1.a.b", "delete v1.a.b"]);
});

for (const { what, failure, isRepeated } of [
  { what: "has changed", failure: conflict(apiServicesRef, "v1.a.b", "changed"), isRepeated: false },
  { what: "has deleted", failure: notFound(apiServicesRef, "v1.a.b"), isRepeated: false },
  { what: "has made", failure: alreadyExists(apiServicesRef, "v1.a.b"), isRepeated: false },
  { what: "keeps from being written", failure: serviceUnavailable("etcd is away"), isRepeated: true },
]) {
  test(`an APIService that another one ${what} is ${isRepeated ? "written again soon" : "left to the event of that change"}`, async (t) => {
    const { client, clock, registration, writes } = await running(t, []);
    let failures = 0;
    client.react("create", "apiservices", ({ name }) => {
      if (name !== "v1.a.b" || failures++ > 0) return undefined;
      throw failure;
    });
    registration.add(groupVersion);
    await waitFor(() => failures > 0, { what: "the first attempt" });
    await settle();
    await clock.advance(60_000);
    await settle();
    assert.deepEqual(writes(), Array(isRepeated ? 2 : 1).fill("create v1.a.b"));
  });
}

test("built-in APIServices are missing until they have been available once, those of unknown groups never are", async (t) => {
  const { client, registration } = await running(t, []);
  assert.deepEqual(registration.missing(), ["v1.apps", "v1.batch"]);
  client.put(apiServicesRef, anApiService(15, { name: "v1.apps", available: "False" }));
  client.put(apiServicesRef, anApiService(15, { name: "v1.batch", available: "True" }));
  await waitFor(() => registration.missing().length === 1, { what: "the one that is available" });
  assert.deepEqual(registration.missing(), ["v1.apps"]);
  client.put(apiServicesRef, anApiService(15, { name: "v1.apps", available: "True" }));
  await waitFor(() => registration.missing().length === 0, { what: "the other one" });
  client.put(apiServicesRef, anApiService(15, { name: "v1.apps", available: "False" }));
  await settle();
  assert.deepEqual(registration.missing(), []);
});

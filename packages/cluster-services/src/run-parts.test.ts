import assert from "node:assert/strict";
import { test } from "node:test";
import type { Client } from "@coxswain/apimachinery/client/client";
import type { Service } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { leases, services } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { newFakeClock } from "@coxswain/apimachinery/process/clock/fake-clock";
import { Turns } from "@coxswain/apimachinery/process/event-loop/turns";
import { discardLogger } from "@coxswain/apimachinery/process/logging/logger";
import { newMetricsRegistry } from "@coxswain/apimachinery/process/metrics/registry";
import { newFakeClient } from "@coxswain/apimachinery/testing/fake-client";
import { settle, waitFor } from "@coxswain/apimachinery/testing/wait-for";
import type { ServicesFlags } from "./flags.ts";
import type { PartDefinition } from "./part.ts";
import { newPartHealth } from "./part-health.ts";
import { type RunOptions, reconnectPeriodMs, runParts } from "./run-parts.ts";

const optionsOf = (
  { client, clock, signal }: Pick<RunOptions, "clock" | "signal"> & { client: Client },
  ...parts: PartDefinition[]
): RunOptions => {
  const metrics = newMetricsRegistry();
  return {
    parts,
    flags: { "kube-api-qps": 5, "kube-api-burst": 10 } as ServicesFlags,
    family: { member: () => client, apart: () => client, close: () => {} },
    leaderElection: {
      ...{ enabled: true, leaseDurationMs: 15_000, renewDeadlineMs: 10_000, retryPeriodMs: 2_000 },
      ...{ resourceLock: "leases", resourceNamespace: "kube-system", resourceName: "parts" },
    },
    leadership: undefined,
    health: newPartHealth({ clock, metrics }),
    ...{ nodeName: "n1", log: discardLogger, clock, turns: new Turns(), metrics, signal },
  };
};

test("parts of the node run always, the others while the lease is held: all of them, again after it was lost, ended before it is given up", async () => {
  const clock = newFakeClock();
  const client = newFakeClient({ clock });
  const log: string[] = [];
  const holder = () =>
    client.object<{ metadata: object; spec: { holderIdentity?: string } }>(leases, "kube-system/parts")?.spec.holderIdentity;
  const stopping = new Map<string, PromiseWithResolvers<void>>();
  const aPart = (name: string, runs: PartDefinition["runs"]): PartDefinition => ({
    ...{ name, runs, onByDefault: true, rights: {} },
    load: async () => async () => {
      log.push(`${name} starts`);
      return {
        async stop() {
          await stopping.get(name)?.promise;
          log.push(`${name} ends${holder() ? "" : " without the lease"}`);
        },
      };
    },
  });
  const ending = new AbortController();
  const running = runParts(
    optionsOf({ client, clock, signal: ending.signal }, aPart("node", "node"), aPart("one", "once"), aPart("two", "once")),
  );
  const step = (): Promise<boolean> => clock.advance(1_000).then(() => false);
  await waitFor(async () => (await step()) || log.length === 3);
  assert.deepEqual(log.splice(0).sort(), ["node starts", "one starts", "two starts"]);
  let isAway = true;
  client.react("update", "leases", () => {
    if (isAway) throw new Error("connection refused");
  });
  stopping.set("one", Promise.withResolvers());
  await waitFor(async () => (await step()) || log.length === 1);
  isAway = false;
  for (let i = 0; i < 30; i++) await step();
  assert.deepEqual(log.splice(0), ["two ends"], "nothing begins before the other has ended");
  stopping.get("one")?.resolve();
  await waitFor(async () => (await step()) || log.length === 3);
  assert.deepEqual(log.splice(0).sort(), ["one ends", "one starts", "two starts"]);
  ending.abort(new Error("the process ends"));
  await running;
  await settle();
  assert.deepEqual([log.length, holder() || "given up"], [3, "given up"]);
});

for (const state of ["the same", "another"]) {
  test(`a second after an API server that was away for five minutes is back with ${state} state, parts know it and those that run once run`, async () => {
    const clock = newFakeClock();
    const client = newFakeClient({ clock });
    const names: string[] = [];
    const runs: string[] = [];
    const parts = (["node", "once"] as const).map(
      (name): PartDefinition => ({
        ...{ name, runs: name, onByDefault: true, rights: {} },
        load:
          async () =>
          async ({ informers, signal }) => {
            runs.push(name);
            signal.addEventListener("abort", () => runs.splice(runs.indexOf(name), 1));
            informers.for<Service>(services).addHandler({ added: ({ metadata }) => void names.push(`${name} ${metadata.name}`) });
            return {};
          },
      }),
    );
    const ending = new AbortController();
    const running = runParts(optionsOf({ client, clock, signal: ending.signal }, ...parts));
    await waitFor(async () => (await clock.advance(1_000)) ?? runs.length === 2);
    let isAway = true;
    client.react("*", "*", () => {
      if (isAway) throw Object.assign(new Error("connect ECONNREFUSED"), { code: "ECONNREFUSED" });
    });
    client.endWatches();
    for (let second = 0; second < 300; second++) await clock.advance(1_000);
    assert.deepEqual(runs, ["node"], "the lease is lost");
    client.put(services, { metadata: { namespace: "default", name: "web" }, spec: {} });
    if (state === "another") client.compact();
    isAway = false;
    await clock.advance(1_000);
    await settle();
    assert.deepEqual(
      [names.sort(), runs],
      [
        ["node web", "once web"],
        ["node", "once"],
      ],
    );
    ending.abort(new Error("the process ends"));
    await running;
  });
}

test("without leader election the parts that run once run with the others", async () => {
  const clock = newFakeClock();
  const client = newFakeClient({ clock });
  const ending = new AbortController();
  const seen: string[] = [];
  const aPart = (name: string, runs: PartDefinition["runs"]): PartDefinition => ({
    ...{ name, runs, onByDefault: true, rights: {} },
    load: async () => async () => {
      seen.push(`${name} starts`);
      return { stop: async () => void seen.push(`${name} ends`) };
    },
  });
  const options = optionsOf({ client, clock, signal: ending.signal }, aPart("node", "node"), aPart("once", "once"));
  const running = runParts({ ...options, leaderElection: { ...options.leaderElection, enabled: false } });
  await waitFor(() => seen.length === 2);
  assert.deepEqual(client.objects(leases), []);
  ending.abort(new Error("the process ends"));
  await running;
  assert.deepEqual(seen.toSorted(), ["node ends", "node starts", "once ends", "once starts"]);
});

test("each part has the flags' rate limit, and another client for its events; the lease has a connection of its own", async () => {
  const clock = newFakeClock();
  const ending = new AbortController();
  const made: string[] = [];
  const client = newFakeClient({ clock });
  const take =
    (kind: string) =>
    ({ qps, burst, userAgent = "" }: { qps?: number; burst?: number; userAgent?: string }): Client => {
      made.push(`${kind} ${/\/([\w-]+)$/.exec(userAgent)?.[1]} ${qps} ${burst}`);
      return client;
    };
  const clients = new Set<unknown>();
  const part: PartDefinition = {
    ...{ name: "dns", runs: "once", onByDefault: true, rights: {} },
    load: async () => async (context) => {
      clients.add(context.client);
      return {};
    },
  };
  const options = optionsOf({ client, clock, signal: ending.signal }, part);
  const running = runParts({ ...options, family: { member: take("member"), apart: take("apart"), close: () => {} } });
  await waitFor(async () => (await clock.advance(1_000)) ?? clients.size === 1);
  assert.deepEqual(
    made.filter((one) => one.includes(" dns ")),
    ["member dns 5 10", "member dns 5 10"],
  );
  assert.ok(made.includes("member shared-informers -1 undefined"), made.join());
  assert.ok(made.includes("apart leader-election -1 undefined"), made.join());
  ending.abort(new Error("the process ends"));
  await running;
});

test("processes of a cluster come back at no more than 1,000 a second", () => {
  for (const nodeCount of [0, 1, 250, 1_000, 5_000]) {
    const period = reconnectPeriodMs(nodeCount);
    // Each waits for half of the period to the whole.
    assert.ok(nodeCount / (period / 2) <= 1, `${nodeCount} in ${period / 2} ms`);
  }
  assert.equal(reconnectPeriodMs(250), 500, "well within 2 s");
});

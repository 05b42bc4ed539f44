import assert from "node:assert/strict";
import { test } from "node:test";
import type { Client, ClientFamily } from "@coxswain/apimachinery/client/client";
import { leases } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { newFakeClock } from "@coxswain/apimachinery/process/clock/fake-clock";
import { Turns } from "@coxswain/apimachinery/process/event-loop/turns";
import { discardLogger } from "@coxswain/apimachinery/process/logging/logger";
import { newMetricsRegistry } from "@coxswain/apimachinery/process/metrics/registry";
import { newFakeClient } from "@coxswain/apimachinery/testing/fake-client";
import { settle, waitFor } from "@coxswain/apimachinery/testing/wait-for";
import type { ServicesFlags } from "./flags.ts";
import type { PartDefinition } from "./part.ts";
import { newPartHealth } from "./part-health.ts";
import { type RunOptions, runParts } from "./run-parts.ts";

const optionsOf = (
  { client, clock, signal }: Pick<RunOptions, "clock" | "signal"> & { client: Client },
  ...parts: PartDefinition[]
): RunOptions => {
  const metrics = newMetricsRegistry();
  return {
    parts,
    flags: { "kube-api-qps": 5, "kube-api-burst": 10 } as ServicesFlags,
    family: { member: () => client, apart: () => client, close: () => {} } as unknown as ClientFamily,
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

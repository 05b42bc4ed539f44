/**
 * The real process coxswain-services and the kernel's rules under many changes and while the API server fails. A model
 * checks them that reads `iptables-save` and shares no code with the writer of rules.
 */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import type { Service } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import type { EndpointSlice } from "@coxswain/apimachinery/objects/schema/kinds/discovery/v1";
import { endpointSlices, services } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { waitFor } from "@coxswain/apimachinery/testing/wait-for";
import { parts } from "@coxswain/cluster-services/parts";
import { needsRoot } from "@coxswain/cluster-services/testing/namespaces";
import { destinationsIn, differences, expectedDestinations } from "./kernel-model.ts";
import { KillableMachine } from "./killed-process.ts";
import { addNodeLink, startOneNodeCluster } from "./nodes.ts";

const long = process.env["COX_TEST_LONG"] === undefined && "long: only with ./cox test --long";
const awayMs = 300_000;
const serviceCount = 1_000;
const namespace = "default";

/** CPU seconds of a process with the children that it has waited for. */
function cpuSeconds(pid: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1]?.split(" ") ?? [];
  return [11, 12, 13, 14].reduce((sum, index) => sum + Number(fields[index]), 0) / 100;
}

test("rules are right after 2,000 changes of Services, a churn of endpoints and an absence of the API server", {
  skip: needsRoot || long,
}, async (t) => {
  const { folder, cluster, relay } = await startOneNodeCluster(
    t,
    "faults",
    parts.filter(({ name }) => name === "services"),
  );
  const { client } = cluster;
  const machine = await KillableMachine.make(t, join(folder, "n1"), join(folder, "api"), ["--disable=*", "--enable=services"]);
  await addNodeLink(machine.namespace);
  await machine.namespace.ip("route add default via 192.168.77.254 dev eth0");
  machine.start();

  /** Everything that is wrong now. */
  const wrong = async (): Promise<string[]> => {
    const [all, slices] = [await client.list<Service>(services, {}), await client.list<EndpointSlice>(endpointSlices, {})];
    const known = new Set(all.items.map(({ metadata }) => metadata.name));
    const own = slices.items.filter(({ metadata }) => known.has(metadata.labels?.["kubernetes.io/service-name"] ?? ""));
    const { destinations, unused } = destinationsIn(await machine.namespace.run("iptables-save", []));
    return [...differences(destinations, expectedDestinations(all.items, own)), ...unused.map((chain) => `unused: ${chain}`)];
  };
  const becomesRight = async (t: TestContext, what: string): Promise<void> => {
    const [begun, cpu] = [performance.now(), cpuSeconds(machine.pid)];
    const isRight = async (seen: (state: unknown) => unknown): Promise<boolean> => {
      const list = await wrong();
      seen(list.length === 0 ? machine.output.slice(-2_000) : list.slice(0, 10));
      return list.length === 0;
    };
    await waitFor(isRight, { timeoutMs: 120_000, what });
    const used = cpuSeconds(machine.pid) - cpu;
    t.diagnostic(`${what}: right ${Math.round(performance.now() - begun)} ms after the last change, ${used.toFixed(2)} s of CPU`);
    assert.ok(used < 6, `${used} s of CPU, 2 s and threefold slack`);
  };
  const create = async (name: string, addresses: readonly string[]): Promise<void> => {
    const metadata = { namespace, name };
    await client.create<Service>(services, { metadata, spec: { ports: [{ port: 80, protocol: "TCP" }] } });
    if (addresses.length === 0) return;
    await client.create<EndpointSlice>(endpointSlices, sliceOf(name, name, addresses));
  };
  const remove = async (name: string): Promise<void> => {
    await client.delete(services, { namespace, name });
    await client.delete(endpointSlices, { namespace, name }).catch(() => {}); // some have none
  };
  await becomesRight(t, "start");

  await t.test("1,000 Services are created and 900 of them deleted within a minute", async (t) => {
    const begun = performance.now();
    for (let i = 0; i < serviceCount; i++) {
      await create(
        `s${i}`,
        Array.from({ length: i % 4 }, (_, k) => `10.77.${i % 250}.${k + 1}`),
      );
      if (i >= 100) await remove(`s${i - 100}`);
      const early = (i * 60_000) / serviceCount - (performance.now() - begun);
      if (early > 0) await sleep(early); // the rate of the changes
    }
    t.diagnostic(`${Math.round((performance.now() - begun) / 1_000)} s for the changes`);
    await becomesRight(t, "created and deleted");
  });

  await t.test("the endpoints of a Service with 1,000 change 100 times a second", async (t) => {
    const address = (i: number): string => `10.77.${100 + (i >> 8)}.${i & 255}`;
    const slices = Array.from({ length: 10 }, (_, s) => Array.from({ length: 100 }, (_, i) => address(s * 100 + i)));
    await create("large", []);
    for (const [s, addresses] of slices.entries())
      await client.create<EndpointSlice>(endpointSlices, sliceOf(`large-${s}`, "large", addresses));
    const begun = performance.now();
    for (let change = 0; change < 2_000; change++) {
      const s = change % 10;
      const addresses = slices[s] as string[];
      if (change % 20 < 10) addresses.pop();
      else addresses.push(address(s * 100 + 99 - (change % 7)));
      const unique = [...new Set(addresses)];
      await client.patch(
        endpointSlices,
        { namespace, name: `large-${s}` },
        { type: "merge", body: { endpoints: endpointsOf(unique) } },
      );
      const early = change * 10 - (performance.now() - begun);
      if (early > 0) await sleep(early);
    }
    t.diagnostic(`2,000 changes in ${Math.round(performance.now() - begun)} ms`);
    await becomesRight(t, "churn");
  });

  await t.test("the API server is away, and meanwhile the cluster changes", async (t) => {
    const before = await machine.namespace.run("iptables-save", []);
    relay.lead(undefined);
    for (let i = 0; i < 50; i++) {
      await create(`away${i}`, ["10.77.3.1"]);
      await remove(`s${serviceCount - 1 - i}`);
    }
    await sleep(awayMs); // what is tested is a long absence
    assert.equal(rulesIn(await machine.namespace.run("iptables-save", [])), rulesIn(before), "rules stay as they were");
    relay.lead((await cluster.listen()).url);
    await becomesRight(t, `away for ${awayMs / 1_000} s`);
  });
});

const endpointsOf = (addresses: readonly string[]): EndpointSlice["endpoints"] =>
  addresses.map((address) => ({ addresses: [address], nodeName: "n2", conditions: { ready: true } }));

const sliceOf = (name: string, service: string, addresses: readonly string[]): EndpointSlice => ({
  metadata: { namespace, name, labels: { "kubernetes.io/service-name": service } },
  addressType: "IPv4",
  endpoints: endpointsOf(addresses),
  ports: [{ name: "", port: 8080, protocol: "TCP" }],
});

/** Without the time and counters. */
const rulesIn = (save: string): string =>
  save
    .split("\n")
    .filter((line) => !line.startsWith("#"))
    .map((line) => line.replace(/\[\d+:\d+\]/, ""))
    .join("\n");

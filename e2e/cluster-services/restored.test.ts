/**
 * The real process coxswain-services with all parts, after etcd was restored to an earlier state, and with its clock
 * set forward and back. A model checks rules, DNS answers, load balancers' addresses and volumes.
 */
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import type { Client } from "@coxswain/apimachinery/client/client";
import { isNotFound } from "@coxswain/apimachinery/objects/errors/predicates";
import type { PersistentVolume, PersistentVolumeClaim, Service } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import type { EndpointSlice } from "@coxswain/apimachinery/objects/schema/kinds/discovery/v1";
import {
  endpointSlices,
  leases,
  persistentVolumeClaims,
  persistentVolumes,
  services,
} from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { startRestorableEtcd } from "@coxswain/apimachinery/testing/restorable-etcd";
import { waitFor } from "@coxswain/apimachinery/testing/wait-for";
import { selectedNode, storageProvisioner } from "@coxswain/apimachinery/volumes/annotations";
import { provisioner } from "@coxswain/cluster-services/local-volumes/names";
import { parts } from "@coxswain/cluster-services/parts";
import { needsRoot } from "@coxswain/cluster-services/testing/namespaces";
import { destinationsIn, differences, expectedDestinations } from "./kernel-model.ts";
import { KillableMachine } from "./killed-process.ts";
import { addNodeLink, nodeAddress, type ServicesClusterOptions, startOneNodeCluster } from "./nodes.ts";

const long = process.env["COX_TEST_LONG"] === undefined && "long: only with ./cox test --long";
/** A library that changes what programs see as the time, for a run by hand; default: only Node's time of day changes. */
const library = process.env["COX_LIBFAKETIME"];
const clockModule = join(import.meta.dirname, "../deploy/ha/clock.cjs");
const namespace = "default";
const port = { name: "http", port: 80, protocol: "TCP" as const };

/** A cluster whose objects the test changes, and the node's process. */
class TestNode {
  readonly #machine: KillableMachine;
  readonly #client: Client;
  /** All names of Services so far. */
  readonly #names = new Set<string>();

  private constructor(machine: KillableMachine, client: Client) {
    this.#machine = machine;
    this.#client = client;
  }

  get client(): Client {
    return this.#client;
  }

  static async start(t: TestContext, options: ServicesClusterOptions, variables: Readonly<Record<string, string>> = {}) {
    const controllers = ["persistentvolume-binder", "pvc-protection", "pv-protection"];
    const started = await startOneNodeCluster(t, "restored", parts, { controllers, ...options });
    const { folder, cluster, relay } = started;
    const flags = ["--enable=ingress", "--load-balancer-pool=192.168.77.50-192.168.77.59"];
    const machine = await KillableMachine.make(t, join(folder, "n1"), join(folder, "api"), flags);
    await addNodeLink(machine.namespace);
    await machine.namespace.ip("route add default via 192.168.77.254 dev eth0");
    machine.start(flags, variables);
    return { node: new TestNode(machine, cluster.client), machine, relay, url: (await cluster.listen()).url };
  }

  async put(name: string, type: "ClusterIP" | "LoadBalancer", endpoints: readonly string[]): Promise<void> {
    this.#names.add(name);
    const metadata = { namespace, name };
    await this.#client.create<Service>(services, { metadata, spec: { type, ports: [port] } });
    await this.#client.create<EndpointSlice>(endpointSlices, {
      metadata: { ...metadata, labels: { "kubernetes.io/service-name": name } },
      addressType: "IPv4",
      endpoints: endpointsOf(endpoints),
      ports: [{ ...port, port: 8080 }],
    });
  }

  async move(name: string, endpoints: readonly string[]): Promise<void> {
    await this.#client.patch(endpointSlices, { namespace, name }, { type: "merge", body: { endpoints: endpointsOf(endpoints) } });
  }

  async remove(name: string): Promise<void> {
    await this.#client.delete(services, { namespace, name });
    await this.#client.delete(endpointSlices, { namespace, name });
  }

  async claim(name: string): Promise<void> {
    await this.#client.create<PersistentVolumeClaim>(persistentVolumeClaims, {
      metadata: { namespace, name, annotations: { [storageProvisioner]: provisioner, [selectedNode]: "n1" } },
      spec: { accessModes: ["ReadWriteOnce"], storageClassName: "local", resources: { requests: { storage: "1Mi" } } },
    });
  }

  async unclaim(name: string): Promise<void> {
    await this.#client.delete(persistentVolumeClaims, { namespace, name });
  }

  /** Everything that is wrong now, by what it is. */
  async wrong(): Promise<Record<"rules" | "names" | "addresses" | "volumes", string[]>> {
    const all = (await this.#client.list<Service>(services, {})).items;
    const own = all.filter(({ metadata }) => metadata.namespace === namespace);
    const slices = (await this.#client.list<EndpointSlice>(endpointSlices, { namespace })).items;
    const [rules, names, addresses, volumes] = await Promise.all([
      this.#wrongRules(own, all, slices),
      this.#wrongNames(own),
      this.#wrongAddresses(own),
      this.#wrongVolumes(),
    ]);
    return { rules, names, addresses, volumes };
  }

  async becomesRight(t: TestContext, what: string): Promise<void> {
    const begun = performance.now();
    const rightAfter = new Map<string, number>();
    const isRight = async (seen: (state: unknown) => unknown): Promise<boolean> => {
      const found = await this.wrong();
      for (const [name, list] of Object.entries(found)) {
        if (list.length > 0) rightAfter.delete(name);
        else if (!rightAfter.has(name)) rightAfter.set(name, Math.round(performance.now() - begun));
      }
      const all = Object.values(found).flat();
      if (all.length > 0) seen([...all.slice(0, 10), this.#machine.output.slice(-3_000)].join("\n"));
      return all.length === 0;
    };
    await waitFor(isRight, { timeoutMs: 60_000, what });
    t.diagnostic(`${what}: right after ${[...rightAfter].map(([name, ms]) => `${name} ${ms} ms`).join(", ")}`);
  }

  async #wrongRules(own: readonly Service[], all: readonly Service[], slices: readonly EndpointSlice[]): Promise<string[]> {
    const { destinations, unused } = destinationsIn(await this.#machine.namespace.run("iptables-save", []));
    const others = new Set(all.filter((service) => !own.includes(service)).map(({ spec }) => spec.clusterIP));
    const found = Object.entries(destinations).filter(([to]) => !others.has(to.split(":")[0]));
    return [
      ...differences(Object.fromEntries(found), expectedDestinations(own, slices)),
      ...unused.map((chain) => `unused: ${chain}`),
    ];
  }

  async #wrongNames(own: readonly Service[]): Promise<string[]> {
    const wanted = new Map(own.map(({ metadata, spec }) => [metadata.name as string, spec.clusterIP as string]));
    const checked = [...this.#names].map(async (name) => {
      const [answer] = await this.#machine.namespace.request({
        ...({ op: "resolve", server: `${nodeAddress}:10053`, host: `${name}.default.svc.cluster.local` } as const),
      });
      const want = wanted.get(name) ?? "ENOTFOUND";
      return answer === want ? [] : [`${name} resolves to ${answer}, not ${want}`];
    });
    return (await Promise.all(checked)).flat();
  }

  async #wrongAddresses(own: readonly Service[]): Promise<string[]> {
    const balanced = own.filter(({ spec }) => spec.type === "LoadBalancer");
    const given = balanced.map(({ status }) => status?.loadBalancer?.ingress?.[0]?.ip);
    const links = await this.#machine.namespace.ip("address show dev eth0");
    const held = [...links.matchAll(/inet (192\.168\.77\.5\d)\/32/g)].map(([, ip]) => ip);
    const [is, want] = [held.toSorted().join(), given.toSorted().join()];
    return [
      ...balanced.flatMap(({ metadata, status }) => (status?.loadBalancer?.ingress ? [] : [`${metadata.name} has no address`])),
      ...(new Set(given).size === given.length ? [] : [`an address belongs to two Services: ${want}`]),
      ...(is === want ? [] : [`the node has the addresses ${is}, not ${want}`]),
    ];
  }

  async #wrongVolumes(): Promise<string[]> {
    const claims = (await this.#client.list<PersistentVolumeClaim>(persistentVolumeClaims, { namespace })).items;
    const volumes = (await this.#client.list<PersistentVolume>(persistentVolumes, {})).items.map(({ metadata }) => metadata.name);
    const wanted = claims.map(({ metadata }) => `pvc-${metadata.uid}`);
    const folders = this.#machine.volumeFolders();
    return [
      ...wanted.filter((name) => !volumes.includes(name)).map((name) => `there is no volume ${name}`),
      ...wanted.filter((name) => !folders.includes(name)).map((name) => `there is no folder ${name}`),
      ...volumes.filter((name) => !wanted.includes(name as string)).map((name) => `the volume ${name} has no claim`),
    ];
  }
}

const endpointsOf = (addresses: readonly string[]): EndpointSlice["endpoints"] =>
  addresses.map((address) => ({ addresses: [address], nodeName: "n2", conditions: { ready: true } }));

/** The state that is saved, and much of it changed. */
async function makeAndChange(t: TestContext, node: TestNode, save: () => void): Promise<void> {
  for (let i = 0; i < 20; i++) await node.put(`b${i}`, i % 10 === 0 ? "LoadBalancer" : "ClusterIP", [`10.77.1.${i + 1}`]);
  for (const name of ["c0", "c1"]) await node.claim(name);
  await node.becomesRight(t, "the state that is saved");
  save();
  for (let i = 0; i < 5; i++) await node.remove(`b${i}`);
  for (let i = 5; i < 10; i++) await node.move(`b${i}`, [`10.77.2.${i}`, `10.77.2.${i + 100}`]);
  // Some take the addresses that those had.
  for (let i = 0; i < 12; i++)
    await node.put(`x${i}`, i % 4 === 0 ? "LoadBalancer" : "ClusterIP", i % 3 === 0 ? [] : [`10.77.3.${i}`]);
  await node.claim("c2");
  await node.becomesRight(t, "the state that is lost");
}

for (const isCut of [true, false]) {
  const how = isCut ? "while the API server is away" : "below a living API server";
  test(`after etcd was restored ${how}, rules, names, addresses and volumes are as it says`, {
    skip: needsRoot || long,
  }, async (t) => {
    const etcd = await startRestorableEtcd(t);
    const { node, machine, relay, url } = await TestNode.start(t, { etcd: [etcd.endpoint] });
    await makeAndChange(t, node, () => etcd.save());
    if (isCut) relay.lead(undefined);
    await etcd.restore();
    const isRestored = async (): Promise<boolean> => {
      const names = (await node.client.list<Service>(services, { namespace })).items.map(({ metadata }) => metadata.name);
      return names.includes("b0") && !names.includes("x0");
    };
    await waitFor(isRestored, { timeoutMs: 60_000, what: "an API server that serves the restored state", retry: () => true });
    if (isCut) relay.lead(url);
    await node.becomesRight(t, "after the API server has the restored state");

    await node.move("b7", ["10.77.4.7"]);
    await node.put("after", "LoadBalancer", ["10.77.4.1"]);
    await node.claim("c3");
    await node.unclaim("c1");
    await node.becomesRight(t, "changes after the restore");
    assert.equal(machine.hasEnded, false);
  });
}

test("with a clock that is set back and forward by an hour, each change is right as soon as before, and no lease is stuck", {
  skip: needsRoot || long,
}, async (t) => {
  const shift = join(process.env["TMPDIR"] ?? "/tmp", `cox-clock-shift-${process.pid}`);
  const setClock = (seconds: number): void =>
    writeFileSync(shift, library === undefined ? String(seconds * 1_000) : `${seconds < 0 ? "-" : "+"}${Math.abs(seconds)}\n`);
  setClock(0);
  const byLibrary = {
    LD_PRELOAD: library ?? "",
    FAKETIME_TIMESTAMP_FILE: shift,
    FAKETIME_NO_CACHE: "1",
    DONT_FAKE_MONOTONIC: "1",
  };
  const byModule = { NODE_OPTIONS: `--require=${clockModule}`, COX_CLOCK_SHIFT: shift };
  const { node, machine } = await TestNode.start(t, {}, library === undefined ? byModule : byLibrary);
  await node.put("always", "LoadBalancer", ["10.77.1.1"]);
  await node.becomesRight(t, "start");
  const renewedAt = async (name: string, where: string): Promise<number> => {
    const lease = await node.client.get<{ metadata: object; spec: { renewTime: string; holderIdentity: string } }>(leases, {
      ...{ namespace: where, name },
    });
    return lease.spec.holderIdentity === "" ? Number.NaN : Date.parse(lease.spec.renewTime) - Date.now();
  };
  for (const [index, seconds] of [-3_600, 3_600, 0, -86_400].entries()) {
    await t.test(`${seconds} s`, async (t) => {
      setClock(seconds);
      // The process has noticed it: its leases say so, and are renewed.
      for (const [name, where] of [
        ["coxswain-services", "kube-system"],
        ["address-192-168-77-50", "coxswain-load-balancers"],
      ] as const)
        await waitFor(async () => Math.abs((await renewedAt(name, where)) - seconds * 1_000) < 30_000, {
          what: `a renewal of ${name}`,
          retry: isNotFound,
        });
      await node.put(`s${index}`, "LoadBalancer", [`10.77.1.${index + 2}`]);
      await node.put(`t${index}`, "ClusterIP", [`10.77.2.${index + 2}`]);
      await node.claim(`c${index}`);
      await node.becomesRight(t, "created");
      await node.move("always", [`10.77.3.${index + 2}`]);
      await node.remove(`t${index}`);
      await node.unclaim(`c${index}`);
      await node.becomesRight(t, "changed and deleted");
    });
  }
  assert.equal(machine.hasEnded, false);
});

/**
 * The real process coxswain-services in a network namespace, killed by SIGKILL while it writes rules, creates a volume, takes
 * an address or renews its lease. Kernel, disk and answers must then agree with the objects; rules are compared with those of a
 * process in a separate namespace that was never killed.
 */
import assert from "node:assert/strict";
import { utimesSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
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
import { waitFor } from "@coxswain/apimachinery/testing/wait-for";
import { selectedNode, storageProvisioner } from "@coxswain/apimachinery/volumes/annotations";
import { provisioner } from "@coxswain/cluster-services/local-volumes/names";
import { parts } from "@coxswain/cluster-services/parts";
import { type Namespace, needsRoot } from "@coxswain/cluster-services/testing/namespaces";
import { rulesOf } from "@coxswain/cluster-services/testing/node-network";
import { KillableMachine, type Moment } from "./killed-process.ts";
import { addNodeLink, nodeAddress, startOneNodeCluster } from "./nodes.ts";

const long = process.env["COX_TEST_LONG"] === undefined && "long: only with ./cox test --long";
const domain = "default.svc.cluster.local";

/** Where a request of the process stands when it is killed: the server has not answered it yet. */
interface RequestMoment {
  readonly method: "POST" | "PUT";
  readonly path: RegExp;
}

const moments: readonly (Moment | RequestMoment)[] = [
  ...[1, 2].flatMap((call): Moment[] => [
    { program: "iptables-restore", call, when: "before" },
    { program: "iptables-restore", call, when: "after" },
  ]),
  ...[1, 3, 6].flatMap((call): Moment[] => [
    { program: "ip", call, when: "before" },
    { program: "ip", call, when: "after" },
  ]),
  { method: "POST", path: /\/persistentvolumes(?:\?|$)/ },
  { method: "PUT", path: /\/leases\/coxswain-services/ },
  { method: "PUT", path: /\/leases\/address-/ },
];

const nameOf = (moment: Moment | RequestMoment): string =>
  "program" in moment
    ? `${moment.when} call ${moment.call} of ${moment.program}`
    : `during ${moment.method} ${moment.path.source}`;

test("a process that is killed leaves nothing that the next one does not put right", { skip: needsRoot || long }, async (t) => {
  const chosen = parts.filter(({ name, onByDefault }) => onByDefault && name !== "metrics-api");
  const { folder, cluster } = await startOneNodeCluster(t, "killed", chosen);
  const { client } = cluster;

  const machine = await KillableMachine.make(t, join(folder, "n1"), join(folder, "api"), [
    "--disable=metrics-api",
    "--load-balancer-pool=192.168.77.50-192.168.77.59",
  ]);
  const model = await KillableMachine.make(t, join(folder, "model"), join(folder, "api"), ["--disable=*", "--enable=services"]);
  for (const { namespace } of [machine, model]) await addNodeLink(namespace);

  const put = async (name: string, type: "ClusterIP" | "LoadBalancer", endpoints: readonly string[]): Promise<void> => {
    const metadata = { namespace: "default", name };
    const ports = [{ name: "http", port: 80, protocol: "TCP" as const }];
    await client.create<Service>(services, { metadata, spec: { type, ports } });
    await client.create<EndpointSlice>(endpointSlices, {
      metadata: { ...metadata, labels: { "kubernetes.io/service-name": name } },
      addressType: "IPv4",
      endpoints: endpoints.map((address) => ({ addresses: [address], nodeName: "n1", conditions: { ready: true } })),
      ports: [{ name: "http", port: 8080, protocol: "TCP" }],
    });
  };
  const remove = async (name: string): Promise<void> => {
    await client.delete(services, { namespace: "default", name });
    await client.delete(endpointSlices, { namespace: "default", name });
  };
  const claim = async (name: string): Promise<PersistentVolumeClaim> => {
    const annotations = {
      [storageProvisioner]: provisioner,
      [selectedNode]: "n1",
    };
    return client.create<PersistentVolumeClaim>(persistentVolumeClaims, {
      metadata: { namespace: "default", name, annotations },
      spec: { accessModes: ["ReadWriteOnce"], storageClassName: "local", resources: { requests: { storage: "1Mi" } } },
    });
  };

  const servicesRules = async (namespace: Namespace): Promise<[string, string[]][]> =>
    Object.entries(await rulesOf(namespace))
      .filter(([chain]) => !/COX-(NET|LB)-/.test(chain))
      .map(([chain, rules]) => [chain, rules.filter((rule) => !/COX-(NET|LB)-/.test(rule))]);
  /** Everything that is wrong now. */
  const wrong = async (): Promise<unknown> => {
    const [are, should] = await Promise.all([machine, model].map(({ namespace }) => servicesRules(namespace)));
    const all = (await client.list<Service>(services, { namespace: "default" })).items;
    const pool = all.flatMap(({ spec, status }) =>
      spec.type === "LoadBalancer" ? (status?.loadBalancer?.ingress?.map(({ ip }) => ip ?? "") ?? ["no address"]) : [],
    );
    const held = [...(await machine.namespace.ip("address show dev eth0")).matchAll(/inet (192\.168\.77\.5\d)\/32/g)].map(
      ([, ip]) => ip,
    );
    const rejected = [
      ...(await machine.namespace.run("iptables-save", ["-t", "filter"])).matchAll(/-A COX-LB-INPUT -d ([\d.]+)\/32/g),
    ];
    const volumes = (await client.list<PersistentVolume>(persistentVolumes, {})).items.map(({ metadata }) => metadata.name ?? "");
    const claims = (await client.list<PersistentVolumeClaim>(persistentVolumeClaims, {})).items;
    const answers = await Promise.all(
      ["here", ...all.map(({ metadata }) => metadata.name)].map(async (name) => {
        const server = `${nodeAddress}:10053`;
        const [answer] = await machine.namespace.request({ op: "resolve", server, host: `${name}.${domain}` });
        return answer === (all.find(({ metadata }) => metadata.name === name)?.spec.clusterIP ?? "ENOTFOUND")
          ? []
          : [`${name}: ${answer}`];
      }),
    );
    const checks: [string, unknown, unknown][] = [
      ["rules", are, should],
      ["addresses", held.toSorted(), pool.toSorted()],
      ["rules of addresses", rejected.map(([, ip]) => ip).toSorted(), pool.toSorted()],
      ["volumes", volumes.toSorted(), claims.map(({ metadata }) => `pvc-${metadata.uid}`).toSorted()],
      ["folders", machine.volumeFolders(), volumes.toSorted()],
      ["answers", answers.flat(), []],
    ];
    return checks.find(([, is, want]) => JSON.stringify(is) !== JSON.stringify(want));
  };
  const becomesRight = async (): Promise<void> => {
    let last: unknown;
    const isRight = async (): Promise<boolean> => {
      last = await wrong();
      return last === undefined;
    };
    await waitFor(isRight, { timeoutMs: 60_000 }).catch((cause: unknown) => {
      throw new Error(`${JSON.stringify(last, undefined, 1)}\n${machine.output.slice(-4_000)}`, { cause });
    });
  };
  /** The claim that is requested while the process is killed is deleted before the next one starts. */
  const ageFolders = (): void => {
    for (const name of machine.volumeFolders()) utimesSync(join(machine.volumes, name), 1, 1);
  };

  model.start();
  machine.start();
  await put("web", "ClusterIP", ["10.77.0.11", "10.77.0.12"]);
  await put("lb", "LoadBalancer", ["10.77.0.11"]);
  await claim("first");
  await becomesRight();
  const leaseOf = async (name: string, namespace: string) =>
    (
      await client.get<{ metadata: object; spec: { leaseTransitions?: number; acquireTime?: string } }>(leases, {
        name,
        namespace,
      })
    ).spec;
  const before = await leaseOf("coxswain-services", "kube-system");

  for (const [round, moment] of moments.entries()) {
    await t.test(nameOf(moment), async (t) => {
      if ("program" in moment) machine.arm(moment);
      const fault = "method" in moment ? cluster.faults.inject({ ...moment, delay: "1h", by: "coxswain-services" }) : undefined;
      await put(`r${round}`, "ClusterIP", [`10.77.0.${20 + round}`]);
      await put(`lb${round}`, "LoadBalancer", [`10.77.0.${20 + round}`]);
      const gone = await claim(`gone${round}`);
      if (fault !== undefined) {
        await waitFor(() => fault.hits > 0);
        fault.remove();
        await machine.kill();
      }
      await waitFor(() => machine.hasEnded);
      // Meanwhile the cluster changes.
      await client.delete(persistentVolumeClaims, { namespace: "default", name: `gone${round}` });
      await client.delete(persistentVolumes, { name: `pvc-${gone.metadata.uid}` }).catch((err: unknown) => {
        if (!isNotFound(err)) throw err;
      });
      await remove(`lb${round}`);
      await put(`later${round}`, "ClusterIP", [`10.77.0.${120 + round}`]);
      if (round > 0) await remove(`r${round - 1}`);
      ageFolders();
      const started = performance.now();
      machine.start();
      await becomesRight();
      t.diagnostic(`right ${Math.round(performance.now() - started)} ms after its start`);
    });
  }

  await t.test("it went on with its leases, and did not wait for them to expire", async () => {
    assert.equal((await leaseOf("coxswain-services", "kube-system")).leaseTransitions, before.leaseTransitions);
    assert.equal((await leaseOf("address-192-168-77-50", "coxswain-load-balancers")).leaseTransitions ?? 0, 0);
  });

  await t.test("a part that is off leaves nothing on the machine, and the others work", async () => {
    await machine.kill();
    const off = ["services", "load-balancer-addresses", "pod-network"];
    machine.start([`--disable=metrics-api,${off.join()}`]);
    await waitFor(async () => !(await machine.namespace.run("iptables-save", [])).includes("COX-"));
    await waitFor(async () => {
      const [answer] = await machine.namespace.request({ op: "resolve", server: `${nodeAddress}:10053`, host: `web.${domain}` });
      return answer?.startsWith("10.") === true;
    });
    assert.doesNotMatch(await machine.namespace.ip("route show"), /proto 77/);
    await machine.stop();
  });
});

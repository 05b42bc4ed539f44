/**
 * The real process coxswain-services with all parts, under a modest load and constant changes of the cluster: its memory, files and
 * sockets do not grow. COX_TEST_MINUTES is the duration, the first quarter of which is not measured.
 */
import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { type TestContext, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import type { Client } from "@coxswain/apimachinery/client/client";
import type { Node, PersistentVolumeClaim, Secret, Service } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import type { EndpointSlice } from "@coxswain/apimachinery/objects/schema/kinds/discovery/v1";
import type { Ingress } from "@coxswain/apimachinery/objects/schema/kinds/networking/v1";
import {
  endpointSlices,
  ingresses,
  nodes,
  persistentVolumeClaims,
  secrets,
  services,
} from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { type KeyPair, newCa, newCertificate } from "@coxswain/apimachinery/serving/certificates";
import { selectedNode, storageProvisioner } from "@coxswain/apimachinery/volumes/annotations";
import { provisioner } from "@coxswain/cluster-services/local-volumes/names";
import { parts } from "@coxswain/cluster-services/parts";
import type { LoadTargets } from "@coxswain/cluster-services/testing/modest-load";
import { connectPair, type Namespace, needsRoot, newNamespace } from "@coxswain/cluster-services/testing/namespaces";
import { KillableMachine } from "./killed-process.ts";
import { addNodeLink, nodeAddress, startOneNodeCluster } from "./nodes.ts";

const long = process.env["COX_TEST_LONG"] === undefined && "long: only with ./cox test --long";
const minutes = Number(process.env["COX_TEST_MINUTES"] ?? "20");
/** A shorter run sees connections and caches fill: it reports how much, and only checks the requests. */
const fewestMinutes = 10;
const podAddress = "10.77.0.11";
const namespace = "default";
const stepMs = 2_000;
const stepsPerAbsence = 150;
const load = join(import.meta.dirname, "../../packages/cluster-services/src/testing/modest-load.ts");
const watch = join(import.meta.dirname, "leak-watch.mjs");

/** Objects of each kind that exist at the same time; each step makes one and deletes the oldest. */
const kept = { services: 60, claims: 5, ingresses: 6 };

const spec = (n: number): Service["spec"] => {
  const ports = [{ name: "http", port: 80, protocol: "TCP" as const, targetPort: 8080 }];
  if (n % 5 === 1) return { type: "NodePort", ports };
  if (n % 5 === 2) return { type: "LoadBalancer", ports, sessionAffinity: "ClientIP" };
  if (n % 5 === 3) return { clusterIP: "None", ports };
  if (n % 5 === 4) return { ports: [{ name: "http", port: 80, protocol: "UDP" as const, targetPort: 8080 }] };
  return { ports };
};

/** Changes the cluster steadily. */
class Churn {
  readonly #client: Client;
  readonly #certificates: readonly KeyPair[];
  readonly #live = new Map<number, Service>();
  #step = 0;

  constructor(client: Client, certificates: readonly KeyPair[]) {
    this.#client = client;
    this.#certificates = certificates;
  }

  async step(): Promise<void> {
    const n = this.#step++;
    await this.#addService(n);
    if (n >= kept.services) await this.#removeService(n - kept.services);
    const addresses = Array.from({ length: 20 + (n % 30) }, (_, i) => `10.77.1.${((n + i) % 250) + 1}`);
    await this.#client.patch(
      endpointSlices,
      { namespace, name: "large" },
      { type: "merge", body: { endpoints: endpointsOf(addresses) } },
    );
    if (n % 5 === 0) await this.#changeClaims(n / 5);
    if (n % 5 === 1) await this.#changeIngresses((n - 1) / 5);
    if (n % 5 === 2)
      await this.#client.patch(nodes, { name: "n1" }, { type: "merge", body: { metadata: { labels: { step: `${n}` } } } });
  }

  /** @returns what the load may ask for: not the newest, nor what goes next */
  targets(): LoadTargets {
    const now = [...this.#live].slice(5, -5);
    const of = (...kinds: number[]): Service[] => now.filter(([n]) => kinds.includes(n % 5)).map(([, service]) => service);
    const ips = (list: Service[]): string[] => list.map((service) => service.spec.clusterIP as string);
    const firstIngress = Math.max(0, Math.ceil(this.#step / 5) - kept.ingresses + 2);
    return {
      tcp: ips(of(0, 1, 2)),
      udp: ips(of(4)),
      names: of(0, 1, 2, 3).map(({ metadata }) => metadata.name as string),
      hosts: Array.from({ length: 3 }, (_, i) => `i${firstIngress + i}.example.com`),
    };
  }

  async #addService(n: number): Promise<void> {
    const metadata = { namespace, name: `s${n}` };
    this.#live.set(n, await this.#client.create<Service>(services, { metadata, spec: spec(n) }));
    await this.#client.create<EndpointSlice>(endpointSlices, sliceOf(`s${n}`, [podAddress], n % 5 === 4 ? "UDP" : "TCP"));
  }

  async #removeService(n: number): Promise<void> {
    this.#live.delete(n);
    await this.#client.delete(services, { namespace, name: `s${n}` });
    await this.#client.delete(endpointSlices, { namespace, name: `s${n}` });
  }

  async #changeClaims(n: number): Promise<void> {
    await this.#client.create<PersistentVolumeClaim>(persistentVolumeClaims, {
      metadata: { namespace, name: `c${n}`, annotations: { [storageProvisioner]: provisioner, [selectedNode]: "n1" } },
      spec: { accessModes: ["ReadWriteOnce"], storageClassName: "local", resources: { requests: { storage: "1Mi" } } },
    });
    if (n >= kept.claims) await this.#client.delete(persistentVolumeClaims, { namespace, name: `c${n - kept.claims}` });
  }

  async #changeIngresses(n: number): Promise<void> {
    const { certPem, keyPem } = this.#certificates[n % this.#certificates.length] as KeyPair;
    const [metadata, host] = [{ namespace, name: `i${n}` }, `i${n}.example.com`];
    const data = { "tls.crt": Buffer.from(certPem).toString("base64"), "tls.key": Buffer.from(keyPem).toString("base64") };
    await this.#client.create<Secret>(secrets, { metadata, type: "kubernetes.io/tls", data });
    const backend = { service: { name: "web", port: { number: 80 } } };
    await this.#client.create<Ingress>(ingresses, {
      metadata,
      spec: {
        tls: [{ hosts: [host], secretName: `i${n}` }],
        rules: [{ host, http: { paths: [{ path: "/", pathType: "Prefix", backend }] } }],
      },
    });
    if (n < kept.ingresses) return;
    await this.#client.delete(ingresses, { namespace, name: `i${n - kept.ingresses}` });
    await this.#client.delete(secrets, { namespace, name: `i${n - kept.ingresses}` });
  }
}

const endpointsOf = (addresses: readonly string[]): EndpointSlice["endpoints"] =>
  addresses.map((address) => ({
    addresses: [address],
    nodeName: address === podAddress ? "n1" : "n2",
    conditions: { ready: true },
  }));

const sliceOf = (name: string, addresses: readonly string[], protocol: "TCP" | "UDP" = "TCP"): EndpointSlice => ({
  metadata: { namespace, name, labels: { "kubernetes.io/service-name": name } },
  addressType: "IPv4",
  endpoints: endpointsOf(addresses),
  ports: [{ name: "http", port: 8080, protocol }],
});

/** What a process and its kernel hold. */
async function stateOf(pid: number, network: Namespace): Promise<Record<string, number>> {
  const status = readFileSync(`/proc/${pid}/status`, "utf8");
  const kilobytes = (field: string): number => Number(new RegExp(`^${field}:\\s+(\\d+)`, "m").exec(status)?.[1] ?? 0);
  const stat = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1]?.split(" ") ?? [];
  const rules = (await network.run("iptables-save", [])).split("\n");
  return {
    rssKb: kilobytes("VmRSS"),
    threads: kilobytes("Threads"),
    files: readdirSync(`/proc/${pid}/fd`).length,
    children: readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").split(" ").filter(Boolean).length,
    chains: rules.filter((line) => line.startsWith(":COX-")).length,
    rules: rules.filter((line) => line.startsWith("-A COX-")).length,
    connections: Number(await network.run("cat", ["/proc/sys/net/netfilter/nf_conntrack_count"])),
    cpuMs: [11, 12, 13, 14].reduce((sum, index) => sum + Number(stat[index]), 0) * 10,
  };
}

function startLoad(t: TestContext, inside: Namespace, ...args: string[]): ChildProcess {
  const child = spawn("nsenter", [`--net=/proc/${inside.pid}/ns/net`, process.execPath, "-C", "cox-source", load, ...args], {
    stdio: ["pipe", "pipe", "inherit"],
  });
  t.after(() => child.kill("SIGKILL"));
  return child;
}

/** What grows with time, and by how much it varies: the line that fits best, and the deviation from it. */
function trendOf(points: readonly (readonly [minute: number, value: number])[]) {
  const meanOf = (values: readonly number[]): number => values.reduce((sum, value) => sum + value, 0) / values.length;
  const [meanMinute, mean] = [meanOf(points.map(([minute]) => minute)), meanOf(points.map(([, value]) => value))];
  const slope =
    points.reduce((sum, [minute, value]) => sum + (minute - meanMinute) * (value - mean), 0) /
    points.reduce((sum, [minute]) => sum + (minute - meanMinute) ** 2, 0);
  const noise = Math.sqrt(meanOf(points.map(([minute, value]) => (value - mean - slope * (minute - meanMinute)) ** 2)));
  return { mean, noise, growth: slope * ((points.at(-1)?.[0] ?? 0) - (points[0]?.[0] ?? 0)) };
}

test("memory, handles and rules do not grow", { skip: needsRoot || long }, async (t) => {
  const { folder, machine, churn, node, relay, url } = await startNode(t);
  const watched = join(folder, "watched");
  machine.start(
    [
      ...["--enable=api-proxy,ingress", "--load-balancer-pool=192.168.77.50-192.168.77.150", "--kubelet-insecure-tls"],
      `--api-proxy-servers-file=${join(folder, "servers")}`,
    ],
    { NODE_OPTIONS: `--import=${watch}`, COX_LEAK_FILE: watched },
  );
  let load = { asked: 0, failed: 0 };
  let atStart = load;
  createInterface({ input: node.stdout as NodeJS.ReadableStream }).on("line", (line) => {
    load = JSON.parse(line) as typeof load;
  });
  const samples: (readonly [number, Record<string, number>])[] = [];
  // What is kept exists before the first look, or a run of a few minutes would only see it grow.
  for (let n = 0; n < kept.services; n++) await churn.step();
  const begun = performance.now();
  const minute = (): number => (performance.now() - begun) / 60_000;
  for (let n = 0; minute() < minutes; n++) {
    await churn.step();
    if (n % stepsPerAbsence === stepsPerAbsence - 1) relay.lead(undefined);
    if (n % stepsPerAbsence === 4) relay.lead(url); // 10 s without an API server every 5 minutes
    node.stdin?.write(`${JSON.stringify(churn.targets())}\n`);
    if (minute() < minutes / 4) atStart = load;
    else if (n % 5 === 0) samples.push([minute(), await stateOf(machine.pid, machine.namespace)]);
    await sleep(Math.max(0, begun + (n + 1) * stepMs - performance.now())); // the rate of the changes
  }
  const [asked, failed] = [load.asked - atStart.asked, load.failed - atStart.failed];
  assert.ok(failed < asked / 10, `${failed} of ${asked} requests failed after the start`);
  const heap = readFileSync(watched, "utf8").trim().split("\n");
  const heapKb = heap.map((line, i) => [i, Math.round((JSON.parse(line) as { heapUsed: number }).heapUsed / 1024)] as const);
  const values = Object.keys(samples[0]?.[1] ?? {}).map(
    (name) => [name, samples.map(([at, state]) => [at, state[name] ?? 0] as const)] as const,
  );
  for (const [name, points] of [...values, ["heapKb", heapKb.slice(Math.ceil(heapKb.length / 4))] as const]) {
    const { mean, noise, growth } = trendOf(points);
    t.diagnostic(`${name}: ${mean.toFixed(1)} in the mean, varies by ${noise.toFixed(1)}, grows by ${growth.toFixed(1)}`);
    if (name === "cpuMs" || minutes < fewestMinutes) continue;
    // The caches of events, which are bounded, fill slowly, and code is compiled.
    const allowed = Math.max(2 * noise, mean / (name === "heapKb" ? 10 : 20));
    assert.ok(growth <= allowed, `${name} grows by ${growth.toFixed(1)}, and varies by ${noise.toFixed(1)}`);
  }
});

async function startNode(t: TestContext) {
  const { folder, cluster, relay, kubeconfig } = await startOneNodeCluster(t, "leak", parts, {
    apiServerFlags: ["--endpoint-reconciler-type=none"],
  });
  const { client } = cluster;
  const machine = await KillableMachine.make(t, join(folder, "n1"), join(folder, "api"), []);
  const pod = await newNamespace(t);
  await machine.namespace.request({ op: "set", file: "/proc/sys/net/ipv4/ip_forward", value: "1" });
  await connectPair(machine.namespace, "pod0", pod, "eth0");
  await pod.ip(`address add ${podAddress}/24 dev eth0`);
  await pod.ip("route add default via 10.77.0.254");
  await machine.namespace.ip("address add 10.77.0.254/32 dev pod0");
  await machine.namespace.ip(`route add ${podAddress}/32 dev pod0`);
  await addNodeLink(machine.namespace);
  await machine.namespace.ip("route add default via 192.168.77.254 dev eth0");
  const n1 = await client.get<Node>(nodes, { name: "n1" });
  const status = { ...n1.status, daemonEndpoints: { kubeletEndpoint: { Port: 10_250 } } };
  await client.update<Node>(nodes, { ...n1, status }, { subresource: "status" });
  await client.create<Service>(services, { metadata: { namespace, name: "web" }, spec: spec(0) });
  await client.create<EndpointSlice>(endpointSlices, sliceOf("web", [podAddress]));
  await client.create<Service>(services, { metadata: { namespace, name: "large" }, spec: spec(0) });
  await client.create<EndpointSlice>(endpointSlices, sliceOf("large", [podAddress]));
  const ca = await newCa({ commonName: "authority" });
  const certificates = await Promise.all(
    Array.from({ length: 5 }, (_, i) => newCertificate({ commonName: `certificate ${i}`, usages: ["server"], ca })),
  );
  const kubelet = await newCertificate({ commonName: "n1", usages: ["server"], ca });
  writeFileSync(join(folder, "kubelet.crt"), kubelet.certPem);
  writeFileSync(join(folder, "kubelet.key"), kubelet.keyPem, { mode: 0o600 });
  writeFileSync(join(folder, "servers"), "127.0.0.1:6443\n");
  startLoad(t, pod, "pod");
  const token = JSON.parse(kubeconfig).users[0].user.token as string;
  const node = startLoad(t, machine.namespace, "node", nodeAddress, token, folder);
  return { folder, client, machine, churn: new Churn(client, certificates), node, relay, url: (await cluster.listen()).url };
}

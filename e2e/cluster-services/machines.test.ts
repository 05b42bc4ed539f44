/**
 * The real process coxswain-services on machines that are network namespaces: two on one segment, which route
 * to each other's pods, and a third behind a router, whose pods are reached by VXLAN. CNI plugins create the pods with the
 * configuration that the processes write.
 */
import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import type { Event, Service, ServiceSpec } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import type { EndpointSlice } from "@coxswain/apimachinery/objects/schema/kinds/discovery/v1";
import { endpointSlices, events, nodes, services } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { waitFor } from "@coxswain/apimachinery/testing/wait-for";
import { parts } from "@coxswain/cluster-services/parts";
import { type Machine, newSite, type Pod, type Site } from "@coxswain/cluster-services/testing/machines";
import { silenceMs } from "@coxswain/cluster-services/testing/namespace-agent";
import { needsRoot } from "@coxswain/cluster-services/testing/namespaces";
import { KillableMachine } from "./killed-process.ts";
import { type ServicesCluster, startServicesCluster } from "./nodes.ts";

const long = process.env["COX_TEST_LONG"] === undefined && "long: only with ./cox test --long";
const chosen = ["pod-network", "services", "dns"];
const routerAddress = "192.168.77.254";
const port = 8080;
/** Of a server whose answer fills many packets of the largest size. */
const longName = "x".repeat(200_000);

interface TestNode {
  readonly machine: Machine;
  readonly process: KillableMachine;
  readonly address: string;
}

/** A node with its process running. */
async function addNode(
  t: TestContext,
  { site, cluster }: { site: Site; cluster: ServicesCluster },
  name: string,
  where: { readonly segment: "a" | "b"; readonly number: number; readonly podCidr: string },
): Promise<TestNode> {
  const made = await site.addMachine(name, where.segment, where.number);
  const address = `192.168.${where.segment === "a" ? 77 : 78}.${where.number}`;
  const { folder } = cluster;
  const flags = ["--disable=*", `--enable=${chosen.join()}`];
  const process = await KillableMachine.make(t, join(folder, name), join(folder, "api"), flags, {
    nodeName: name,
    namespace: made.namespace,
  });
  const configPath = join(process.cniFolder, "10-coxswain.conflist");
  const machine = { ...made, settings: { ...made.settings, configPath } };
  await cluster.addNode(name, where.podCidr, address);
  process.start();
  await waitFor((seen) => existsSync(configPath) || seen(process.output.slice(-4_000)) === undefined, {
    what: "the CNI configuration",
  });
  return { machine, process, address };
}

test("nodes on one segment and behind a router, as they come, change, are killed and go", {
  skip: needsRoot || long,
}, async (t) => {
  const site = await newSite(t);
  const cluster = await startServicesCluster(
    t,
    "machines",
    parts.filter(({ name }) => chosen.includes(name)),
  );
  const { client } = cluster.cluster;
  const all = { site, cluster };
  const n1 = await addNode(t, all, "n1", { segment: "a", number: 1, podCidr: "10.77.1.0/24" });
  const n2 = await addNode(t, all, "n2", { segment: "a", number: 2, podCidr: "10.77.2.0/24" });
  const [p1, p2] = await Promise.all([site.addPod(n1.machine, "p1"), site.addPod(n2.machine, "p2")]);
  await site.router.request({ op: "listen", name: "router", port });

  const ip = (pod: Pod): string => pod.addresses[0] as string;
  const ask = async (from: Pod | Machine | Pick<Pod, "namespace">, host: string, to = port): Promise<string> =>
    (await from.namespace.ask({ protocol: "tcp", host, port: to, timeoutMs: silenceMs }))[0] as string;
  const becomes = async (want: string | RegExp, get: () => Promise<string>): Promise<void> => {
    const begun = performance.now();
    await waitFor(async (seen) => (typeof want === "string" ? seen(await get()) === want : want.test(seen(await get()))), {
      what: `${want}`,
    });
    t.diagnostic(`${want} after ${Math.round(performance.now() - begun)} ms`);
  };
  const routes = (node: TestNode): Promise<string> => node.machine.namespace.ip("route show proto 77");
  const put = async (
    name: string,
    spec: Partial<ServiceSpec>,
    endpoints: readonly (readonly [string, string])[],
  ): Promise<string> => {
    const metadata = { namespace: "default", name };
    const ports = [{ name: "http", port: 80, protocol: "TCP" as const, ...(spec.ports?.[0] ?? {}) }];
    const made = await client.create<Service>(services, { metadata, spec: { ...spec, ports } });
    await client.create<EndpointSlice>(endpointSlices, {
      metadata: { ...metadata, labels: { "kubernetes.io/service-name": name } },
      ...{ addressType: "IPv4", endpoints: endpointsOf(endpoints), ports: [{ name: "http", port, protocol: "TCP" }] },
    });
    return made.spec.clusterIP as string;
  };
  const move = (name: string, endpoints: readonly (readonly [string, string])[]): Promise<unknown> =>
    client.patch(endpointSlices, { namespace: "default", name }, { type: "merge", body: { endpoints: endpointsOf(endpoints) } });
  let web = "";

  await t.test("on one segment each node is the gateway to its pods, who see each other's addresses", async () => {
    await becomes(/10\.77\.2\.0\/24 via 192\.168\.77\.2 dev eth0/, () => routes(n1));
    await becomes(/10\.77\.1\.0\/24 via 192\.168\.77\.1 dev eth0/, () => routes(n2));
    assert.equal(await ask(p1, ip(p2)), `p2 ${ip(p1)}`);
    assert.equal(await ask(p2, ip(p1)), `p1 ${ip(p2)}`);
    assert.equal(await ask(n1.machine, ip(p2)), `p2 ${n1.address}`);
    await assert.rejects(n1.machine.namespace.ip("link show cox0-vx"), /does not exist/);
  });

  await t.test("traffic that leaves the cluster is masqueraded, and no other", async () => {
    assert.equal(await ask(p1, routerAddress), `router ${n1.address}`);
    assert.equal(await ask(p2, routerAddress), `router ${n2.address}`);
    await n2.machine.namespace.request({ op: "listen", name: "n2", port: 8081 });
    assert.equal(await ask(p1, n2.address, 8081), `n2 ${n1.address}`, "a node's address is no pod's");
  });

  await t.test("a Service whose endpoint is on the other node", async () => {
    web = await put("web", {}, [[ip(p2), "n2"]]);
    await becomes(`p2 ${ip(p1)}`, () => ask(p1, web, 80));
    await becomes(`p2 ${n1.address}`, () => ask(n1.machine, web, 80));
    await becomes(/^p2 /, () => ask(p2, web, 80));
  });

  await t.test(
    "node ports: policy Cluster leads to the other node, policy Local keeps the client's address and this node's endpoints",
    async () => {
      await put("cluster", { type: "NodePort", ports: [{ port: 80, nodePort: 30080 }] }, [[ip(p2), "n2"]]);
      await put("local", { type: "NodePort", externalTrafficPolicy: "Local", ports: [{ port: 80, nodePort: 30090 }] }, [
        [ip(p2), "n2"],
      ]);
      await becomes(`p2 ${n1.address}`, () => ask({ namespace: site.router }, n1.address, 30080));
      await becomes(`p2 ${routerAddress}`, () => ask({ namespace: site.router }, n2.address, 30090));
      await becomes("timeout", () => ask({ namespace: site.router }, n1.address, 30090));
    },
  );

  await t.test("names, by the node's server and by the other node's, for pods only", async () => {
    const dns = (await client.get<Service>(services, { namespace: "kube-system", name: "kube-dns" })).spec.clusterIP;
    const resolve = async (from: Pick<Pod, "namespace">, server: string): Promise<string> =>
      (await from.namespace.request({ op: "resolve", server, host: "web.default.svc.cluster.local" }))[0] as string;
    await becomes(web, () => resolve(p1, `${dns}:53`));
    await becomes(web, () => resolve(p2, `${dns}:53`));
    assert.equal(await resolve(p1, `${n2.address}:10053`), web);
    assert.equal(await resolve(p2, `${n1.address}:10053`), web);
    assert.match(await resolve({ namespace: site.router }, `${n1.address}:10053`), /^E/);
  });

  const n3 = await addNode(t, all, "n3", { segment: "b", number: 3, podCidr: "10.77.3.0/24" });
  const p3 = await site.addPod(n3.machine, "p3");

  await t.test("a node is added behind a router: its pods are reached in VXLAN, by address and through Services", async () => {
    for (const node of [n1, n2]) await becomes(/10\.77\.3\.0\/24 via 10\.77\.3\.0 dev cox0-vx onlink/, () => routes(node));
    assert.match(await routes(n1), /10\.77\.2\.0\/24 via 192\.168\.77\.2 dev eth0/, "the neighbour stays one");
    await becomes(`p3 ${ip(p1)}`, () => ask(p1, ip(p3)));
    await becomes(`p2 ${ip(p3)}`, () => ask(p3, ip(p2)));
    assert.equal(await ask(p3, "192.168.78.254"), `router ${n3.address}`);
    await becomes(`p2 ${ip(p3)}`, () => ask(p3, web, 80));
    await move("cluster", [[ip(p3), "n3"]]);
    await becomes(/^p3 10\.77\.1\.0$/, () => ask({ namespace: site.router }, n1.address, 30080));
  });

  await t.test("packets of the largest size pass in both directions, none in fragments", async () => {
    for (const [from, to] of [
      [p1, p2],
      [p2, p3],
      [p3, p1],
    ] as const) {
      const [link] = JSON.parse(await from.namespace.ip("-j link show eth0")) as { mtu: number }[];
      assert.equal(link?.mtu, 1450);
      await to.namespace.request({ op: "listen", name: longName, port: 8082 });
      assert.equal(await ask(from, ip(to), 8082), `${longName} ${ip(from)}`);
    }
    for (const { machine } of [n1, n2, n3]) assert.equal(await fragments(machine), 0, machine.name);
  });

  await t.test(
    "while the process of a node is killed connections work, and the next one puts right what has changed",
    async () => {
      await n2.process.kill();
      assert.equal(await ask(p1, ip(p2)), `p2 ${ip(p1)}`);
      assert.equal(await ask(p2, ip(p3)), `p3 ${ip(p2)}`);
      assert.match(await ask(p2, web, 80), /^p2 /);
      await move("web", [[ip(p3), "n3"]]);
      await becomes(`p3 ${ip(p1)}`, () => ask(p1, web, 80));
      assert.match(await ask(p2, web, 80), /^p2 /, "the rules of before");
      n2.process.start();
      await becomes(`p3 ${ip(p2)}`, () => ask(p2, web, 80));
      assert.equal(await ask(p1, ip(p2)), `p2 ${ip(p1)}`);
    },
  );

  await t.test("a node that gets another pod range while one is down is reached by all at the new one", async () => {
    await n2.process.kill();
    await client.delete(nodes, { name: "n3" });
    await cluster.addNode("n3", "10.77.9.0/24", n3.address);
    await becomes(/10\.77\.9\.0\/24 via 10\.77\.9\.0 dev cox0-vx onlink/, () => routes(n1));
    assert.doesNotMatch(await routes(n1), /10\.77\.3\./);
    assert.match(await routes(n2), /10\.77\.3\./, "its process is down");
    n2.process.start();
    await becomes(/10\.77\.9\.0\/24 via 10\.77\.9\.0 dev cox0-vx onlink/, () => routes(n2));
    assert.doesNotMatch(await routes(n2), /10\.77\.3\./);
    await becomes("10.77.9.0/24", async () => rangeIn(n3.machine.settings.configPath));
    const p4 = await site.addPod(n3.machine, "p4");
    assert.match(ip(p4), /^10\.77\.9\./);
    for (const pod of [p1, p2]) {
      await becomes(`p4 ${ip(pod)}`, () => ask(pod, ip(p4)));
      assert.match(await ask(p4, ip(pod)), new RegExp(` ${ip(p4)}$`));
    }
    const { items } = await client.list<Event>(events, {});
    assert.ok(items.some(({ reason, involvedObject }) => reason === "PodCIDRChanged" && involvedObject.name === "n3"));
  });

  await t.test("when a node is deleted its routes go, and the VXLAN interface with the last one", async () => {
    await client.delete(nodes, { name: "n3" });
    for (const node of [n1, n2]) await becomes(/^10\.77\.[12]\.0\/24 via \S+ dev eth0 \n$/, () => routes(node));
    for (const node of [n1, n2]) await assert.rejects(node.machine.namespace.ip("link show cox0-vx"), /does not exist/);
    assert.equal(await ask(p1, ip(p2)), `p2 ${ip(p1)}`);
  });
});

const endpointsOf = (endpoints: readonly (readonly [string, string])[]): EndpointSlice["endpoints"] =>
  endpoints.map(([address, nodeName]) => ({ addresses: [address], nodeName, conditions: { ready: true } }));

const rangeIn = (file: string): string =>
  (JSON.parse(readFileSync(file, "utf8")) as { plugins: { ipam: { ranges: { subnet: string }[][] } }[] }).plugins[0]?.ipam
    .ranges[0]?.[0]?.subnet ?? "";

/** Fragments that a machine has made of packets. */
async function fragments({ namespace }: Machine): Promise<number> {
  const [names, values] = (await namespace.run("cat", ["/proc/self/net/snmp"]))
    .split("\n")
    .filter((line) => line.startsWith("Ip:"))
    .map((line) => line.split(" ")) as [string[], string[]];
  return Number(values[names.indexOf("FragCreates")]);
}

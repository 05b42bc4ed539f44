import type { TestContext } from "node:test";
import { keyOf } from "@coxswain/apimachinery/objects/meta/object-key";
import type { Service } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import type { EndpointSlice } from "@coxswain/apimachinery/objects/schema/kinds/discovery/v1";
import { realClock } from "@coxswain/apimachinery/process/clock/clock";
import { Turns } from "@coxswain/apimachinery/process/event-loop/turns";
import { discardLogger } from "@coxswain/apimachinery/process/logging/logger";
import { newMetricsRegistry } from "@coxswain/apimachinery/process/metrics/registry";
import { waitFor } from "@coxswain/apimachinery/testing/wait-for";
import { newProxyMetrics } from "../services/metrics.ts";
import type { RuleSettings } from "../services/port-rules.ts";
import { servicePorts } from "../services/service-port.ts";
import { ServiceRules } from "../services/service-rules.ts";
import { connectPair, type Namespace, newNamespace } from "./namespaces.ts";

/** Addresses of the network below. */
export const addresses = {
  pod1: "10.77.0.11",
  pod2: "10.77.0.12",
  remotePod: "10.77.1.11",
  node: "192.168.77.1",
  outside: "192.168.77.2",
} as const;

/** Those of `addIpv6`. */
export const addresses6 = { pod1: "fd00:77::11", pod2: "fd00:77::12", node: "fd00:168::1", outside: "fd00:168::2" } as const;

interface NodeNetwork {
  readonly node: Namespace;
  /** Two pods of the node, each serving its name on port 8080. */
  readonly pod1: Namespace;
  readonly pod2: Namespace;
  /** A pod of another node. */
  readonly remote: Namespace;
  /** A machine that is not in the cluster. Its routes to cluster IPs and to external addresses lead to the node. */
  readonly outside: Namespace;
}

/** A node with two pods on a bridge, another node's pod behind it, and a client outside, in network namespaces. */
export async function newNodeNetwork(t: TestContext): Promise<NodeNetwork> {
  const [node, pod1, pod2, remote, outside] = (await Promise.all(Array.from({ length: 5 }, () => newNamespace(t)))) as [
    Namespace,
    Namespace,
    Namespace,
    Namespace,
    Namespace,
  ];
  for (const file of ["ip_forward", "conf/all/route_localnet"])
    await node.request({ op: "set", file: `/proc/sys/net/ipv4/${file}`, value: "1" });
  await node.ip("link add br0 type bridge");
  await node.ip("address add 10.77.0.1/24 dev br0");
  await node.ip("link set br0 up");
  for (const [pod, name, address] of [
    [pod1, "veth1", addresses.pod1],
    [pod2, "veth2", addresses.pod2],
  ] as const) {
    await connectPair(node, name, pod, "eth0");
    await node.ip(`link set ${name} master br0`);
    await node.ip(`link set ${name} type bridge_slave hairpin on`);
    await pod.ip(`address add ${address}/24 dev eth0`);
    await pod.ip("route add default via 10.77.0.1");
  }
  await connectPair(node, "eth0", outside, "eth0");
  await node.ip(`address add ${addresses.node}/24 dev eth0`);
  await outside.ip(`address add ${addresses.outside}/24 dev eth0`);
  await node.ip(`route add default via ${addresses.outside}`);
  for (const network of ["10.96.0.0/16", "203.0.113.0/24"]) await outside.ip(`route add ${network} via ${addresses.node}`);
  await connectPair(node, "eth1", remote, "eth0");
  await node.ip("address add 192.168.78.1/24 dev eth1");
  await remote.ip("address add 192.168.78.2/24 dev eth0");
  await remote.ip(`address add ${addresses.remotePod}/32 dev lo`);
  // Datagrams leave from the pod's address, whatever the destination.
  await remote.ip(`route change 192.168.78.0/24 dev eth0 src ${addresses.remotePod}`);
  await remote.ip(`route add default via 192.168.78.1 src ${addresses.remotePod}`);
  await node.ip("route add 10.77.1.0/24 via 192.168.78.2");
  await Promise.all([
    pod1.request({ op: "listen", name: "pod1", port: 8080 }),
    pod2.request({ op: "listen", name: "pod2", port: 8080 }),
    remote.request({ op: "listen", name: "remote", port: 8080 }),
  ]);
  return { node, pod1, pod2, remote, outside };
}

/** Gives the node, its pods and the client outside IPv6 addresses beside those of IPv4. */
export async function addIpv6({ node, pod1, pod2, outside }: NodeNetwork): Promise<void> {
  await node.request({ op: "set", file: "/proc/sys/net/ipv6/conf/all/forwarding", value: "1" });
  // Without the detection of duplicates, which takes a second.
  const add = (on: Namespace, address: string, device: string): Promise<string> =>
    on.ip(`-6 address add ${address}/64 dev ${device} nodad`);
  await add(node, "fd00:77::1", "br0");
  for (const [pod, address] of [
    [pod1, addresses6.pod1],
    [pod2, addresses6.pod2],
  ] as const) {
    await add(pod, address, "eth0");
    await pod.ip("-6 route add default via fd00:77::1");
  }
  await add(node, addresses6.node, "eth0");
  await add(outside, addresses6.outside, "eth0");
  await node.ip(`-6 route add default via ${addresses6.outside}`);
  await outside.ip(`-6 route add fd00:96::/112 via ${addresses6.node}`);
  // Until an interface's own link-local address has been found to be unique, its neighbours may not be found.
  await waitFor(async () => {
    const tentative = await Promise.all([node, pod1, pod2, outside].map((on) => on.ip("-6 address show tentative")));
    return tentative.every((addressesLeft) => addressesLeft === "");
  });
}

export const testSettings: RuleSettings = {
  family: "IPv4",
  prefix: "COX-",
  masqueradeBit: 14,
  clusterCidr: "10.77.0.0/16",
  masqueradeAll: false,
  nodePortNetworks: [],
  localhostNodePorts: true,
};

/** A Service with its slices. */
export type Change = readonly [Service, ...EndpointSlice[]];

/** The rules of a node called `n1`, over Services that a test puts and removes. */
export function startRules(t: TestContext, node: Namespace, checkPeriodMs = 50, settings = testSettings) {
  const services = new Map<string, { service: Service; slices: readonly EndpointSlice[] }>();
  const metrics = newMetricsRegistry();
  const own = newProxyMetrics(metrics);
  const refused: [service: string, reason: string][] = [];
  const rules = new ServiceRules({
    settings,
    keys: () => services.keys(),
    portsOf(key) {
      const found = services.get(key);
      return found === undefined ? [] : servicePorts(found.service, found.slices, { name: "n1", zone: "z1" }, settings.family);
    },
    masqueradedNetworks: [],
    checkPeriodMs,
    onRefused: (key, reason) => void refused.push([key, reason]),
    run: node.run,
    turns: new Turns(),
    metrics: own,
    log: discardLogger,
    clock: realClock,
  });
  const ending = new AbortController();
  let running: Promise<void> | undefined;
  const stop = async (): Promise<void> => {
    ending.abort(new Error("the test ends"));
    await running;
  };
  t.after(stop);
  const untilWritten = async (count: number): Promise<void> => {
    await waitFor(() => own.syncSeconds.count > count);
    rules.check();
  };
  /** Without waiting for the kernel. */
  const set = (...changes: readonly Change[]): void => {
    for (const [service, ...slices] of changes) services.set(keyOf(service), { service, slices });
    if (running === undefined) running = rules.run(ending.signal);
    else for (const [service] of changes) rules.changed(keyOf(service));
  };
  const unset = (key: string): void => {
    services.delete(key);
    rules.changed(key);
  };
  /** Resolves when the kernel has the rules. */
  const put = async (...changes: readonly Change[]): Promise<void> => {
    const before = own.syncSeconds.count;
    set(...changes);
    await untilWritten(before);
  };
  const remove = async (key: string): Promise<void> => {
    const before = own.syncSeconds.count;
    unset(key);
    await untilWritten(before);
  };
  const all = (): Change[] => [...services.values()].map(({ service, slices }) => [service, ...slices]);
  return { put, remove, set, unset, all, stop, rules, refused, metrics, syncs: () => own.syncSeconds.count };
}

/** The kernel's rules by table and chain, without counters. */
export async function rulesOf({ run }: Pick<Namespace, "run">): Promise<Record<string, string[]>> {
  const chains = new Map<string, string[]>();
  for (const table of ["nat", "filter"]) {
    for (const line of (await run("iptables-save", ["-t", table])).split("\n")) {
      const declared = /^:(\S+)/.exec(line)?.[1];
      if (declared !== undefined) chains.set(`${table} ${declared}`, []);
      chains.get(`${table} ${/^-A (\S+) /.exec(line)?.[1]}`)?.push(line);
    }
  }
  // A bucket's rules are about different addresses or ports each.
  return Object.fromEntries([...chains].sort().map(([chain, rules]) => [chain, rules.sort()]));
}

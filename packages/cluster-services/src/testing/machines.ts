import { mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TestContext } from "node:test";
import type { Node } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { realClock } from "@coxswain/apimachinery/process/clock/clock";
import { discardLogger } from "@coxswain/apimachinery/process/logging/logger";
import { newMetricsRegistry } from "@coxswain/apimachinery/process/metrics/registry";
import type { PodNetworkHost } from "../pod-network/host.ts";
import { newPodNetworkMetrics } from "../pod-network/metrics.ts";
import { PodNetwork } from "../pod-network/pod-network.ts";
import type { PodNetworkSettings } from "../pod-network/settings.ts";
import { connectPair, type Namespace, newNamespace } from "./namespaces.ts";

/** A namespace that is a machine: its interface `eth0` is on a segment with others. */
export interface Machine extends PodNetworkHost {
  readonly name: string;
  readonly namespace: Namespace;
  /** Its CNI configurations and the addresses taken. */
  readonly folder: string;
  readonly settings: PodNetworkSettings;
}

export interface Site {
  /** Joins the segments: a bridge for each, between which it forwards. */
  readonly router: Namespace;
  /** @param segment `a` is 192.168.77.0/24 and fd77::/64, `b` 192.168.78.0/24 and fd78::/64 @param number last byte of its addresses */
  addMachine(name: string, segment: "a" | "b", number: number): Promise<Machine>;
  /** A pod by the CNI plugins with the machine's configuration, serving its name on port 8080. */
  addPod(machine: Machine, name: string): Promise<Pod>;
}

export interface Pod {
  readonly namespace: Namespace;
  readonly addresses: readonly string[];
}

const segments = { a: "77", b: "78" } as const;
const pluginFolder = "/usr/lib/cni";

/** Machines on two segments with a router between them, in network namespaces. */
export async function newSite(t: TestContext): Promise<Site> {
  const folder = mkdtempSync(join(tmpdir(), "cox-site-"));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  const router = await newNamespace(t);
  await router.request({ op: "set", file: "/proc/sys/net/ipv4/ip_forward", value: "1" });
  for (const [name, number] of Object.entries(segments)) {
    await router.ip(`link add seg-${name} type bridge`);
    await router.ip(`address add 192.168.${number}.254/24 dev seg-${name}`);
    await router.ip(`link set seg-${name} up`);
  }
  let pods = 0;
  return {
    router,
    async addMachine(name, segment, number) {
      const namespace = await newNamespace(t);
      await connectPair(namespace, "eth0", router, `to-${name}`);
      await router.ip(`link set to-${name} master seg-${segment}`);
      await namespace.ip(`address add 192.168.${segments[segment]}.${number}/24 dev eth0`);
      await namespace.ip(`-6 address add fd${segments[segment]}::${number}/64 dev eth0 nodad`);
      await namespace.ip(`route add default via 192.168.${segments[segment]}.254`);
      const own = join(folder, name);
      mkdirSync(own);
      return {
        ...{ name, namespace, folder: own, run: namespace.run, settings: settingsIn(own) },
        hasIpv6: async () => true,
        async forward(family) {
          const file = family === 4 ? "/proc/sys/net/ipv4/ip_forward" : "/proc/sys/net/ipv6/conf/all/forwarding";
          await namespace.request({ op: "set", file, value: "1" });
        },
      };
    },
    async addPod(machine, name) {
      const namespace = await newNamespace(t);
      const { plugins, ...list } = JSON.parse(readFileSync(machine.settings.configPath, "utf8"));
      const variables = {
        CNI_COMMAND: "ADD",
        CNI_CONTAINERID: `${name}-${++pods}`,
        CNI_NETNS: `/proc/${namespace.pid}/ns/net`,
        CNI_IFNAME: "eth0",
        CNI_PATH: pluginFolder,
      };
      const args = Object.entries(variables).map(([key, value]) => `${key}=${value}`);
      const config = { cniVersion: list.cniVersion, name: list.name, ...plugins[0] };
      const answer = await machine.run("env", [...args, `${pluginFolder}/${config.type}`], JSON.stringify(config));
      const { ips } = JSON.parse(answer) as { ips: { address: string }[] };
      await namespace.request({ op: "listen", name, port: 8080 });
      return { namespace, addresses: ips.map(({ address }) => address.split("/")[0] as string) };
    },
  };
}

export const settingsIn = (folder: string): PodNetworkSettings => ({
  mode: "auto",
  clusterCidrs: [],
  name: "test",
  bridge: "cox0",
  mtu: undefined,
  vxlanId: 99,
  vxlanPort: 8472,
  configFolder: folder,
  configPath: join(folder, "10-coxswain.conflist"),
  pluginFolders: [pluginFolder],
  dataFolder: join(folder, "data"),
  chainPrefix: "COX-",
  checkPeriodMs: 3_600_000,
});

/** A Node with its pod ranges and addresses. */
export const aNode = (
  name: string,
  podCIDRs: readonly string[],
  addresses: readonly string[],
  age = "2024-01-01T00:00:00Z",
): Node => ({
  apiVersion: "v1",
  kind: "Node",
  metadata: { name, uid: `${name}-${podCIDRs[0]}`, creationTimestamp: age },
  spec: { podCIDRs: [...podCIDRs], ...(podCIDRs[0] !== undefined && { podCIDR: podCIDRs[0] }) },
  status: { addresses: addresses.map((address) => ({ type: "InternalIP", address })) },
});

interface Reported {
  readonly network: PodNetwork;
  /** `<type> <reason> <message>` of each event. */
  readonly events: string[];
  readonly metrics: ReturnType<typeof newMetricsRegistry>;
}

/** The pod network of a machine over the Nodes in an array, which the test changes. */
export function podNetworkOf(machine: Machine, nodes: readonly Node[], settings: Partial<PodNetworkSettings> = {}): Reported {
  const events: string[] = [];
  const metrics = newMetricsRegistry();
  const network = new PodNetwork({
    nodeName: machine.name,
    settings: { ...machine.settings, ...settings },
    host: machine,
    nodes: () => nodes,
    notify: (...words) => void events.push(words.join(" ")),
    metrics: newPodNetworkMetrics(metrics),
    log: discardLogger,
    clock: realClock,
  });
  return { network, events, metrics };
}

import { join } from "node:path";
import { ConfigError } from "@coxswain/apimachinery/flags/run-main";
import { parseCidr } from "@coxswain/apimachinery/objects/meta/ip";
import type { ServicesFlags } from "../flags.ts";
import { configFile, longestBridge } from "./names.ts";

/** How packets reach pods of other nodes: by a route to the node, in VXLAN, or as the nodes' addresses allow. */
type Mode = "auto" | "host-gateway" | "vxlan";

export interface PodNetworkSettings {
  readonly mode: Mode;
  /** Networks of the pods of all nodes, one of each IP family; may be empty. */
  readonly clusterCidrs: readonly string[];
  /** Name of the network for CNI plugins. */
  readonly name: string;
  readonly bridge: string;
  /** undefined: follows from the interface of the node's address. */
  readonly mtu: number | undefined;
  readonly vxlanId: number;
  readonly vxlanPort: number;
  /** Folder with all CNI configurations. */
  readonly configFolder: string;
  /** The one that this program writes. */
  readonly configPath: string;
  /** Folders with CNI plugins. */
  readonly pluginFolders: readonly string[];
  /** Folder in which the plugin host-local keeps which addresses are taken. */
  readonly dataFolder: string;
  readonly chainPrefix: string;
  readonly checkPeriodMs: number;
}

const modes: readonly Mode[] = ["auto", "host-gateway", "vxlan"];
const smallestMtu = 1280; // of IPv6

/** @throws ConfigError for an invalid flag */
export function podNetworkSettings(flags: ServicesFlags): PodNetworkSettings {
  const mode = modes.find((one) => one === flags["pod-network-mode"]);
  if (mode === undefined)
    throw new ConfigError(
      `--pod-network-mode must be one of ${modes.join(", ")}, not ${JSON.stringify(flags["pod-network-mode"])}`,
    );
  const bridge = flags["pod-network-bridge"];
  if (!/^[A-Za-z0-9][\w.-]*$/.test(bridge) || bridge.length > longestBridge)
    throw new ConfigError(
      `--pod-network-bridge must be the name of an interface with at most ${longestBridge} characters, not ${JSON.stringify(bridge)}`,
    );
  const name = flags["pod-network-name"];
  if (!/^[A-Za-z0-9][\w.-]*$/.test(name))
    throw new ConfigError(
      `--pod-network-name must begin with a letter or digit and have no other characters than these, - _ and ., not ${JSON.stringify(name)}`,
    );
  const mtu = flags["pod-network-mtu"];
  if (mtu !== 0 && (mtu < smallestMtu || mtu > 65_535))
    throw new ConfigError(`--pod-network-mtu must be 0 or within the range [${smallestMtu}, 65535], not ${mtu}`);
  const vxlanId = flags["pod-network-vxlan-id"];
  if (vxlanId < 1 || vxlanId > 0xffffff)
    throw new ConfigError(`--pod-network-vxlan-id must be within the range [1, 16777215], not ${vxlanId}`);
  const vxlanPort = flags["pod-network-vxlan-port"];
  if (vxlanPort < 1 || vxlanPort > 65_535)
    throw new ConfigError(`--pod-network-vxlan-port must be within the range [1, 65535], not ${vxlanPort}`);
  const clusterCidrs = flags["cluster-cidr"];
  const wrong = clusterCidrs.find((cidr) => parseCidr(cidr) === undefined);
  if (wrong !== undefined) throw new ConfigError(`--cluster-cidr must contain CIDR blocks, not ${JSON.stringify(wrong)}`);
  const configFolder = flags["cni-conf-dir"];
  return {
    ...{ mode, clusterCidrs, name, bridge, vxlanId, vxlanPort, configFolder },
    mtu: mtu === 0 ? undefined : mtu,
    configPath: join(configFolder, configFile),
    pluginFolders: flags["cni-bin-dir"],
    dataFolder: flags["cni-data-dir"],
    chainPrefix: flags["iptables-chain-prefix"],
    checkPeriodMs: flags["iptables-sync-period"],
  };
}

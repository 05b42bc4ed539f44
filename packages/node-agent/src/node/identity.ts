import { type AgentConfig, asConfigError } from "../config.ts";
import { type Reservations, reservationsOf } from "../resources/reservations.ts";
import { type Machine, nodeAddresses, readMachine, refuseSwap } from "./machine.ts";

/** Which node this is, and on what machine. Does not change while the agent runs. */
export interface NodeIdentity {
  machine: Machine;
  /** What of the machine is not for Pods. */
  reservations: Reservations;
  /** As the machine or `--hostname-override` writes it. */
  hostname: string;
  /** The name of the Node object. */
  nodeName: string;
  /** The first of each family is the node's InternalIP. */
  ips: readonly string[];
}

/** @throws ConfigError for a machine that swaps and must not, and for reservations that it cannot have */
export async function readIdentity(config: AgentConfig): Promise<NodeIdentity> {
  const machine = await readMachine();
  if (config.failSwapOn) asConfigError(() => refuseSwap(machine));
  const reservations = asConfigError(() => reservationsOf(config, machine));
  const hostname = config.hostnameOverride || machine.hostname;
  const nodeName = hostname.toLowerCase().trim();
  return { machine, reservations, hostname, nodeName, ips: await nodeAddresses(config.nodeIp) };
}

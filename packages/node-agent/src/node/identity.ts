import { ConfigError } from "@coxswain/apimachinery/flags/run-main";
import type { AgentConfig } from "../agent-config.ts";
import { asConfigError } from "../config-error.ts";
import { type Machine, nodeAddresses, readMachine, refuseSwap } from "../resources/machine.ts";
import { type Reservations, reservationsOf } from "../resources/reservations.ts";

/** Identity of the node and its machine. Does not change while the agent runs. */
export interface NodeIdentity {
  machine: Machine;
  /** Resources of the machine that are not available to Pods. */
  reservations: Reservations;
  /** The machine's hostname, or `--hostname-override`, in lower case. */
  hostname: string;
  /** Name of the Node object. */
  nodeName: string;
  /** Node IPs; the first of each family is the InternalIP. */
  ips: readonly string[];
}

/** The name of the node, which is also its hostname. @param machineName the machine's hostname */
export const nodeNameOf = ({ hostnameOverride }: Pick<AgentConfig, "hostnameOverride">, machineName: string): string =>
  (hostnameOverride || machineName).trim().toLowerCase();

/**
 * @throws ConfigError when swap is enabled and `--fail-swap-on` is set, for invalid reservations, or an empty hostname
 * Source: k8s.io/component-helpers node/util/hostname.go
 */
export async function readIdentity(config: AgentConfig, read = readMachine): Promise<NodeIdentity> {
  const machine = await read();
  if (config.failSwapOn) asConfigError(() => refuseSwap(machine));
  const reservations = asConfigError(() => reservationsOf(config, machine));
  const hostname = nodeNameOf(config, machine.hostname);
  if (hostname === "") throw new ConfigError("empty hostname is invalid");
  return { machine, reservations, hostname, nodeName: hostname, ips: await nodeAddresses(config.nodeIp) };
}

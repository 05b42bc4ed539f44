import { isIPv4 } from "node:net";
import type { RunProgram } from "../host/run-program.ts";
import type { Family } from "../services/addresses.ts";
import { hasChains } from "../services/iptables.ts";
import type { Jump } from "../services/rule-set.ts";
import { chainMark } from "./names.ts";

/** Whether a chain is of this part. */
export const isOfAddresses =
  (chainPrefix: string) =>
  (chain: string): boolean =>
    chain.startsWith(`${chainPrefix}${chainMark}`);

/** Whether the kernel has rules of this part. */
export const hasRules = (chainPrefix: string, family: Family, run: RunProgram): Promise<boolean> =>
  hasChains(family, isOfAddresses(chainPrefix), run);

/** Only new connections: replies to programs of the machine itself, which may use the address as their source, have to pass. */
const isNew = "-m conntrack --ctstate NEW";

/**
 * Pure: rules that reject packets to one of the addresses that belong to no Service, so that programs that listen on all addresses
 * of the machine cannot be reached at an address that users choose. Connections to
 * Services already have the destination of an endpoint where these rules apply.
 */
export function addressRules(
  addresses: readonly string[],
  chainPrefix: string,
): { readonly text: string; readonly jumps: readonly Jump[] } {
  const chain = `${chainPrefix}${chainMark}INPUT`;
  const rules = addresses.flatMap((ip) =>
    isIPv4(ip) ? [`-d ${ip}/32 ! -p icmp ${isNew} -j REJECT`] : [`-d ${ip}/128 ! -p ipv6-icmp ${isNew} -j REJECT`],
  );
  const text = ["*filter", `:${chain} - [0:0]`, ...rules.map((rule) => `-A ${chain} ${rule}`), "COMMIT", ""].join("\n");
  return { text, jumps: [{ table: "filter", from: "INPUT", rule: `-j ${chain}` }] };
}

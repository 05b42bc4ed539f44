import { isIPv4 } from "node:net";
import { canonicalIp, parseCidr, parseIp } from "@coxswain/apimachinery/objects/meta/ip";
import { isSpecial } from "../host/special-addresses.ts";

/**
 * Addresses as iptables reads them. The API accepts `010.0.0.1`, which is `10.0.0.1` to Kubernetes, `8.0.0.1` to iptables in one place
 * and an error in another, which fails the rules of all Services; and any number as the port of an EndpointSlice.
 */
export type Family = "IPv4" | "IPv6";

/** Pure: the canonical form of an address. @returns undefined for text that is no address of the family */
export function plainAddress(text: string, family: Family): string | undefined {
  const parsed = isIPv4(text) ? text : parseIp(text);
  const plain = parsed === undefined ? undefined : canonicalIp(parsed);
  return plain !== undefined && isIPv4(plain) === (family === "IPv4") ? plain : undefined;
}

/**
 * Pure: an address that a user may lead connections from or to. Loopback and link-local ones are none: rules of a node port on
 * 127.0.0.1 make the kernel route that network, so these would take connections from programs of the node, or lead pods to them.
 */
export function openAddress(text: string, family: Family): string | undefined {
  const plain = plainAddress(text, family);
  return plain === undefined || isSpecial(plain) ? undefined : plain;
}

/** Pure. @returns undefined for what is no network of the family */
export function plainNetwork(text: string, family: Family): string | undefined {
  const cidr = parseCidr(text);
  return cidr?.family === (family === "IPv4" ? 4 : 6) ? `${cidr.ip}/${cidr.bits}` : undefined;
}

/** Whether it is a port that iptables takes: 1 to 65535. */
export const isPort = (port: number | null | undefined): port is number =>
  typeof port === "number" && Number.isInteger(port) && port >= 1 && port <= 65_535;

import { BlockList, isIP } from "node:net";
import { networkInterfaces } from "node:os";
import { badRequest } from "@coxswain/apimachinery/errors/status-error";

/**
 * Users may point a proxy at any node or pod address; those that mean this machine or the cloud's metadata service are
 * not reached through us. IPv4 addresses inside IPv6 count as what they are.
 * @throws BadRequest.
 * Source: pkg/proxy/util IsProxyableIP
 */
export function checkProxyable(address: string): void {
  if (isIP(address) === 0 || contains(neverKubelet, address) || contains(loopback, address)) throw notAllowed();
}

/**
 * Logs and exec go to where a node says its kubelet is. That may be this machine (a cluster of one machine has it so),
 * since only the paths of those go there; no kubelet is at the other addresses that are refused to a proxy.
 * @throws BadRequest.
 */
export function checkKubelet(address: string): void {
  if (isIP(address) === 0 || contains(neverKubelet, address)) throw notAllowed();
}

/** Is this one of the machine's own addresses, now? */
export function isLocal(address: string): boolean {
  const own = new BlockList();
  for (const { address: one, family } of Object.values(networkInterfaces()).flatMap((entries) => entries ?? [])) {
    own.addAddress(one, family === "IPv6" ? "ipv6" : "ipv4");
  }
  return contains(own, address) || contains(loopback, address);
}

function notAllowed(): Error {
  return badRequest("address not allowed");
}

function contains(list: BlockList, address: string): boolean {
  return list.check(address, isIP(address) === 6 ? "ipv6" : "ipv4");
}

function networks(...all: readonly (readonly [string, number])[]): BlockList {
  const list = new BlockList();
  for (const [network, bits] of all) list.addSubnet(network, bits, isIP(network) === 6 ? "ipv6" : "ipv4");
  return list;
}

const loopback = networks(["127.0.0.0", 8], ["::1", 128]);

/** What is no global unicast address, without the loopback. */
const neverKubelet = networks(
  ["0.0.0.0", 32],
  ["169.254.0.0", 16],
  ["224.0.0.0", 4],
  ["255.255.255.255", 32],
  ["::", 128],
  ["fe80::", 10],
  ["ff00::", 8],
);

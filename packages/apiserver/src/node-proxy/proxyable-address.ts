import { BlockList, isIP } from "node:net";
import { networkInterfaces } from "node:os";
import { badRequest } from "@coxswain/apimachinery/objects/errors/status-error";

/**
 * Checks a proxy target chosen by a user: this machine's loopback and the link-local network (cloud metadata services) must not
 * be reachable through the API server. IPv4-mapped IPv6 addresses are treated like IPv4.
 * @throws BadRequest.
 * Source: pkg/proxy/util IsProxyableIP
 */
export function checkProxyable(address: string): void {
  if (isIP(address) === 0 || contains(neverKubelet, address) || contains(loopback, address)) throw notAllowed();
}

/**
 * Checks the address of a kubelet for logs and exec. Loopback is allowed, as in single-machine clusters, because only the
 * kubelet's own paths are requested there.
 * @throws BadRequest.
 */
export function checkKubelet(address: string): void {
  if (isIP(address) === 0 || contains(neverKubelet, address)) throw notAllowed();
}

/** True for an address of one of this machine's interfaces, read at the time of the call. */
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

/** Addresses that are not global unicast, except loopback. */
const neverKubelet = networks(
  ["0.0.0.0", 32],
  ["169.254.0.0", 16],
  ["224.0.0.0", 4],
  ["255.255.255.255", 32],
  ["::", 128],
  ["fe80::", 10],
  ["ff00::", 8],
);

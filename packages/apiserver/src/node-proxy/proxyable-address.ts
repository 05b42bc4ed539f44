import { BlockList, isIP } from "node:net";
import { badRequest } from "@coxswain/apimachinery/errors/status-error";

/**
 * Users may point a proxy at any node or pod address; those that mean this machine or the cloud's metadata service are
 * not reached through us. IPv4 addresses inside IPv6 count as what they are.
 * @throws BadRequest.
 * Source: pkg/proxy/util IsProxyableIP
 */
export function checkProxyable(address: string): void {
  const family = isIP(address) === 6 ? "ipv6" : "ipv4";
  if (isIP(address) === 0 || forbidden.check(address, family)) throw badRequest("address not allowed");
}

/** What is no global unicast address. */
const forbidden = new BlockList();
for (const [network, bits] of [
  ["0.0.0.0", 32],
  ["127.0.0.0", 8],
  ["169.254.0.0", 16],
  ["224.0.0.0", 4],
  ["255.255.255.255", 32],
] as const) {
  forbidden.addSubnet(network, bits, "ipv4");
}
for (const [network, bits] of [
  ["::", 128],
  ["::1", 128],
  ["fe80::", 10],
  ["ff00::", 8],
] as const) {
  forbidden.addSubnet(network, bits, "ipv6");
}

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

const forbidden = new BlockList();
forbidden.addSubnet("127.0.0.0", 8, "ipv4");
forbidden.addSubnet("169.254.0.0", 16, "ipv4");
forbidden.addSubnet("224.0.0.0", 24, "ipv4");
forbidden.addAddress("0.0.0.0", "ipv4");
forbidden.addAddress("::1", "ipv6");
forbidden.addAddress("::", "ipv6");
forbidden.addSubnet("fe80::", 10, "ipv6");
forbidden.addSubnet("ff01::", 16, "ipv6");
forbidden.addSubnet("ff02::", 16, "ipv6");

import { BlockList, isIP } from "node:net";

type Network = readonly [address: string, prefix: number];

/**
 * Pure: returns whether an address, which must be valid, is in one of the networks. Each family has its own BlockList, because
 * one list would match IPv4-mapped IPv6 addresses against IPv4 networks.
 */
export function inNetworks(networks: readonly Network[]): (address: string) => boolean {
  const lists = { ipv4: new BlockList(), ipv6: new BlockList() };
  for (const [network, prefix] of networks) {
    const family = isIP(network) === 6 ? "ipv6" : "ipv4";
    lists[family].addSubnet(network, prefix, family);
  }
  return (address) => {
    const version = isIP(address);
    if (version === 0) return false;
    const family = version === 6 ? "ipv6" : "ipv4";
    return lists[family].check(address, family);
  };
}

/** Loopback, link-local (with the metadata servers of clouds), multicast, and "this host". */
export const isSpecial = inNetworks([
  ["0.0.0.0", 8],
  ["127.0.0.0", 8],
  ["169.254.0.0", 16],
  ["224.0.0.0", 4],
  ["::", 127],
  ["fe80::", 10],
  ["ff00::", 8],
]);

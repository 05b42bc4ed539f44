import { BlockList, isIP } from "node:net";

/** Addresses that no pod has: this host, link-local, multicast, reserved. A list for each family: one would mix mapped addresses. */
const never = { ipv4: new BlockList(), ipv6: new BlockList() };
for (const [network, prefix] of [
  ["0.0.0.0", 8],
  ["127.0.0.0", 8],
  ["169.254.0.0", 16],
  ["224.0.0.0", 3],
] as const)
  never.ipv4.addSubnet(network, prefix, "ipv4");
for (const [network, prefix] of [
  ["::", 96],
  ["::ffff:0:0", 96], // IPv4 addresses, as those of the next one
  ["64:ff9b::", 96],
  ["fe80::", 10],
  ["ff00::", 8],
] as const)
  never.ipv6.addSubnet(network, prefix, "ipv6");

/**
 * Pure: whether connections to an endpoint are refused. Whoever may write EndpointSlices could else make the ingress connect to
 * programs of a node that trust the node itself or listen only for it.
 * @param nodes addresses of all nodes and of this machine, as their objects and interfaces spell them
 */
export function isRefused(address: string, nodes: ReadonlySet<string>): boolean {
  const family = isIP(address);
  if (family === 0) return true;
  const name = family === 4 ? "ipv4" : "ipv6";
  return nodes.has(address) || never[name].check(address, name);
}

import { isIP } from "node:net";
import { inNetworks, isSpecial } from "../host/special-addresses.ts";

/** Reserved addresses, and IPv6 ones that lead to IPv4 addresses. */
const isReserved = inNetworks([
  ["240.0.0.0", 4],
  ["::", 96],
  ["::ffff:0:0", 96],
  ["64:ff9b::", 96],
]);

/**
 * Pure: whether connections to an endpoint are refused. Users who may write EndpointSlices could otherwise make the ingress connect to
 * programs of a node that trust the node itself or listen only for it.
 * @param nodes addresses of all nodes and of this machine, as their objects and interfaces spell them
 */
export const isRefused = (address: string, nodes: ReadonlySet<string>): boolean =>
  isIP(address) === 0 || nodes.has(address) || isSpecial(address) || isReserved(address);

import { isIP } from "node:net";
import { canonicalIp, parseIp } from "@coxswain/apimachinery/objects/meta/ip";
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
 * @param nodes canonical addresses of all nodes and of this machine
 */
export function isRefused(address: string, nodes: ReadonlySet<string>): boolean {
  // Text with leading zeros or a zone, which this process would take for another address than others do.
  if (isIP(address) === 0 || parseIp(address) !== address) return true;
  return nodes.has(canonicalIp(address)) || isSpecial(address) || isReserved(address);
}

import { isIPv4 } from "node:net";
import { hostname, networkInterfaces } from "node:os";
import type { MachineFacts } from "../config/settings.ts";
import { linesOf } from "./files.ts";

/** Of this machine. */
export function machineFacts(): MachineFacts {
  return { hostName: hostname(), address: addressOfDefaultRoute(linesOf("/proc/net/route"), networkInterfaces()) };
}

/**
 * Pure: the first IPv4 address of the interface of the default route with the lowest metric.
 * @param routes lines of /proc/net/route
 */
export function addressOfDefaultRoute(
  routes: readonly string[],
  interfaces: Readonly<Record<string, readonly { readonly address: string; readonly internal: boolean }[] | undefined>>,
): string | undefined {
  const defaults = routes
    .slice(1)
    .map((line) => line.split(/\s+/))
    .filter(([, destination, , , , , , mask]) => destination === "00000000" && mask === "00000000")
    .sort((a, b) => Number(a[6]) - Number(b[6]));
  for (const [device = ""] of defaults) {
    const found = interfaces[device]?.find(({ address, internal }) => isIPv4(address) && !internal);
    if (found !== undefined) return found.address;
  }
  return undefined;
}

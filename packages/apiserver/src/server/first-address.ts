import { isIPv6 } from "node:net";

/** The first usable address of a range: 10.0.0.1 of 10.0.0.0/24. @param cidr begins with its network address */
export function firstAddress(cidr: string): string {
  const address = cidr.split("/")[0]!;
  if (isIPv6(address)) return address.endsWith("::") ? `${address}1` : address.replace(/0$/, "1");
  const parts = address.split(".").map(Number);
  parts[3] = parts[3]! + 1;
  return parts.join(".");
}

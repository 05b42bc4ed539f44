import { bigIntToIp, ipToBigInt, parseCidr } from "@coxswain/apimachinery/objects/meta/ip";

/** The first usable address of a range: 10.0.0.1 of 10.0.0.0/24, and of 10.0.0.9/24. @throws Error when `cidr` is not a CIDR block */
export function firstAddress(cidr: string): string {
  const range = parseCidr(cidr);
  if (range === undefined) throw new Error(`${JSON.stringify(cidr)} is not a CIDR block`);
  const hostBits = BigInt((range.family === 4 ? 32 : 128) - range.bits);
  return bigIntToIp(((ipToBigInt(range.ip) >> hostBits) << hostBits) + 1n, range.family);
}

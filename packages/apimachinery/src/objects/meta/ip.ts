import { isIP, isIPv4 } from "node:net";

/** IP addresses and CIDRs with the syntax of Kubernetes. Source: k8s.io/utils/net, Go's package net */

/** Like ParseIPSloppy, accepts leading zeros in IPv4 and removes them. @returns undefined for an invalid address or a zone */
export function parseIp(address: string): string | undefined {
  const zeros = /^[0-9.]+$/.test(address)
    ? address
        .split(".")
        .map((part) => (part === "" ? part : String(Number(part))))
        .join(".")
    : address;
  if (address.includes("%")) return undefined;
  return isIP(zeros) === 0 ? undefined : zeros;
}

/** Canonical form in Go: shortest IPv6, and IPv4 for an IPv4-mapped address. @param ip from `parseIp` */
export function canonicalIp(ip: string): string {
  if (isIPv4(ip)) return ip;
  const canonical = canonicalIpv6(ip);
  return mappedIn(canonical) ?? canonical;
}

/** @returns undefined for an invalid CIDR */
export function parseCidr(cidr: string): { ip: string; bits: number; family: 4 | 6 } | undefined {
  const slash = cidr.indexOf("/");
  if (slash < 0) return undefined;
  const ip = parseIp(cidr.slice(0, slash));
  const length = cidr.slice(slash + 1);
  if (ip === undefined || !/^\d{1,3}$/.test(length)) return undefined;
  const family = isIPv4(ip) ? 4 : 6;
  const bits = Number(length);
  return bits > (family === 4 ? 32 : 128) ? undefined : { ip, bits, family };
}

/** The address as a number. */
export function ipToBigInt(ip: string): bigint {
  if (isIPv4(ip)) return ip.split(".").reduce((sum, part) => sum * 256n + BigInt(part), 0n);
  const [head = "", tail = ""] = canonicalIpv6(ip).split("::");
  const groups = (text: string): string[] => (text === "" ? [] : text.split(":"));
  const left = groups(head);
  const right = groups(tail);
  const full = [...left, ...Array.from({ length: 8 - left.length - right.length }, () => "0"), ...right];
  return full.reduce((sum, part) => sum * 65536n + BigInt(Number.parseInt(part, 16)), 0n);
}

/** Inverse of `ipToBigInt`, in canonical form. Bits above the width of the family are ignored. */
export function bigIntToIp(value: bigint, family: 4 | 6): string {
  if (family === 4) return [24n, 16n, 8n, 0n].map((shift) => String((value >> shift) & 255n)).join(".");
  const groups = Array.from({ length: 8 }, (_, i) => ((value >> BigInt(112 - 16 * i)) & 0xffffn).toString(16));
  return canonicalIpv6(groups.join(":"));
}

/** True when the address is in the CIDR; false for invalid arguments and different IP families. */
export function cidrContains(cidr: string, ip: string): boolean {
  const range = parseCidr(cidr);
  const address = parseIp(ip);
  if (!range || address === undefined || (isIPv4(address) ? 4 : 6) !== range.family) return false;
  const shift = BigInt((range.family === 4 ? 32 : 128) - range.bits);
  return ipToBigInt(address) >> shift === ipToBigInt(range.ip) >> shift;
}

/** Shortest form of an IPv6 address. @throws TypeError for an invalid address */
function canonicalIpv6(ip: string): string {
  return new URL(`http://[${ip}]/`).hostname.slice(1, -1);
}

/** The IPv4 address of an IPv4-mapped IPv6 address in its shortest form (`::ffff:192.0.2.1`); undefined for others. */
function mappedIn(canonical: string): string | undefined {
  const match = /^::ffff:([0-9a-f]{1,4}):([0-9a-f]{1,4})$/.exec(canonical);
  if (!match) return undefined;
  const high = Number.parseInt(match[1]!, 16);
  const low = Number.parseInt(match[2]!, 16);
  return `${high >> 8}.${high & 255}.${low >> 8}.${low & 255}`;
}

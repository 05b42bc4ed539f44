import { isIPv4 } from "node:net";
import { ConfigError } from "@coxswain/apimachinery/flags/run-main";
import { bigIntToIp, ipToBigInt, parseCidr, parseIp } from "@coxswain/apimachinery/objects/meta/ip";
import { leaseOf } from "./names.ts";

export type IpFamily = "IPv4" | "IPv6";

interface Range {
  readonly family: IpFamily;
  readonly first: bigint;
  readonly last: bigint;
}

export const familyOf = (ip: string): IpFamily => (isIPv4(ip) ? "IPv4" : "IPv6");

/** Addresses for Services, from `--load-balancer-pool`. */
export class Pool {
  readonly #ranges: readonly Range[];

  /** @param entries networks, ranges (`192.0.2.10-192.0.2.20`) and single addresses @throws ConfigError for another form */
  constructor(entries: readonly string[]) {
    this.#ranges = entries.map((entry) => parseRange(entry.trim()));
  }

  get isEmpty(): boolean {
    return this.#ranges.length === 0;
  }

  has(ip: string): boolean {
    const parsed = parseIp(ip);
    if (parsed === undefined) return false;
    const value = ipToBigInt(parsed);
    return this.#ranges.some(({ family, first, last }) => family === familyOf(parsed) && first <= value && value <= last);
  }

  serves(family: IpFamily): boolean {
    return this.#ranges.some((range) => range.family === family);
  }

  /** All addresses, which may be 2^64: the lowest of the first range first. */
  *addresses(family: IpFamily): Generator<string, undefined, void> {
    for (const range of this.#ranges) {
      if (range.family !== family) continue;
      for (let value = range.first; value <= range.last; value++) yield bigIntToIp(value, family === "IPv4" ? 4 : 6);
    }
  }
}

/** A pure cache: thousands of Services may have the same addresses in their status. Bounded, as they come from users. */
const known = new Map<string, string | undefined>();
const mostKnown = 4096;

/** The form in which addresses are compared. */
export function canonical(ip: string): string | undefined {
  if (known.has(ip)) return known.get(ip);
  if (known.size >= mostKnown) known.clear();
  const found = canonicalOf(ip);
  known.set(ip, found);
  return found;
}

function canonicalOf(ip: string): string | undefined {
  const parsed = parseIp(ip);
  return parsed === undefined ? undefined : bigIntToIp(ipToBigInt(parsed), isIPv4(parsed) ? 4 : 6);
}

/** The name of an address's lease. */
export function leaseName(ip: string): string {
  if (isIPv4(ip)) return leaseOf(ip.split("."));
  const digits = ipToBigInt(ip).toString(16).padStart(32, "0");
  return leaseOf(digits.match(/.{4}/g)!.map((group) => Number.parseInt(group, 16).toString(16)));
}

function parseRange(entry: string): Range {
  const wrong = new ConfigError(
    `--load-balancer-pool must contain networks, addresses and ranges of them (192.0.2.10-192.0.2.20), not ${JSON.stringify(entry)}`,
  );
  const cidr = parseCidr(entry);
  if (cidr !== undefined) {
    const width = BigInt((cidr.family === 4 ? 32 : 128) - cidr.bits);
    const first = (ipToBigInt(cidr.ip) >> width) << width;
    return edgesLeftOut({ family: cidr.family === 4 ? "IPv4" : "IPv6", first, last: first + (1n << width) - 1n });
  }
  const ends = entry.split("-").map((text) => parseIp(text.trim()));
  const [from, to = from] = ends;
  if (from === undefined || to === undefined || ends.length > 2 || familyOf(from) !== familyOf(to)) throw wrong;
  const range = { family: familyOf(from), first: ipToBigInt(from), last: ipToBigInt(to) };
  if (range.first > range.last) throw wrong;
  return range;
}

/** The first and last address of an IPv4 network with four or more mean the network itself and all of its hosts. */
function edgesLeftOut(range: Range): Range {
  if (range.family === "IPv6" || range.last - range.first < 3n) return range;
  return { ...range, first: range.first + 1n, last: range.last - 1n };
}

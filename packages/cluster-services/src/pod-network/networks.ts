import { isIPv4 } from "node:net";
import { bigIntToIp, ipToBigInt, parseCidr, parseIp } from "@coxswain/apimachinery/objects/meta/ip";

export type IpFamily = 4 | 6;

/** A network in its canonical form. */
export interface Network {
  /** As the kernel prints it: `10.244.1.0/24`. */
  readonly text: string;
  readonly family: IpFamily;
  readonly first: bigint;
  readonly last: bigint;
  readonly bits: number;
}

const widthOf = (family: IpFamily): number => (family === 4 ? 32 : 128);

export const familyOf = (ip: string): IpFamily => (isIPv4(ip) ? 4 : 6);

/** @returns undefined for an invalid CIDR */
export function parseNetwork(cidr: string): Network | undefined {
  const parsed = parseCidr(cidr);
  if (parsed === undefined) return undefined;
  const { ip, bits, family } = parsed;
  const size = 1n << BigInt(widthOf(family) - bits);
  const first = (ipToBigInt(ip) / size) * size;
  return { text: `${bigIntToIp(first, family)}/${bits}`, family, first, last: first + size - 1n, bits };
}

/** The address's own network, with all bits. @returns undefined for an invalid address */
export function hostNetwork(ip: string): Network | undefined {
  const parsed = parseIp(ip);
  return parsed === undefined ? undefined : parseNetwork(`${parsed}/${widthOf(familyOf(parsed))}`);
}

/** False for networks of different families. */
export const overlaps = (one: Network, other: Network): boolean =>
  one.family === other.family && one.first <= other.last && other.first <= one.last;

/** Whether all of `inner` is within `outer`; false for networks of different families. */
export const contains = (outer: Network, inner: Network): boolean =>
  outer.family === inner.family && outer.first <= inner.first && inner.last <= outer.last;

/** Networks of which none overlaps another, with what they are of. */
export class DisjointNetworks<T> {
  /** By family, in order of their addresses. */
  readonly #sorted: Readonly<Record<IpFamily, { readonly network: Network; readonly of: T }[]>> = { 4: [], 6: [] };

  /** @returns one that overlaps it, in which case it is not added */
  add(network: Network, of: T): { readonly network: Network; readonly of: T } | undefined {
    const sorted = this.#sorted[network.family];
    let [from, to] = [0, sorted.length];
    while (from < to) {
      const middle = (from + to) >> 1;
      if (sorted[middle]!.network.last < network.first) from = middle + 1;
      else to = middle;
    }
    const next = sorted[from];
    if (next !== undefined && overlaps(next.network, network)) return next;
    sorted.splice(from, 0, { network, of });
    return undefined;
  }
}

/** The network's own address, `10.244.1.0` of `10.244.1.0/24`; the gateway has the next one. */
export const firstAddress = ({ first, family }: Network): string => bigIntToIp(first, family);

/** The address that the bridge gets, and pods use as their gateway. */
export const gatewayOf = ({ first, family }: Network): string => bigIntToIp(first + 1n, family);

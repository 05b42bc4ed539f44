import { bigIntToIp, ipToBigInt, parseCidr } from "@coxswain/apimachinery/objects/meta/ip";
import { exponentialBuckets, type MetricsRegistry } from "@coxswain/apimachinery/process/metrics/registry";

/** Allocator of equally sized subnets from an address range. Source: pkg/controller/nodeipam/ipam/cidrset */
export interface CidrSet {
  /**
   * Allocates the next free subnet in round-robin order, so that a released one is not reused immediately.
   * @throws Error when all are in use
   */
  allocateNext(): string;
  /**
   * Marks all subnets that overlap the range as used; idempotent.
   * @throws Error when the range is outside the cluster CIDR
   */
  occupy(cidr: string): void;
  /**
   * Marks all overlapping subnets as free.
   * @throws Error when the range is outside the cluster CIDR
   */
  release(cidr: string): void;
}

/** Maximum difference of the mask sizes. Upstream keeps a bitmap and checks the limit only for IPv6. */
const maxBits = 16;

/** Whether the range has too many subnets to be allocated from. */
export function tooLarge(family: 4 | 6, bits: number, maskSize: number): boolean {
  return family === 6 && maskSize - bits > maxBits;
}

/**
 * @param cidr a valid CIDR
 * @param maskSize mask size of the subnets, at least that of `cidr`
 */
export function newCidrSet(cidr: string, maskSize: number, registry: MetricsRegistry): CidrSet {
  const clusterRange = rangeOf(cidr);
  const { family } = clusterRange;
  const shift = BigInt((family === 4 ? 32 : 128) - maskSize);
  const size = 2 ** (maskSize - clusterRange.bits);
  const text = `${bigIntToIp(clusterRange.first, family)}/${clusterRange.bits}`;
  const metrics = metricsOf(registry, text);
  const used = new Set<number>();
  let next = 0;

  const within = (address: bigint): bigint =>
    address < clusterRange.first ? clusterRange.first : address > clusterRange.last ? clusterRange.last : address;
  const indexOf = (address: bigint): number => Number((address - clusterRange.first) >> shift);
  /** Indexes of the first and last subnet that overlap a range. */
  const partsOf = (other: string): [number, number] => {
    const range = rangeOf(other);
    if (range.family !== family || range.last < clusterRange.first || range.first > clusterRange.last)
      throw new Error(`cidr ${other} is out the range of cluster cidr ${text}`);
    return [indexOf(within(range.first)), indexOf(within(range.last))];
  };
  return {
    allocateNext() {
      if (used.size === size)
        throw new Error("CIDR allocation failed; there are no remaining CIDRs left to allocate in the accepted range");
      let tries = 0;
      for (; used.has(next); tries++) next = (next + 1) % size;
      used.add(next);
      metrics.allocations.inc();
      metrics.tries.observe(tries);
      metrics.usage.set(used.size / size);
      const part = `${bigIntToIp(clusterRange.first + (BigInt(next) << shift), family)}/${maskSize}`;
      next = (next + 1) % size;
      return part;
    },
    occupy(other) {
      const [first, last] = partsOf(other);
      for (let i = first; i <= last; i++) {
        if (used.has(i)) continue;
        used.add(i);
        metrics.allocations.inc();
      }
      metrics.usage.set(used.size / size);
    },
    release(other) {
      const [first, last] = partsOf(other);
      for (let i = first; i <= last; i++) if (used.delete(i)) metrics.releases.inc();
      metrics.usage.set(used.size / size);
    },
  };
}

interface Range {
  readonly family: 4 | 6;
  readonly bits: number;
  readonly first: bigint;
  readonly last: bigint;
}

/**
 * Parses a CIDR.
 * @throws Error when it is invalid
 */
function rangeOf(cidr: string): Range {
  const parsed = parseCidr(cidr);
  if (parsed === undefined) throw new Error(`invalid CIDR address: ${cidr}`);
  const { ip, bits, family } = parsed;
  const hostBits = BigInt((family === 4 ? 32 : 128) - bits);
  const first = (ipToBigInt(ip) >> hostBits) << hostBits;
  return { family, bits, first, last: first + (1n << hostBits) - 1n };
}

function metricsOf(registry: MetricsRegistry, clusterCidr: string) {
  const name = (suffix: string): string => `node_ipam_controller_cidrset_${suffix}`;
  const labels = ["clusterCIDR"];
  return {
    allocations: registry
      .counter({
        name: name("cidrs_allocations_total"),
        help: "Counter measuring total number of CIDR allocations.",
        labels,
      })
      .labels(clusterCidr),
    releases: registry
      .counter({ name: name("cidrs_releases_total"), help: "Counter measuring total number of CIDR releases.", labels })
      .labels(clusterCidr),
    usage: registry
      .gauge({ name: name("usage_cidrs"), help: "Gauge measuring percentage of allocated CIDRs.", labels })
      .labels(clusterCidr),
    tries: registry
      .histogram({
        name: name("allocation_tries_per_request"),
        help: "Number of endpoints added on each Service sync",
        labels,
        buckets: exponentialBuckets(1, 5, 5),
      })
      .labels(clusterCidr),
  };
}

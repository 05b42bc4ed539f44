import { isIPv4 } from "node:net";
import { invalidValue } from "@coxswain/apimachinery/objects/errors/field-error";
import { internalError, invalid } from "@coxswain/apimachinery/objects/errors/status-error";
import { bigIntToIp, ipToBigInt, parseCidr } from "@coxswain/apimachinery/objects/meta/ip";
import type { Service } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import type { Storage } from "../../../storage/storage.ts";
import type { ClusterIpMetrics } from "../../config.ts";
import type { Transaction } from "../../generic/strategy.ts";
import { AllocationError, newRangeAllocator, type RangeAllocator } from "./range-allocator.ts";

/** Limit for IPv6 ranges: the bitmap is one value in etcd. */
const mostAddresses = 65536;

/**
 * Allocates cluster IPs from --service-cluster-ip-range.
 * Source: pkg/registry/core/service/ipallocator/allocator.go, pkg/registry/core/service/storage/alloc.go
 */
export interface ClusterIpAllocator {
  readonly family: "IPv4" | "IPv6";
  readonly cidr: string;
  contains(ip: string): boolean;
  offsetOf(ip: string): number;
  ipAt(offset: number): string;
  readonly range: RangeAllocator;
  readonly metrics: ClusterIpMetrics | undefined;
}

/** @param storage of the RangeAllocations @param secondary the range has its own key in etcd @throws Error for an invalid CIDR */
export function newClusterIpAllocator(
  cidr: string,
  storage: () => Storage,
  secondary = false,
  metrics?: ClusterIpMetrics,
): ClusterIpAllocator {
  const parsed = parseCidr(cidr);
  if (parsed === undefined) throw new Error(`--service-cluster-ip-range: ${JSON.stringify(cidr)} is not a CIDR block`);
  const hostBits = BigInt((parsed.family === 4 ? 32 : 128) - parsed.bits);
  const network = (ipToBigInt(parsed.ip) >> hostBits) << hostBits;
  const all = hostBits > 62n ? BigInt(Number.MAX_SAFE_INTEGER) : 1n << hostBits;
  // The network address and, in IPv4, the broadcast address are not allocated.
  const reserved = parsed.family === 4 ? 2n : 1n;
  const capped = parsed.family === 6 && all > BigInt(mostAddresses) ? BigInt(mostAddresses) : all;
  const size = Math.max(Number(capped - reserved), 0);
  const base = network + 1n;
  const offsetOf = (ip: string): number => {
    const offset = ipToBigInt(ip) - base;
    return offset < 0n || offset >= BigInt(size) ? -1 : Number(offset);
  };
  const family = parsed.family === 4 ? "IPv4" : "IPv6";
  const masked = `${bigIntToIp(network, parsed.family)}/${parsed.bits}`;
  const range = newRangeAllocator({
    storage,
    key: secondary ? "secondaryserviceips" : "serviceips",
    range: masked,
    size,
    texts: { taken: "provided IP is already allocated", full: "range is full" },
    onChange: (used, free) => metrics?.used(masked, used, free),
  });
  return {
    family,
    cidr: masked,
    contains: (ip) => (isIPv4(ip) ? 4 : 6) === parsed.family && offsetOf(ip) >= 0,
    offsetOf,
    ipAt: (offset) => bigIntToIp(base + BigInt(offset), parsed.family),
    range,
    metrics,
  };
}

/**
 * Allocates missing addresses of a service and sets `clusterIP` and `clusterIPs`.
 * @param fixed addresses that the service already has and keeps
 * @throws 422 for addresses that are allocated or outside the range; 500 when the range is full
 */
export async function allocateClusterIps(
  service: Service,
  allocators: ReadonlyMap<string, ClusterIpAllocator>,
  fixed: readonly string[],
  dryRun: boolean,
): Promise<Pick<Transaction, "revert">> {
  const { spec } = service;
  const taken: { allocator: ClusterIpAllocator; offset: number }[] = [];
  const revert = async (): Promise<void> => {
    if (dryRun) return;
    for (const { allocator, offset } of taken.toReversed()) await allocator.range.release([offset]);
  };
  const wanted = spec.clusterIPs ?? [];
  const result: string[] = [];
  try {
    for (const [i, family] of (spec.ipFamilies ?? []).entries()) {
      const allocator = allocators.get(family);
      if (allocator === undefined) continue;
      const ip = wanted[i] ?? "";
      if (ip !== "" && fixed.includes(ip)) {
        result.push(ip);
      } else {
        const offset = await takeAddress(service, allocator, ip, dryRun);
        taken.push({ allocator, offset });
        result.push(allocator.ipAt(offset));
      }
    }
  } catch (err) {
    await revert();
    throw err;
  }
  if (result.length > 0) {
    spec.clusterIPs = result;
    spec.clusterIP = result[0]!;
  }
  return { revert };
}

/** @param ip `""` for any free address @returns the offset of the address */
async function takeAddress(service: Service, allocator: ClusterIpAllocator, ip: string, dryRun: boolean): Promise<number> {
  const { range, metrics, cidr } = allocator;
  try {
    let offset: number;
    if (ip === "") {
      offset = await range.takeAny(dryRun);
    } else {
      if (!allocator.contains(ip)) {
        throw new AllocationError(`provided IP is not in the valid range. The range of valid IPs is ${cidr}`);
      }
      offset = allocator.offsetOf(ip);
      await range.take(offset, dryRun);
    }
    if (!dryRun) metrics?.allocated(cidr);
    return offset;
  } catch (err) {
    // As upstream, whose dry run only looks whether the range contains the address.
    if (!dryRun || (ip !== "" && !allocator.contains(ip))) metrics?.failed(cidr);
    if (!(err instanceof AllocationError)) throw err;
    throw ip === ""
      ? internalError(new Error(`failed to allocate a serviceIP: ${err.message}`))
      : refused(service, ip, err.message);
  }
}

function refused(service: Service, ip: string, reason: string): Error {
  return invalid({ group: "", kind: "Service" }, service.metadata.name ?? "", [
    invalidValue("spec.clusterIPs", service.spec.clusterIPs ?? [ip], `failed to allocate IP ${ip}: ${reason}`),
  ]);
}

/** Releases addresses to the allocators of their ranges; ignores `None` and addresses outside of all ranges. Never fails. */
export async function releaseClusterIps(ips: readonly string[], allocators: Iterable<ClusterIpAllocator>): Promise<void> {
  for (const allocator of allocators) {
    const offsets = ips.filter((ip) => ip !== "None" && ip !== "" && allocator.contains(ip)).map((ip) => allocator.offsetOf(ip));
    if (offsets.length > 0) await allocator.range.release(offsets);
  }
}

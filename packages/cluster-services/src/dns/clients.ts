/** Which clients may send queries, and their rate limit. */
import { BlockList, isIPv6 } from "node:net";
import { parseCidr } from "@coxswain/apimachinery/objects/meta/ip";
import type { Node } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import type { Clock } from "@coxswain/apimachinery/process/clock/clock";
import { LRUCache } from "lru-cache";

export interface Clients {
  /** Counts a query. @param address as the socket reports it */
  admit(address: string): "yes" | "stranger" | "tooOften";
  /** Replaces the networks whose clients are answered. Loopback always is. @param cidrs invalid ones are left out */
  allow(cidrs: readonly string[]): void;
}

/** Queries per second of one client: above the rate of a busy pod, and well below what one core answers. */
const mostPerSecond = 5_000;
const rememberedClients = 4_096;

interface Bucket {
  allowed: boolean;
  tokens: number;
  at: number;
}

export function newClients(clock: Clock): Clients {
  let networks = networksOf([]);
  const buckets = new LRUCache<string, Bucket>({ max: rememberedClients });
  return {
    allow(cidrs) {
      networks = networksOf(cidrs);
      buckets.clear();
    },
    admit(address) {
      const now = clock.monotonic();
      let bucket = buckets.get(address);
      if (bucket === undefined) {
        bucket = { allowed: isIn(networks, address), tokens: mostPerSecond, at: now };
        buckets.set(address, bucket);
      }
      if (!bucket.allowed) return "stranger";
      bucket.tokens = Math.min(mostPerSecond, bucket.tokens + ((now - bucket.at) / 1000) * mostPerSecond);
      bucket.at = now;
      if (bucket.tokens < 1) return "tooOften";
      bucket.tokens--;
      return "yes";
    },
  };
}

function isIn(networks: BlockList, address: string): boolean {
  const zone = address.indexOf("%");
  const plain = zone < 0 ? address : address.slice(0, zone);
  return networks.check(plain, isIPv6(plain) ? "ipv6" : "ipv4");
}

function networksOf(cidrs: readonly string[]): BlockList {
  const list = new BlockList();
  for (const cidr of ["127.0.0.0/8", "::1/128", ...cidrs]) {
    const parsed = parseCidr(cidr);
    if (parsed !== undefined) list.addSubnet(parsed.ip, parsed.bits, parsed.family === 4 ? "ipv4" : "ipv6");
  }
  return list;
}

/** The networks of the cluster's pods and the addresses of its nodes. */
export function clusterNetworks(nodes: readonly Node[]): string[] {
  return nodes.flatMap(({ spec, status }) => {
    const ranges = spec?.podCIDRs ?? (spec?.podCIDR ? [spec.podCIDR] : []);
    const addresses = (status?.addresses ?? []).filter(({ type }) => type === "InternalIP" || type === "ExternalIP");
    return [...ranges, ...addresses.map(({ address }) => `${address}/${isIPv6(address) ? 128 : 32}`)];
  });
}

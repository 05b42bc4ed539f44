import { networkInterfaces } from "node:os";
import { canonicalIp, parseIp } from "@coxswain/apimachinery/objects/meta/ip";
import type { Node } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";

/** Nothing reports new interfaces, such as those of containers. Listing them takes some 0.1 ms, and is done on requests only. */
const lookMs = 250;

interface Sources {
  readonly nodes: () => readonly Node[];
  /** Monotonic, ms. */
  readonly now: () => number;
  /** Replaced by tests. */
  readonly interfaces?: typeof networkInterfaces;
}

/**
 * Canonical addresses of all nodes and of this machine, which has further ones, such as those of bridges.
 * @returns the same set as before while they are the same
 */
export function newNodeAddresses({ nodes, now, interfaces = networkInterfaces }: Sources): () => ReadonlySet<string> {
  let known: ReadonlySet<string> = new Set();
  let lookedAt = Number.NEGATIVE_INFINITY;
  return () => {
    if (now() - lookedAt < lookMs) return known;
    lookedAt = now();
    const own = Object.values(interfaces()).flatMap((all) => all?.map(({ address }) => address) ?? []);
    const ofNodes = nodes().flatMap(({ status }) => status?.addresses?.map(({ address }) => address) ?? []);
    const all = [...own, ...ofNodes].map(parseIp).filter((address) => address !== undefined);
    const addresses = new Set(all.map(canonicalIp));
    if (addresses.symmetricDifference(known).size > 0) known = addresses;
    return known;
  };
}

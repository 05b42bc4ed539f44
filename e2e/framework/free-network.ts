import { randomInt } from "node:crypto";
import { networkInterfaces } from "node:os";
import { reserve } from "@coxswain/apimachinery/testing/reserve";
import { readRegistry } from "@coxswain/dev-cluster/registry";

/**
 * Reserves a network for this process that contains no address of this machine and is reserved by no cluster or other test.
 * @param from second octet of the first candidate
 * @param to one more than the second octet of the last candidate
 * @returns the first two octets: `172.20`
 * @throws Error when none is free
 */
export function freeNetwork(first: string, from: number, to: number): string {
  const used = [
    ...Object.values(networkInterfaces()).flatMap((list) => (list ?? []).map(({ address }) => address)),
    ...readRegistry().flatMap(({ podCidr, serviceCidr }) => [podCidr, serviceCidr]),
  ];
  const free = Array.from({ length: to - from }, (_, at) => `${first}.${from + at}`).filter(
    (network) => !used.some((other) => other.startsWith(`${network}.`)),
  );
  while (free.length > 0) {
    const [network = ""] = free.splice(randomInt(free.length), 1);
    if (reserve(`network-${network}`)) return network; // registered only when its cluster starts
  }
  throw new Error(`no network from ${first}.${from}.0.0/16 to ${first}.${to - 1}.0.0/16 is free`);
}

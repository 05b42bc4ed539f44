import { randomInt } from "node:crypto";
import { readlinkSync, rmSync, symlinkSync } from "node:fs";
import { networkInterfaces, tmpdir } from "node:os";
import { join } from "node:path";
import { readRegistry } from "@coxswain/dev-cluster/registry";

/**
 * Reserves a network for this process: one that contains no address of this machine and that no cluster or other test has.
 * @param from first candidate's second number
 * @param to the number after the last candidate's
 * @returns its first two numbers: `172.20`
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
    if (reserve(network)) return network;
  }
  throw new Error(`no network from ${first}.${from}.0.0/16 to ${first}.${to - 1}.0.0/16 is free`);
}

/** Clusters are registered when they start. Before that, a link with the process ID of the test keeps other test files off. */
function reserve(network: string): boolean {
  const link = join(tmpdir(), `cox-test-network-${network}`);
  if (linkTo(link)) return true;
  if (ownerRuns(link)) return false;
  rmSync(link, { force: true });
  return linkTo(link);
}

function linkTo(link: string): boolean {
  try {
    symlinkSync(String(process.pid), link);
  } catch (err) {
    if ((err as NodeJS.ErrnoException).code === "EEXIST") return false;
    throw err;
  }
  process.once("exit", () => rmSync(link, { force: true }));
  return true;
}

function ownerRuns(link: string): boolean {
  try {
    process.kill(Number(readlinkSync(link)), 0);
    return true;
  } catch {
    return false;
  }
}

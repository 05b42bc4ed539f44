import { createSocket } from "node:dgram";
import { writeFileSync } from "node:fs";
import { isIPv4 } from "node:net";
import { bigIntToIp, ipToBigInt } from "@coxswain/apimachinery/objects/meta/ip";
import { type RunProgram, runProgram } from "../host/run-program.ts";
import { readLinks } from "../pod-network/kernel-state.ts";
import { parseNetwork } from "../pod-network/networks.ts";
import type { Link } from "../pod-network/plan.ts";
import type { Pool } from "./pool.ts";

/** The machine that has the addresses. Tests give a network namespace. */
export interface AddressHost {
  readonly run: RunProgram;
  /** Sends an empty datagram. */
  send(from: string, to: string): Promise<void>;
  /** Writes a parameter of the kernel. */
  set(file: string, value: string): void | Promise<void>;
}

export const thisMachine: AddressHost = {
  run: runProgram,
  send: (from, to) =>
    new Promise((resolve, reject) => {
      const socket = createSocket(isIPv4(from) ? "udp4" : "udp6");
      const end = (err?: Error | null): void => void socket.close(() => (err ? reject(err) : resolve()));
      socket.once("error", end);
      socket.bind({ address: from }, () => socket.send("", discardPort, to, end));
    }),
  set: (file, value) => writeFileSync(file, value),
};

const discardPort = 9;

/**
 * The interface on which the kernel answers for an address: the one in whose network it is, otherwise that of the node's address.
 * @returns undefined when there is neither
 */
export function linkFor(ip: string, links: readonly Link[], nodeAddresses: readonly string[]): Link | undefined {
  const value = ipToBigInt(ip);
  const family = isIPv4(ip) ? 4 : 6;
  const inNetwork = links.find(({ addresses }) =>
    addresses.some((one) => {
      const network = parseNetwork(`${one.ip}/${one.bits}`);
      return network?.family === family && network.first !== network.last && network.first <= value && value <= network.last;
    }),
  );
  return inNetwork ?? links.find(({ addresses }) => addresses.some((one) => nodeAddresses.includes(one.ip)));
}

/** An address of the interface's IPv4 network that is not the interface's; undefined when there is none. */
export function neighbourOn({ addresses }: Link): string | undefined {
  const own = new Set(addresses.map((one) => one.ip));
  for (const { ip, bits } of addresses) {
    const network = isIPv4(ip) ? parseNetwork(`${ip}/${bits}`) : undefined;
    if (network === undefined || bits > 30) continue;
    const last = bigIntToIp(network.last - 1n, 4);
    return own.has(last) ? bigIntToIp(network.last - 2n, 4) : last;
  }
  return undefined;
}

const hostBits = (ip: string): number => (isIPv4(ip) ? 32 : 128);

/**
 * Adds the addresses to this machine with a lifetime in seconds; the kernel removes them when they are not renewed, for example
 * after the process was killed. They are never the source address of a connection.
 * @throws ProgramError when the kernel refuses one
 */
export async function bindAddresses(run: RunProgram, addresses: ReadonlyMap<string, string>, seconds: number): Promise<void> {
  if (addresses.size === 0) return;
  const lines = [...addresses].map(
    ([ip, link]) => `address replace ${ip}/${hostBits(ip)} dev ${link} valid_lft ${seconds} preferred_lft 0`,
  );
  await run("ip", ["-force", "-batch", "-"], `${lines.join("\n")}\n`);
}

/** An address that has expired is no error. */
export async function unbindAddress(run: RunProgram, ip: string, link: string): Promise<void> {
  await run("ip", ["address", "delete", `${ip}/${hostBits(ip)}`, "dev", link]).catch(async (err: unknown) => {
    const links = await readLinks(run);
    if (links.some(({ addresses }) => addresses.some((one) => one.ip === ip && one.bits === hostBits(ip)))) throw err;
  });
}

/**
 * Announces that this machine now has the address, so that neighbours update their ARP and NDP caches. IPv6: the kernel sends a
 * neighbour advertisement when it has made sure that nobody else has the address. IPv4: it sends none, but a request for another
 * address in the name of this one, which all neighbours see and learn from (RFC 826).
 */
export async function announce(host: AddressHost, ip: string, link: Link): Promise<void> {
  const neighbour = neighbourOn(link);
  if (!isIPv4(ip) || neighbour === undefined) return;
  // One that is known would not be requested.
  await host.run("ip", ["neighbour", "delete", neighbour, "dev", link.name]).catch(() => "");
  await host.send(ip, neighbour);
}

/** Before an IPv6 address is bound. */
export const prepareLink = async (host: AddressHost, ip: string, link: Link): Promise<void> => {
  if (!isIPv4(ip)) await host.set(`/proc/sys/net/ipv6/conf/${link.name}/ndisc_notify`, "1");
};

/** Removes all addresses of the pool from this machine, except those to keep. */
export async function releaseAddresses(pool: Pool, run: RunProgram, keep: ReadonlySet<string> = new Set()): Promise<void> {
  if (pool.isEmpty) return;
  for (const { name, addresses } of await readLinks(run)) {
    for (const { ip, bits } of addresses)
      if (bits === hostBits(ip) && pool.has(ip) && !keep.has(ip)) await unbindAddress(run, ip, name);
  }
}

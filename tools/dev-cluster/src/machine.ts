import { readFileSync } from "node:fs";
import { createServer } from "node:net";
import { networkInterfaces } from "node:os";
import type { Route } from "./choose.ts";
import type { Cidr } from "./cidr.ts";
import { Failure } from "./failure.ts";

/** Whether a server could listen on a port of all addresses and of loopback. @throws Failure where that is forbidden. */
export async function isPortFree(port: number): Promise<boolean> {
  for (const address of ["127.0.0.1", "0.0.0.0", "::"]) {
    const failure = await listenOnce(address, port);
    if (failure === undefined) continue;
    if (address === "::" && (failure === "EAFNOSUPPORT" || failure === "EADDRNOTAVAIL")) continue; // no IPv6 here
    if (failure === "EADDRINUSE") return false;
    throw new Failure(
      failure === "EACCES"
        ? `only root may listen on port ${port}; choose one from 1024 on`
        : `cannot listen on port ${port}: ${failure}`,
    );
  }
  return true;
}

/** @throws Failure where the programs could not reach each other, as in a new network namespace. */
export function checkLoopback(interfaces = networkInterfaces()): void {
  const isUp = Object.values(interfaces).some((addresses) => addresses?.some(({ address }) => address === "127.0.0.1"));
  if (!isUp) throw new Failure("the loopback interface is down; bring it up: ip link set lo up");
}

/** @returns the error's code; undefined when it worked. */
function listenOnce(host: string, port: number): Promise<string | undefined> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once("error", (err: NodeJS.ErrnoException) => resolve(err.code ?? err.message));
    server.listen({ host, port, ipv6Only: true }, () => server.close(() => resolve(undefined)));
  });
}

/**
 * The machine's IPv4 routes without its default ones; halves of everything, as VPNs set them, count as such.
 * Source: Linux net/ipv4/fib_trie.c, /proc/net/route
 */
export function readRoutes(ownDevice: string, text = readFileSync("/proc/net/route", "utf8")): Route[] {
  const routes: Route[] = [];
  for (const line of text.trim().split("\n").slice(1)) {
    const [device = "", destination = "", , , , , , mask = ""] = line.split(/\s+/);
    const cidr: Cidr = { first: fromHex(destination), prefix: Math.clz32(~fromHex(mask)) };
    if (cidr.prefix > 1 && device !== ownDevice) routes.push({ cidr, device });
  }
  return routes;
}

/** The kernel prints addresses as the number that their bytes are on this machine, which is little-endian. */
const fromHex = (text: string): number => Buffer.from(text, "hex").readUInt32LE(0);

import { readFileSync } from "node:fs";
import { createServer } from "node:net";
import { networkInterfaces } from "node:os";
import type { Route } from "./choose.ts";
import type { Cidr } from "./cidr.ts";
import { Failure } from "./failure.ts";

/** Whether the port is free on all addresses and on loopback. @throws Failure when binding is forbidden. */
export async function isPortFree(port: number): Promise<boolean> {
  for (const address of ["127.0.0.1", "0.0.0.0", "::"]) {
    const failure = await listenOnce(address, port);
    if (failure === undefined) continue;
    if (address === "::" && (failure === "EAFNOSUPPORT" || failure === "EADDRNOTAVAIL")) continue; // IPv6 is disabled
    if (failure === "EADDRINUSE") return false;
    throw new Failure(
      failure === "EACCES"
        ? `only root may listen on port ${port}; choose one from 1024 on`
        : `cannot listen on port ${port}: ${failure}`,
    );
  }
  return true;
}

/** @throws Failure when the loopback interface is down, as in a new network namespace. */
export function checkLoopback(): void {
  const isUp = Object.values(networkInterfaces()).some((addresses) => addresses?.some(({ address }) => address === "127.0.0.1"));
  if (!isUp) throw new Failure("the loopback interface is down; bring it up: ip link set lo up");
}

/** @returns the error code; undefined on success. */
function listenOnce(host: string, port: number): Promise<string | undefined> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once("error", (err: NodeJS.ErrnoException) => resolve(err.code ?? err.message));
    server.listen({ host, port, ipv6Only: true }, () => server.close(() => resolve(undefined)));
  });
}

/**
 * IPv4 routes of the machine without default routes; 0.0.0.0/1 and 128.0.0.0/1, as set by VPNs, count as default routes.
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

/** /proc/net/route prints addresses as host-order numbers; supported machines are little-endian. */
const fromHex = (text: string): number => Buffer.from(text, "hex").readUInt32LE(0);

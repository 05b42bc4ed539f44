import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { bootMachine, type Machine, unpackRelease, untilContainerdListens } from "./machine.ts";
import { MachineDisk } from "./machine-disk.ts";

/** Machines on one network, with a release that is unpacked and nothing else. */
export interface Network {
  readonly address: (number: number) => string;
  /** Before a program of the host: runs it on the network, beside the machines. */
  readonly inside: readonly string[];
  /** @param number last byte of its address */
  boot(name: string, number: number): Promise<Machine>;
  /** Kills all machines and removes the network. */
  remove(): Promise<void>;
}

/** @param options `withDisks`: machines whose disks can be made slow */
export async function newNetwork({ withDisks = false } = {}): Promise<Network> {
  const lan = `cox-lan-${process.pid}`;
  const folder = mkdtempSync(join(tmpdir(), "cox-network-"));
  const release = join(folder, "release");
  const machines: Machine[] = [];
  const ip = (...args: string[]): void => void execFileSync("ip", args, { stdio: "pipe" });
  const address = (number: number): string => `10.111.0.${number}`;
  ip("netns", "add", lan);
  try {
    ip("-n", lan, "link", "add", "lan", "type", "bridge");
    ip("-n", lan, "address", "add", `${address(254)}/24`, "dev", "lan");
    ip("-n", lan, "link", "set", "lan", "up");
    ip("-n", lan, "link", "set", "lo", "up");
    await unpackRelease(release);
  } catch (err) {
    ip("netns", "delete", lan);
    throw err;
  }
  return {
    address,
    inside: ["nsenter", `--net=/run/netns/${lan}`],
    async boot(name, number) {
      const machine = await bootMachine({
        units: ["containerd.service"],
        among: { name, address: address(number), lan, release },
        ...(withDisks && { disk: await MachineDisk.make() }),
      });
      machines.push(machine);
      await untilContainerdListens(machine);
      // A new machine does not forward; the guide has the command.
      await machine.run("sh", "-c", "echo 1 >/proc/sys/net/ipv4/ip_forward");
      return machine;
    },
    async remove() {
      await Promise.all(machines.map((machine) => machine.kill()));
      ip("netns", "delete", lan);
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

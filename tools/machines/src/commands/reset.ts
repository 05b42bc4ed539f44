/** `coxswain reset`: undoes init and join on this machine. */

import { existsSync, readFileSync } from "node:fs";
import { createInterface } from "node:readline/promises";
import { messageOf } from "@coxswain/apimachinery/objects/errors/message";
import type { Command } from "commander";
import { defaultCriSocket } from "../config/settings.ts";
import { etcdDropIn } from "../control-plane/etcd-unit.ts";
import { etcdClient, localEtcd } from "../etcd/client.ts";
import { Failure } from "../failure.ts";
import { isActive } from "../host/systemd.ts";
import { afterRemoval, type ResetContext, remains } from "../reset/remains.ts";
import { removeAll } from "../steps.ts";
import { type Archive, list, newCommand, withDryRun } from "./options.ts";

interface Flags {
  readonly dryRun: boolean;
  readonly force: boolean;
  readonly criSocket: string;
  readonly skipPhases: readonly string[];
}

export const resetCommand = ({ home }: Archive): Command =>
  withDryRun(
    newCommand("reset", "Undoes init and join on this machine. The data of its etcd, its pods and certificates are removed."),
  )
    .option("-f, --force", "do not ask", false)
    .option("--cri-socket <path>", "socket of the container runtime", defaultCriSocket)
    .option("--skip-phases <names>", "phases to leave out, comma separated", list, [])
    .addHelpText(
      "after",
      `\nPhases: remove-etcd-member, ${remains.map(({ name }) => name).join(", ")}\nThe Node object stays: kubectl delete node <name>.`,
    )
    .action((flags: Flags) => reset(home, flags));

async function reset(home: string, flags: Flags): Promise<void> {
  const { dryRun, force, criSocket, skipPhases: skip } = flags;
  if (process.getuid?.() !== 0) throw new Failure("reset needs root: run it with sudo");
  const context: ResetContext = { home, criSocket, etcdDataDir: dataDirOf() };
  const print = (line: string): void => console.log(line);
  if (!dryRun && !force && !(await isAgreed())) throw new Failure("nothing was changed");
  if (!skip.includes("remove-etcd-member")) await leaveEtcd(dryRun, print);
  await removeAll(remains, context, { dryRun, skip, print });
  if (dryRun) return;
  await afterRemoval();
  print(
    "This machine belongs to no cluster now. Its Node object stays until kubectl delete node; so do CNI configurations of other networks, and images.",
  );
}

/** The data folder of this machine's etcd member. */
function dataDirOf(): string {
  const text = existsSync(etcdDropIn) ? readFileSync(etcdDropIn, "utf8") : "";
  return /--data-dir=(\S+)/.exec(text)?.[1] ?? "/var/lib/etcd";
}

async function isAgreed(): Promise<boolean> {
  if (!process.stdin.isTTY) throw new Failure("reset removes the data of this machine's etcd and pods: confirm with --force");
  const input = createInterface({ input: process.stdin, output: process.stdout });
  try {
    return /^y(es)?$/i.test(
      await input.question("This removes the data of this machine's etcd, its pods and certificates. Go on? [y/N] "),
    );
  } finally {
    input.close();
  }
}

/** A stopped member that is not removed still counts for the quorum. The last member of a cluster cannot be removed. */
async function leaveEtcd(dryRun: boolean, print: (line: string) => void): Promise<void> {
  if (!existsSync(etcdDropIn) || !(await isActive("etcd"))) return;
  const name = /--name=(\S+)/.exec(readFileSync(etcdDropIn, "utf8"))?.[1];
  try {
    const client = etcdClient([localEtcd]);
    try {
      const members = await client.members();
      const own = members.find((member) => member.name === name);
      if (own === undefined || members.length === 1) return;
      print(`[remove-etcd-member] ${dryRun ? "would " : ""}remove ${own.name} (${own.id}) from etcd's ${members.length} members`);
      if (!dryRun) await client.remove(own.id);
    } finally {
      client.close();
    }
  } catch (err) {
    const words = messageOf(err);
    // The member may have been removed before, or the quorum is lost; the machine is cleaned up regardless.
    print(
      `[remove-etcd-member] ${words}; if it is still a member: etcdctl member list, etcdctl member remove, on another machine`,
    );
  }
}

/** `coxswain etcd members|remove-member` and `coxswain etcd snapshot save|list|verify|restore|schedule`. */

import { readFileSync, rmSync } from "node:fs";
import { hostname } from "node:os";
import { join } from "node:path";
import { messageOf } from "@coxswain/apimachinery/objects/errors/message";
import { formatTime } from "@coxswain/apimachinery/objects/meta/time";
import type { Command } from "commander";
import { etcdDropIn } from "../control-plane/etcd-unit.ts";
import { etcdClient, localEtcd } from "../etcd/client.ts";
import { memberOf, type Restore, restoreSteps } from "../etcd/restore.ts";
import { readSnapshot } from "../etcd/snapshot-file.ts";
import { defaultFolder, listSnapshots, removeSurplus, saveSnapshot, snapshotName } from "../etcd/snapshots.ts";
import { Failure, UsageFailure } from "../failure.ts";
import { missingFiles, readIfThere, writeFiles } from "../host/files.ts";
import { runProgram } from "../host/programs.ts";
import { reloadUnits, stopUnits } from "../host/systemd.ts";
import { startTimer, timers, timerUnits } from "../host/timer.ts";
import { runSteps } from "../steps.ts";
import { type Archive, count, list, newCommand, printTable, withDryRun } from "./options.ts";

interface Flags {
  readonly dir: string;
  readonly dryRun: boolean;
  readonly keep?: number;
  readonly keyFile?: string;
  readonly endpoint: string;
  readonly force: boolean;
  readonly initialCluster: readonly string[];
  readonly onCalendar: string;
  readonly remove: boolean;
}

const keyFileFlag = [
  "--key-file <file>",
  "64 hexadecimal digits (openssl rand -hex 32) with which snapshots are sealed",
] as const;
const folderFlag = ["--dir <folder>", "folder of the snapshots", defaultFolder] as const;
const keepFlag = ["--keep <number>", "snapshots of this machine that stay in the folder; older ones are removed", count] as const;

export function etcdCommand({ home }: Archive): Command {
  const command = newCommand("etcd", "The cluster's database, on a machine of the control plane.");
  command.addCommand(
    newCommand("members", "Lists the members of etcd.")
      .option("--endpoint <url>", "member that is queried", localEtcd)
      .action(({ endpoint }: Flags) => members(endpoint)),
  );
  command.addCommand(
    withDryRun(newCommand("remove-member", "Removes the member of a machine that is lost; until then it counts for the quorum."))
      .argument("<name>", "as `members` lists it")
      .option("--endpoint <url>", "member that executes the command", localEtcd)
      .action((name: string, flags: Flags) => removeMember(name, flags)),
  );
  const snapshot = newCommand("snapshot", "Saves and restores all objects of the cluster.");
  snapshot.addCommand(
    withDryRun(newCommand("save", "Writes a snapshot, verified by its checksum."))
      .argument("[file]", "default: a new file in the folder")
      .option(...folderFlag)
      .option(...keepFlag)
      .option(...keyFileFlag)
      .option("--endpoint <url>", "member that is queried", localEtcd)
      .action((file: string | undefined, flags: Flags) => save(file, flags)),
  );
  snapshot.addCommand(
    newCommand("list", "Lists the snapshots in the folder.")
      .option(...folderFlag)
      .action(({ dir }: Flags) => show(dir)),
  );
  snapshot.addCommand(
    newCommand("verify", "Reads a snapshot whole and compares its checksum.")
      .argument("<file>")
      .option(...keyFileFlag)
      .action((file: string, { keyFile }: Flags) => {
        const { sizeBytes, isSealed } = readSnapshot(file, keyOf(keyFile));
        console.log(`${file} is whole: ${sizeBytes} bytes${isSealed ? ", sealed" : ""}`);
      }),
  );
  snapshot.addCommand(
    withDryRun(
      newCommand("restore", "Puts the data of a snapshot in place of this machine's; the present data is kept beside it."),
    )
      .argument("<file>")
      .option(...keyFileFlag)
      .option("-f, --force", "needed to change anything: what was written after the snapshot is lost", false)
      .option(
        "--initial-cluster <members>",
        "all machines that are restored from the same file, m1=https://192.0.2.11:2380,…; on each the same (default: this one alone)",
        list,
        [],
      )
      .action((file: string, flags: Flags) => restore(file, flags)),
  );
  snapshot.addCommand(
    withDryRun(newCommand("schedule", "Has systemd save snapshots."))
      .option("--on-calendar <time>", "when, as in systemd.time(7)", "daily")
      .option(...folderFlag)
      .option(...keepFlag)
      .option(...keyFileFlag)
      .option("--remove", "no more snapshots; those in the folder stay", false)
      .action((flags: Flags) => schedule(home, flags)),
  );
  command.addCommand(snapshot);
  return command;
}

async function members(endpoint: string): Promise<void> {
  const client = etcdClient([endpoint]);
  try {
    const found = await client.members();
    const { leader } = await client.status();
    printTable([
      ["ID", "NAME", "STATE", "PEERS", "CLIENTS"],
      ...found.map(({ id, name, isLearner, peerUrls, clientUrls }) => [
        id,
        name || "<not started>",
        isLearner ? "learner" : id === leader ? "leader" : "follower",
        peerUrls.join(","),
        clientUrls.join(",") || "<none>",
      ]),
    ]);
  } finally {
    client.close();
  }
}

async function removeMember(name: string, { endpoint, dryRun }: Flags): Promise<void> {
  const client = etcdClient([endpoint]);
  try {
    const found = await client.members();
    const own = found.find((member) => member.name === name || member.id === name);
    if (own === undefined)
      throw new UsageFailure(`etcd has no member ${name}; it has ${found.map((member) => member.name || member.id).join(", ")}`);
    console.log(`${dryRun ? "would remove" : "remove"} ${own.name} (${own.id}) from etcd's ${found.length} members`);
    if (!dryRun) await client.remove(own.id);
  } finally {
    client.close();
  }
}

async function save(file: string | undefined, { dir, keep, keyFile, endpoint, dryRun }: Flags): Promise<void> {
  const machine = hostname().toLowerCase();
  const path = file ?? join(dir, snapshotName(machine, Date.now()));
  const key = keyOf(keyFile);
  if (file !== undefined && keep !== undefined) throw new UsageFailure("--keep is for a folder, not for a file");
  if (dryRun) return console.log(`would write ${path}${key === undefined ? "" : ", sealed"}`);
  const client = etcdClient([endpoint]);
  try {
    console.log(`saved ${path}: ${await saveSnapshot({ client, path, key })} bytes${key === undefined ? "" : ", sealed"}`);
  } finally {
    client.close();
  }
  if (keep !== undefined) for (const removed of removeSurplus(dir, machine, keep)) console.log(`removed ${removed}`);
}

function show(folder: string): void {
  const found = listSnapshots(folder);
  if (found.length === 0) console.log(`there are no snapshots in ${folder}`);
  else
    printTable([
      ["FILE", "SIZE", "TIME"],
      ...found.map(({ path, sizeBytes, modifiedMs }) => [path, `${sizeBytes}`, formatTime(modifiedMs)]),
    ]);
}

async function restore(file: string, { keyFile, force, dryRun, initialCluster }: Flags): Promise<void> {
  const member = memberOf(readIfThere(etcdDropIn));
  const members = initialCluster.length === 0 ? { [member.name]: member.peerUrl } : membersIn(initialCluster);
  if (members[member.name] !== member.peerUrl)
    throw new UsageFailure(`--initial-cluster lacks this machine: ${member.name}=${member.peerUrl}`);
  if (!dryRun && !force) throw new Failure("a restore discards everything written after the snapshot: confirm with --force");
  const context: Restore = { ...member, snapshot: file, key: keyOf(keyFile), members, nowMs: Date.now() };
  await runSteps(restoreSteps, context, { dryRun, print: (line) => console.log(line) });
  if (dryRun) return;
  const others = Object.keys(members).filter((name) => name !== member.name);
  if (others.length > 0)
    console.log(`etcd waits for a majority: run the same command on ${others.join(", ")} with the same file`);
  else
    console.log(
      "etcd has this member only. Other machines of the control plane: coxswain reset, then join --control-plane again.",
    );
}

/** @throws UsageFailure */
function membersIn(texts: readonly string[]): Record<string, string> {
  return Object.fromEntries(
    texts.map((text) => {
      const [, name, url] = /^([^=]+)=(https:\/\/\S+)$/.exec(text) ?? [];
      if (name === undefined || url === undefined)
        throw new UsageFailure(`--initial-cluster: ${text} is not name=https://address:2380`);
      return [name, url];
    }),
  );
}

async function schedule(home: string, { onCalendar, dir, keep = 7, keyFile, remove, dryRun }: Flags): Promise<void> {
  keyOf(keyFile);
  const words = [
    join(home, "bin", "coxswain"),
    "etcd",
    "snapshot",
    "save",
    `--dir=${dir}`,
    `--keep=${keep}`,
    ...(keyFile ? [`--key-file=${keyFile}`] : []),
  ];
  const units = timerUnits({ name: timers.snapshots, description: "Snapshot of etcd", onCalendar, delay: "1min", words });
  if (remove) {
    for (const { path } of units) console.log(`${dryRun ? "would remove" : "removed"} ${path}`);
    if (dryRun) return;
    await stopUnits([`${timers.snapshots}.timer`]);
    for (const { path } of units) rmSync(path, { force: true });
    await reloadUnits();
    return;
  }
  await runProgram("systemd-analyze", ["calendar", onCalendar]);
  for (const line of missingFiles(units)) console.log(`${dryRun ? "would " : ""}${line}`);
  if (dryRun) return;
  writeFiles(units);
  await startTimer(timers.snapshots);
  console.log(`snapshots are saved in ${dir} (${onCalendar}); the newest ${keep} stay`);
}

/** @throws UsageFailure; the message does not repeat the key */
function keyOf(file: string | undefined): Buffer | undefined {
  if (file === undefined) return undefined;
  let text: string;
  try {
    text = readFileSync(file, "utf8").trim();
  } catch (err) {
    throw new UsageFailure(`cannot read the key: ${messageOf(err)}`);
  }
  if (!/^[0-9a-f]{64}$/i.test(text)) throw new UsageFailure(`${file} does not have 64 hexadecimal digits`);
  return Buffer.from(text, "hex");
}

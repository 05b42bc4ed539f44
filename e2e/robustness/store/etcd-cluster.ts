import { type ChildProcess, execFile, spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { waitFor } from "../../framework/wait-for.ts";

/**
 * etcd with several members on this machine, each in its own network namespace with its own small disk, so that it can be killed,
 * paused, partitioned and filled up. Namespaces and mounts are held by a process that dies with this one, so nothing remains
 * however the test ends.
 */
export interface EtcdCluster {
  readonly endpoints: readonly string[];
  readonly members: readonly EtcdMember[];
  /** Compacts history up to `revision`; an already compacted revision is not an error. */
  compact(revision: number): Promise<void>;
  /** Writes a key outside of every watched prefix. */
  writeElsewhere(): Promise<void>;
  /** Requests a leader change, which may fail. */
  moveLeader(): Promise<void>;
  /** Resolves when all members answer linearizable reads again. */
  healthy(): Promise<void>;
  stop(): Promise<void>;
}

export interface EtcdMember {
  readonly name: string;
  readonly endpoint: string;
  kill(): Promise<void>;
  start(): void;
  pause(): void;
  resume(): void;
  /** Partitioned from the other members only, or also from all clients. */
  isolate(from: "members" | "all"): Promise<void>;
  rejoin(): Promise<void>;
  /** Fills the disk. etcd exits when its database has to grow. */
  fillDisk(): Promise<void>;
  freeDisk(): Promise<void>;
  defragment(): Promise<void>;
}

interface TestContext {
  after(fn: () => void | Promise<void>): void;
}

const run = promisify(execFile);
/** etcd preallocates 64 MiB for each of two WAL segments. */
const diskMb = 192;
/** Timeout of a call by a test, on a loaded machine. */
const answerMs = 20_000;

/** @returns the reason why namespaces cannot be created here, for a test's `skip`; false when they can. */
export async function noNamespaces(): Promise<string | false> {
  if (process.getuid?.() !== 0) return "needs root for network namespaces";
  for (const tool of [
    ["unshare", "--net", "true"],
    ["nsenter", "--version"],
    ["ip", "-V"],
    ["iptables", "--version"],
    ["etcd", "--version"],
  ]) {
    const [command = "", ...args] = tool;
    if (
      await run(command, args).then(
        () => false,
        () => true,
      )
    )
      return `needs ${command}, which does not work here`;
  }
  return false;
}

/** @param program the etcd program of each member, by its number */
export async function startEtcdCluster(
  t: TestContext,
  size = 3,
  program: (member: number) => string = () => "etcd",
): Promise<EtcdCluster> {
  const directory = mkdtempSync(join(tmpdir(), "cox-members-"));
  const holders: ChildProcess[] = [];
  const members: (EtcdMember & { end(): void })[] = [];
  const stop = async (): Promise<void> => {
    for (const member of members) member.end();
    for (const holder of holders) holder.kill("SIGKILL");
    rmSync(directory, { recursive: true, force: true });
  };
  t.after(stop);

  // The block reserved for benchmark tests (RFC 2544), to avoid conflicts with the machine's networks.
  const subnet = `198.${18 + (process.pid % 2)}.${(process.pid >> 1) % 256}`;
  const link = `cxh${process.pid}`;
  const ips = Array.from({ length: size }, (_, i) => `${subnet}.${i + 1}`);
  const spaces = [await newSpace(), ...(await Promise.all(ips.map(newSpace)))] as [Space, ...Space[]];
  holders.push(...spaces.map(({ holder }) => holder));
  const [hub, ...nodes] = spaces;
  // The bridge has its own namespace, where the machine's firewall rules do not apply.
  await hub.run("ip", "link", "add", "hub", "type", "bridge");
  await hub.run("ip", "link", "set", "hub", "up");
  await run("ip", ["link", "add", link, "type", "veth", "peer", "name", "host", "netns", String(hub.pid)]);
  await hub.run("ip", "link", "set", "dev", "host", "master", "hub", "up");
  await run("ip", ["address", "add", `${subnet}.254/24`, "dev", link]);
  await run("ip", ["link", "set", link, "up"]);
  for (const [i, node] of nodes.entries()) {
    await hub.run("ip", "link", "add", `m${i}`, "type", "veth", "peer", "name", "eth0", "netns", String(node.pid));
    await hub.run("ip", "link", "set", `m${i}`, "master", "hub", "up");
    await node.run("ip", "address", "add", `${ips[i]}/24`, "dev", "eth0");
    await node.run("ip", "link", "set", "eth0", "up");
    await node.run("ip", "link", "set", "lo", "up");
    await node.run("mount", "-t", "tmpfs", "-o", `size=${diskMb}m`, "disk", directory);
    members.push(newMember({ hub, node, index: i, ips, directory, program: program(i) }));
  }
  for (const member of members) member.start();

  const endpoints = members.map(({ endpoint }) => endpoint);
  const cluster: EtcdCluster = {
    endpoints,
    members,
    async compact(revision) {
      await anyOf(endpoints, (endpoint) => ask(endpoint, "kv/compaction", { revision: String(revision) })).catch((err: Error) => {
        if (!err.message.includes("has been compacted")) throw err;
      });
    },
    async writeElsewhere() {
      const key = Buffer.from("/elsewhere").toString("base64");
      await anyOf(endpoints, (endpoint) => ask(endpoint, "kv/put", { key, value: "" }));
    },
    async moveLeader() {
      for (const endpoint of endpoints) {
        const status = await ask<{ header: { member_id: string }; leader: string }>(endpoint, "maintenance/status", {}).catch(
          () => undefined,
        );
        if (status === undefined || status.leader !== status.header.member_id) continue;
        const { members: all } = await ask<{ members: { ID: string }[] }>(endpoint, "cluster/member/list", {});
        const next = all.find(({ ID }) => ID !== status.leader)?.ID;
        await ask(endpoint, "maintenance/transfer-leadership", { targetID: next }).catch(() => {});
        return;
      }
    },
    async healthy() {
      await waitFor(
        "all members of etcd to answer",
        () => Promise.all(endpoints.map((endpoint) => ask(endpoint, "kv/range", { key: "AA==" }))).then(() => true),
        { retry: () => true }, // any reason why a member does not respond
      );
    },
    stop,
  };
  await cluster.healthy();
  return cluster;
}

interface MemberOptions {
  hub: Space;
  node: Space;
  index: number;
  ips: readonly string[];
  directory: string;
  program: string;
}

function newMember({ hub, node, index, ips, directory, program }: MemberOptions): EtcdMember & { end(): void } {
  const ip = ips[index];
  const endpoint = `http://${ip}:2379`;
  const flags = {
    "--name": `m${index}`,
    "--data-dir": join(directory, "data"),
    "--listen-client-urls": endpoint,
    "--advertise-client-urls": endpoint,
    "--listen-peer-urls": `http://${ip}:2380`,
    "--initial-advertise-peer-urls": `http://${ip}:2380`,
    "--initial-cluster": ips.map((other, i) => `m${i}=http://${other}:2380`).join(),
    "--log-level": "error",
    "--logger": "zap",
  };
  let child: ChildProcess | undefined;
  const firewall = (action: "-A" | "-D", ...rule: string[]): Promise<unknown> =>
    node.run("iptables", "-w", action, ...rule, "-j", "DROP");
  const rules = ips
    .filter((other) => other !== ip)
    .flatMap((other) => [
      ["INPUT", "-s", other],
      ["OUTPUT", "-d", other],
    ]);
  let cut: "members" | "all" | undefined;

  return {
    name: `m${index}`,
    endpoint,
    start() {
      const args = [
        ...node.prefix,
        "setpriv",
        "--pdeathsig",
        "KILL",
        program,
        ...Object.entries(flags).flat(),
        "--unsafe-no-fsync",
      ];
      child = spawn("nsenter", args, { stdio: "ignore" });
      child.on("error", () => {});
    },
    async kill() {
      await ended(child);
    },
    end: () => void child?.kill("SIGKILL"),
    pause: () => void child?.kill("SIGSTOP"),
    resume: () => void child?.kill("SIGCONT"),
    async isolate(from) {
      cut = from;
      if (from === "all") await hub.run("ip", "link", "set", `m${index}`, "down");
      else for (const rule of rules) await firewall("-A", ...rule);
    },
    async rejoin() {
      if (cut === "all") await hub.run("ip", "link", "set", `m${index}`, "up");
      else if (cut === "members") for (const rule of rules) await firewall("-D", ...rule);
      cut = undefined;
    },
    async fillDisk() {
      await node.run("dd", "if=/dev/zero", `of=${join(directory, "full")}`, "bs=1M").catch(() => {});
    },
    async freeDisk() {
      await node.run("rm", "-f", join(directory, "full"));
    },
    async defragment() {
      await ask(endpoint, "maintenance/defragment", {});
    },
  };
}

interface Space {
  holder: ChildProcess;
  pid: number;
  /** Arguments for nsenter. */
  prefix: readonly string[];
  run(command: string, ...args: string[]): Promise<unknown>;
}

/** A network and a mount namespace that are removed when their holder is killed or this process exits in any way. */
async function newSpace(): Promise<Space> {
  const args = [
    "--pdeathsig",
    "KILL",
    "unshare",
    "--net",
    "--mount",
    "--propagation",
    "private",
    "sh",
    "-c",
    "echo; exec sleep infinity",
  ];
  const holder = spawn("setpriv", args, { stdio: ["ignore", "pipe", "ignore"] });
  await new Promise((resolve, reject) => {
    holder.stdout.once("data", resolve);
    holder.once("exit", () => reject(new Error("cannot make a namespace")));
    holder.once("error", reject);
  });
  holder.unref();
  holder.stdout.destroy();
  const pid = holder.pid as number;
  const prefix = ["--target", String(pid), "--net", "--mount"];
  return { holder, pid, prefix, run: (command, ...rest) => run("nsenter", [...prefix, command, ...rest]) };
}

/** Kills the process and waits for its exit. */
export async function ended(child: ChildProcess | undefined): Promise<void> {
  if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
  const gone = new Promise((resolve) => child.once("exit", resolve));
  child.kill("SIGKILL");
  await gone;
}

/** etcd's JSON gateway. */
async function ask<T>(endpoint: string, path: string, body: object): Promise<T> {
  const response = await fetch(`${endpoint}/v3/${path}`, {
    method: "POST",
    body: JSON.stringify(body),
    signal: AbortSignal.timeout(answerMs),
  });
  const text = await response.text();
  if (!response.ok) throw new Error(`${path}: ${text}`);
  return JSON.parse(text) as T;
}

async function anyOf<T>(endpoints: readonly string[], call: (endpoint: string) => Promise<T>): Promise<T> {
  let last: unknown;
  for (const endpoint of endpoints) {
    try {
      return await call(endpoint);
    } catch (err) {
      last = err;
    }
  }
  throw last;
}

import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { isMissingFile, waitFor } from "@coxswain/apimachinery/testing/wait-for";
import type { MachineCluster } from "../cluster.ts";
import type { Machine } from "../machine.ts";
import { shiftClock } from "./clock.ts";

/** Whom a fault befalls: one or more units, each on a machine. */
export interface Target {
  readonly name: string;
  /** Found anew for each fault. */
  find(cluster: MachineCluster): Promise<readonly Place[]>;
  /** Whether it is a node of pods, whose loss is to bring an eviction by itself. */
  readonly isNode?: boolean;
  readonly isEtcd?: boolean;
}

interface Place {
  readonly machine: string;
  readonly units: readonly string[];
  /** Matches of iptables for its packets, by the direction as it sees it. */
  readonly packets: { readonly in: readonly string[]; readonly out: readonly string[] };
}

export interface Kind {
  readonly name: string;
  /** Whether a node is lost by it. */
  readonly losesNode: boolean;
  /** Whether it befalls the machine as a whole, whatever the target's units. */
  readonly ofMachine?: boolean;
  /** Whether it needs machines with disks of their own. */
  readonly needsDisks?: boolean;
  /** Whether etcd cannot have it. */
  readonly sparesEtcd?: boolean;
  begin(cluster: MachineCluster, place: Place): Promise<void>;
  /** Whether it has an effect, where that can be seen from outside. */
  holds?(cluster: MachineCluster, place: Place): Promise<boolean>;
  /** Undoes it; undefined when it is over by itself. */
  end?(cluster: MachineCluster, place: Place): Promise<void>;
}

export const controlPlane = ["cp1", "cp2", "cp3"];

const firstIn = (text: string, pattern: RegExp): string => {
  const [, found] = pattern.exec(text) ?? [];
  if (found === undefined) throw new Error(`no ${pattern} in ${text}`);
  return found;
};
const etcdMember = (machine: string): Place => ({
  machine,
  units: ["etcd"],
  packets: {
    in: ["INPUT --in-interface eth0 --protocol tcp --match multiport --ports 2379,2380"],
    out: ["OUTPUT --out-interface eth0 --protocol tcp --match multiport --ports 2379,2380"],
  },
});
const members = (cluster: MachineCluster): Promise<string> => cluster.machine("cp1").run("coxswain", "etcd", "members");
const leaderOf = async (cluster: MachineCluster, unit: string): Promise<string> => {
  const path = "--output=jsonpath={.spec.holderIdentity}";
  return firstIn(await cluster.kubectl("cp1", "get", "lease", "--namespace=kube-system", unit, path), /^(\w+)_/);
};
/** A client of the API server of its own machine: packets are distinguished by their user. */
const leader = (machine: string, unit: string): Place => ({
  machine,
  units: [unit],
  packets: {
    out: [`OUTPUT --match owner --uid-owner ${unit}`],
    in: [`OUTPUT --match owner --uid-owner ${unit}`, "INPUT --match connmark --mark 0x22 --protocol tcp --source-port 6443"],
  },
});

export const targets: readonly Target[] = [
  {
    name: "etcd leader",
    isEtcd: true,
    find: async (cluster) => [etcdMember(firstIn(await members(cluster), /^\w+ +(\w+) +leader /m))],
  },
  {
    name: "etcd follower",
    isEtcd: true,
    find: async (cluster) => [etcdMember(firstIn(await members(cluster), /^\w+ +(\w+) +follower /m))],
  },
  {
    name: "API server",
    find: async () => [
      {
        machine: "cp2",
        units: ["kube-apiserver"],
        packets: {
          in: ["INPUT --in-interface eth0 --protocol tcp --destination-port 6443"],
          out: ["OUTPUT --out-interface eth0 --protocol tcp --source-port 6443"],
        },
      },
    ],
  },
  {
    name: "both leaders",
    find: (cluster) =>
      Promise.all(["kube-controller-manager", "kube-scheduler"].map(async (unit) => leader(await leaderOf(cluster, unit), unit))),
  },
  {
    name: "node",
    isNode: true,
    find: async (cluster) => {
      const node = await cluster.kubectl(
        "cp1",
        "get",
        "pods",
        "--selector=app=moving",
        "--output=jsonpath={.items[0].spec.nodeName}",
      );
      const packets = { in: ["INPUT --in-interface eth0"], out: ["OUTPUT --out-interface eth0"] };
      return [{ machine: node, units: ["kubelet", "containerd"], packets }];
    },
  },
];

const signal = async (cluster: MachineCluster, { machine, units }: Place, name: string): Promise<void> => {
  await cluster.machine(machine).run("systemctl", "kill", "--kill-who=main", `--signal=${name}`, ...units);
};

/** Inserted before whatever accepts packets, and removed. */
async function drop(machine: Machine, action: "--insert" | "--delete", rules: readonly string[]): Promise<void> {
  for (const rule of rules) {
    const marks = rules.length > 1 && rule.startsWith("OUTPUT");
    const table = marks ? "--table mangle" : "--table filter";
    await machine.shell(`iptables --wait ${table} ${action} ${rule} --jump ${marks ? "CONNMARK --set-mark 0x22" : "DROP"}`);
  }
}

const partition = (name: string, rules: (packets: Place["packets"]) => readonly (readonly string[])[]): Kind => ({
  name,
  losesNode: true,
  begin: async (cluster, { machine, packets }) => {
    for (const each of rules(packets)) await drop(cluster.machine(machine), "--insert", each);
  },
  end: async (cluster, { machine, packets }) => {
    for (const each of rules(packets)) await drop(cluster.machine(machine), "--delete", each);
  },
});

/** Both ends of a machine's link: what goes to it and what comes from it. */
async function shape(cluster: MachineCluster, name: string, action: "add" | "del"): Promise<void> {
  const limit = action === "add" ? ["tbf", "rate", "1mbit", "burst", "16kb", "latency", "400ms"] : [];
  const change = (link: string): string[] => ["qdisc", action, "dev", link, "root", ...limit];
  const [command = "", ...args] = cluster.network.inside;
  execFileSync(command, [...args, "tc", ...change(name)], { stdio: "pipe" });
  await cluster.machine(name).run("tc", ...change("eth0"));
}

/** An fsync of etcd's log takes 0.1 to 0.2 s then, and a commit of its database a second, as on a disk that fails. */
const writesPerSecond = 10;
const hourMs = 3_600_000;

/** Of a process of the machine. */
async function secondsOfWrites(machine: Machine, count: number): Promise<number> {
  const write = `dd if=/dev/zero of=/var/lib/kubelet/written bs=4k count=${count} oflag=dsync 2>/root/writing; mv /root/writing /root/written`;
  await machine.shell(`rm --force /root/written; systemd-run --quiet --collect sh -c '${write}'`);
  const printed = await waitFor(() => readFileSync(machine.path("/root/written"), "utf8"), { retry: isMissingFile });
  return Number(firstIn(printed, /, ([\d.]+) s, /));
}

/** What the machine's kubelet took for the time when it renewed its lease last. */
async function clockOf(cluster: MachineCluster, machine: string): Promise<number> {
  const path = "--output=jsonpath={.spec.renewTime}";
  return Date.parse(await cluster.kubectl("cp1", "get", "lease", "--namespace=kube-node-lease", machine, path));
}

export const kinds: readonly Kind[] = [
  { name: "kill -9", losesNode: false, begin: (cluster, place) => signal(cluster, place, "KILL") },
  {
    name: "SIGSTOP",
    losesNode: true,
    begin: (cluster, place) => signal(cluster, place, "STOP"),
    end: (cluster, place) => signal(cluster, place, "CONT"),
  },
  partition("partition, in", (packets) => [packets.in]),
  partition("partition, out", (packets) => [packets.out]),
  partition("partition", (packets) => [packets.in, packets.out]),
  {
    name: "slow link",
    losesNode: false,
    ofMachine: true,
    begin: (cluster, { machine }) => shape(cluster, machine, "add"),
    end: (cluster, { machine }) => shape(cluster, machine, "del"),
  },
  {
    name: "slow disk",
    losesNode: false,
    ofMachine: true,
    needsDisks: true,
    begin: async (cluster, { machine }) => cluster.machine(machine).limitDisk(writesPerSecond),
    holds: async (cluster, { machine }) => (await secondsOfWrites(cluster.machine(machine), 6)) > 0.3,
    end: async (cluster, { machine }) => cluster.machine(machine).limitDisk(0),
  },
  {
    // Of all daemons of the machine, there and back again.
    name: "clock jump",
    losesNode: false,
    ofMachine: true,
    sparesEtcd: true,
    begin: async (cluster, { machine }) => shiftClock(cluster.machine(machine), hourMs),
    holds: async (cluster, { machine }) => (await clockOf(cluster, machine)) - Date.now() > hourMs / 2,
    end: async (cluster, { machine }) => shiftClock(cluster.machine(machine), 0),
  },
];

import type { MachineCluster } from "../cluster.ts";
import type { Machine } from "../machine.ts";

/** Whom a fault befalls: one or more units, each on a machine. */
export interface Target {
  readonly name: string;
  /** Found anew for each fault. */
  find(cluster: MachineCluster): Promise<readonly Place[]>;
  /** Whether it is a node of pods, whose loss is to bring an eviction by itself. */
  readonly isNode?: boolean;
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
  begin(cluster: MachineCluster, place: Place): Promise<void>;
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
  { name: "etcd leader", find: async (cluster) => [etcdMember(firstIn(await members(cluster), /^\w+ +(\w+) +leader /m))] },
  { name: "etcd follower", find: async (cluster) => [etcdMember(firstIn(await members(cluster), /^\w+ +(\w+) +follower /m))] },
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
];

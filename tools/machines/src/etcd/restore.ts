/** Steps of a restore on one machine. */
import { closeSync, existsSync, mkdtempSync, openSync, renameSync, rmSync, writeSync } from "node:fs";
import { join } from "node:path";
import { etcdDropIn } from "../control-plane/etcd-unit.ts";
import { waitForEtcd } from "../control-plane/steps.ts";
import { Failure } from "../failure.ts";
import { readIfThere, writeWhole } from "../host/files.ts";
import { findProgram, runProgram, tryProgram } from "../host/programs.ts";
import { startUnits } from "../host/systemd.ts";
import type { Step } from "../steps.ts";
import { readSnapshot, type SnapshotInfo } from "./snapshot-file.ts";

export interface Restore {
  readonly snapshot: string;
  readonly key: Buffer | undefined;
  /** Name of this machine's member in etcd's unit. */
  readonly name: string;
  readonly peerUrl: string;
  readonly dataDir: string;
  /** Peer URLs by name of all machines that are restored from the same snapshot. */
  readonly members: Readonly<Record<string, string>>;
  readonly nowMs: number;
}

/** Pure: the settings of this machine's member, from its drop-in. @throws Failure */
export function memberOf(dropIn: string | undefined): Pick<Restore, "name" | "peerUrl" | "dataDir"> {
  const flag = (name: string): string => new RegExp(`--${name}=(\\S+)`).exec(dropIn ?? "")?.[1] ?? "";
  const [name, peerUrl, dataDir] = [flag("name"), flag("initial-advertise-peer-urls"), flag("data-dir")];
  if (name === "" || peerUrl === "" || dataDir === "")
    throw new Failure(`${etcdDropIn} does not exist: on a new machine, set up etcd with coxswain init or join first`);
  return { name, peerUrl, dataDir };
}

/** Pure: the drop-in with other members in a new cluster. */
export const withMembers = (dropIn: string, members: Readonly<Record<string, string>>): string =>
  dropIn
    .replace(/--initial-cluster=\S+/, `--initial-cluster=${initialCluster(members)}`)
    .replace(/--initial-cluster-state=\w+/, "--initial-cluster-state=new");

const initialCluster = (members: Readonly<Record<string, string>>): string =>
  Object.entries(members)
    .map(([name, url]) => `${name}=${url}`)
    .join(",");

const writers = ["kube-apiserver", "etcd"];

export const restoreSteps: readonly Step<Restore>[] = [
  {
    name: "verify",
    missing({ snapshot, key }) {
      if (findProgram("etcdctl") === undefined)
        throw new Failure("etcdctl is not installed: apt-get install --no-install-recommends etcd-client");
      const { sizeBytes } = readSnapshot(snapshot, key);
      return [`restore ${snapshot}, whole, ${Math.ceil(sizeBytes / 1024)} KiB`];
    },
    run() {},
  },
  {
    name: "stop",
    missing: () => writers.map((unit) => `stop ${unit}`),
    run: async () => void (await runProgram("systemctl", ["stop", ...writers])),
  },
  {
    name: "data",
    missing: (restore) => [
      ...(existsSync(join(restore.dataDir, "member")) ? [`keep the present data as ${keptAs(restore)}`] : []),
      `write ${join(restore.dataDir, "member")}`,
    ],
    run: writeData,
  },
  {
    name: "start",
    missing: () => ["start etcd, then kube-apiserver; restart kubelet"],
    async run({ members }) {
      writeWhole(etcdDropIn, withMembers(readIfThere(etcdDropIn) ?? "", members), 0o644);
      await startUnits(["etcd"]);
      // With several members etcd waits for a majority, and so does the API server's unit.
      if (Object.keys(members).length === 1) await waitForEtcd();
      await startUnits(["kube-apiserver"]);
      // If the machine joined after the snapshot was taken, its Node is missing; the kubelet registers it when it starts.
      await runProgram("systemctl", ["try-restart", "--no-block", "kubelet"]);
    },
  },
];

const keptAs = ({ dataDir, nowMs }: Restore): string =>
  join(dataDir, `member.before-${new Date(nowMs).toISOString().slice(0, 19)}`);

async function writeData(restore: Restore): Promise<void> {
  const { snapshot, key, name, peerUrl, dataDir, members } = restore;
  const folder = mkdtempSync(join(dataDir, "restore-"));
  try {
    const plain = join(folder, "snapshot.db");
    const { digest } = unsealTo(plain, snapshot, key);
    const flags = {
      name,
      "initial-cluster": initialCluster(members),
      "initial-cluster-token": clusterToken(restore, digest),
      "initial-advertise-peer-urls": peerUrl,
      "data-dir": join(folder, "data"),
    };
    const words = Object.entries(flags).map(([flag, value]) => `--${flag}=${value}`);
    await runProgram("etcdctl", ["snapshot", "restore", plain, ...words], { env: { ETCDCTL_API: "3" }, timeoutMs: 600_000 });
    await runProgram("chown", ["--recursive", `--reference=${dataDir}`, join(folder, "data")]);
    const place = join(dataDir, "member");
    if (existsSync(place)) renameSync(place, keptAs(restore));
    renameSync(join(folder, "data", "member"), place);
  } catch (err) {
    // Starts with the data that is in place: still the old data, unless it was moved above.
    await tryProgram("systemctl", "start", "--no-block", ...writers);
    throw err;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/**
 * Pure: the name of the new cluster, so that members of the old cluster are rejected. All members restored from the same file
 * get the same name.
 */
export const clusterToken = ({ members, nowMs }: Pick<Restore, "members" | "nowMs">, digest: string): string =>
  `restored-${Object.keys(members).length === 1 ? nowMs : digest.slice(0, 32)}`;

/** etcdctl needs an unencrypted file. */
function unsealTo(path: string, snapshot: string, key: Buffer | undefined): SnapshotInfo {
  const file = openSync(path, "wx", 0o600);
  try {
    return readSnapshot(snapshot, key, (piece) => {
      for (let at = 0; at < piece.length; ) at += writeSync(file, piece, at);
    });
  } finally {
    closeSync(file);
  }
}

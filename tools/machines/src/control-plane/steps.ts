/** Steps of a control plane machine. */
import { chownSync, existsSync, statSync } from "node:fs";
import { join } from "node:path";
import type { Client } from "@coxswain/apimachinery/client/client";
import { makeFolderSync } from "@coxswain/apimachinery/process/files/make-folder";
import { describeMade } from "@coxswain/pki/command";
import { makeMissing } from "@coxswain/pki/make";
import { giveToReaders } from "@coxswain/pki/readers";
import { folder } from "../config/settings.ts";
import { missingFiles, type WantedFile, writeFiles } from "../host/files.ts";
import { findProgram, runProgram } from "../host/programs.ts";
import { startUnits, unitFolder } from "../host/systemd.ts";
import { flagWords, unitFlags, unitWithFlags } from "../host/units.ts";
import { until } from "../host/until.ts";
import { asAdmin, asAdminNow, type Machine, shipped } from "../machine.ts";
import { answers, stoppedUnits } from "../node/steps.ts";
import type { Step } from "../steps.ts";
import { etcdUnit } from "./etcd-unit.ts";
import { controlPlaneDaemons, daemonFlags, type InitialCluster } from "./flags.ts";
import { pkiPlan } from "./pki.ts";
import { daemonPod, etcdPod, manifestFolder } from "./static-pods.ts";

/** Creates missing certificates and kubeconfigs. */
export const certsStep: Step<Machine> = {
  name: "certs",
  async missing({ cluster, node }) {
    const made = await makeMissing(pkiPlan(cluster, node), { dryRun: true });
    const lines = describeMade(made, true).map((line) => line.replace(/^would /, ""));
    return [...lines, ...giveToReaders(folder, "/etc/group", true).map((line) => `say that ${line}`)];
  },
  async run({ cluster, node }) {
    await makeMissing(pkiPlan(cluster, node));
    giveToReaders(folder);
  },
};

/** Creates etcd's data folder, owned by the user of the distribution's unit. */
async function makeDataFolder(path: string, owner: string): Promise<void> {
  makeFolderSync(path, 0o700);
  const [, , uid, gid] = (await runProgram("getent", ["passwd", owner])).trim().split(":");
  const before = statSync(path);
  if (before.uid !== Number(uid)) chownSync(path, Number(uid), Number(gid));
}

/** @param initial etcd's members, this one included; used only by its first start */
export function etcdStep(initial: (machine: Machine) => InitialCluster): Step<Machine> {
  return {
    name: "etcd",
    missing: async (machine) => [
      ...(existsSync(machine.cluster.etcdDataDir) ? [] : [`create ${machine.cluster.etcdDataDir}`]),
      ...missingFiles([unitOfEtcd(machine, initial(machine))]),
      ...(await stoppedUnits(["etcd"])),
    ],
    async run(machine) {
      await startEtcd(machine, initial(machine));
      await waitForEtcd();
    },
  };
}

export async function startEtcd(machine: Machine, initial: InitialCluster): Promise<void> {
  await makeDataFolder(machine.cluster.etcdDataDir, "etcd");
  writeFiles([unitOfEtcd(machine, initial)]);
  await startUnits(["etcd"]);
}

const unitOfEtcd = (machine: Machine, initial: InitialCluster): WantedFile =>
  etcdUnit(machine.cluster, machine.node, initial, findProgram("etcd") ?? "/usr/bin/etcd");

export const waitForEtcd = (): Promise<boolean> =>
  until(() => answers("http://127.0.0.1:2381/health"), {
    timeoutMs: 120_000,
    what: "etcd to be healthy",
    remedy: "journalctl --unit etcd",
  });

const daemonUnits = ({ home, cluster, node }: Machine): WantedFile[] =>
  controlPlaneDaemons.map((name) => ({
    path: join(unitFolder, `${name}.service`),
    content: unitWithFlags(shipped(home, `systemd/${name}.service`), daemonFlags(name, cluster, node)),
  }));

/** Starts API server, controller manager and scheduler as units. */
export const daemonsStep: Step<Machine> = {
  name: "control-plane",
  missing: async (machine) =>
    orNotReady(machine, [...missingFiles(daemonUnits(machine)), ...(await stoppedUnits(controlPlaneDaemons))]),
  async run(machine) {
    writeFiles(daemonUnits(machine));
    await startUnits(controlPlaneDaemons);
    await waitForApi(machine, "journalctl --unit kube-apiserver");
  },
};

/** As `etcdStep` and `daemonsStep`, as static pods; requires the kubelet to run. */
export function podsStep(initial: (machine: Machine) => InitialCluster): Step<Machine> {
  const pods = (machine: Machine): WantedFile[] => [
    etcdPod(machine.cluster, machine.node, initial(machine)),
    ...controlPlaneDaemons.map((name) => {
      const flags = {
        ...unitFlags(shipped(machine.home, `systemd/${name}.service`)),
        ...daemonFlags(name, machine.cluster, machine.node),
      };
      return daemonPod(name, [name, ...flagWords(flags)], machine.node);
    }),
  ];
  return {
    name: "control-plane",
    missing: (machine) => orNotReady(machine, missingFiles(pods(machine))),
    async run(machine) {
      makeFolderSync(manifestFolder, 0o700);
      writeFiles(pods(machine));
      await waitForApi(machine, "crictl ps --all, or ctr -n k8s.io containers list; images are imported manually");
    },
  };
}

/** An earlier attempt may have stopped while the API server was starting; the next steps need it. */
async function orNotReady(machine: Machine, lines: readonly string[]): Promise<readonly string[]> {
  if (lines.length > 0) return lines;
  const isReady = await asAdmin(machine, async (client) => client !== undefined && (await answersReady(client))).catch(
    () => false,
  );
  return isReady ? [] : ["wait until the API server is ready"];
}

const answersReady = async (client: Client): Promise<boolean> =>
  (await client.raw("GET", "/readyz", { signal: AbortSignal.timeout(5_000) })).status === 200;

const waitForApi = (machine: Machine, remedy: string): Promise<boolean> =>
  asAdminNow(machine, (client) =>
    until(() => answersReady(client), {
      timeoutMs: machine.cluster.timeoutMs,
      what: "the API server to be ready",
      remedy,
    }),
  );

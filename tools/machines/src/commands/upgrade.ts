/**
 * `coxswain upgrade plan|apply|node`: installs this archive in place of the machine's current one; with an older archive it is a
 * downgrade.
 */

import { existsSync } from "node:fs";
import { hostname } from "node:os";
import { join } from "node:path";
import type { Client } from "@coxswain/apimachinery/client/client";
import { loadKubeconfig } from "@coxswain/apimachinery/client/kubeconfig";
import { messageOf } from "@coxswain/apimachinery/objects/errors/message";
import type { Endpoints, Node } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { endpoints, nodes } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import type { Command } from "commander";
import { writeServicesRights } from "../cluster/steps.ts";
import { isControlPlane, isOwnApiReady, ownServer, serverManifest } from "../control-plane/own-server.ts";
import { Failure, UsageFailure } from "../failure.ts";
import { readIfThere } from "../host/files.ts";
import { adminConf, clientBy } from "../machine.ts";
import { kubeletFolder } from "../node/kubelet-config.ts";
import { apiServersFile, kubeletConf } from "../node/steps.ts";
import type { Step } from "../steps.ts";
import { runUpgrade, type Upgrade } from "../upgrade/apply.ts";
import { type ArchiveVersion, installedArchive, versionOf } from "../upgrade/archive.ts";
import { type ClusterVersions, machineFaults } from "../upgrade/skew.ts";
import { type Archive, duration, newCommand, printTable, withDryRun } from "./options.ts";

interface Flags {
  readonly drain: boolean;
  readonly drainTimeout: number;
  readonly dryRun: boolean;
  readonly force: boolean;
  readonly timeout: number;
}

const requestMs = 10_000;

export function upgradeCommand({ home }: Archive): Command {
  const command = newCommand(
    "upgrade",
    "Gives a machine this archive in place of its earlier one, newer or older. One machine after the other.",
  );
  const changing = (name: string, description: string): Command =>
    withDryRun(newCommand(name, description))
      .option("--drain", "evict the node's pods before; those of DaemonSets and static ones stay", false)
      .option("--drain-timeout <time>", "how long that may take", duration, 300_000)
      .option("-f, --force", "in spite of versions that upstream does not support side by side", false)
      .option(
        "--timeout <time>",
        "how long each daemon may take to work again before the earlier archive is put back",
        duration,
        120_000,
      );
  command.addCommand(
    newCommand("plan", "Lists the versions in the cluster, what stands against this archive's, and what to run.").action(() =>
      plan(home),
    ),
  );
  command.addCommand(
    changing("apply", "The first machine of the control plane, and what the cluster has of a version.").action((flags: Flags) =>
      change(home, flags, true),
    ),
  );
  command.addCommand(
    changing("node", "A node, or one of the other machines of the control plane.").action((flags: Flags) =>
      change(home, flags, false),
    ),
  );
  return command;
}

/** True when the control plane runs on this machine, as units or as static pods. */
const hasControlPlane = (): boolean => isControlPlane() || existsSync(serverManifest);

/** Host of this machine's API server, as in the cluster's list. */
const ownHost = (): string => new URL(ownServer()).host;

async function versionAt(kubeconfig: string, server: string): Promise<string | undefined> {
  const client = await clientBy(kubeconfig, `https://${server}`);
  try {
    const { status, body } = await client.raw("GET", "/version", { signal: AbortSignal.timeout(requestMs) });
    return status === 200 ? (JSON.parse(body.toString()) as { gitVersion: string }).gitVersion : undefined; // cast: the API server's /version
  } catch {
    return undefined;
  } finally {
    client.close();
  }
}

async function serversKnown(client: Client): Promise<string[]> {
  const target = { namespace: "default", name: "kubernetes" };
  const { subsets = [] } = await client.get<Endpoints>(endpoints, target, { signal: AbortSignal.timeout(requestMs) });
  return subsets.flatMap(({ addresses = [], ports = [] }) =>
    addresses.map(({ ip = "" }) => `${ip.includes(":") ? `[${ip}]` : ip}:${ports[0]?.port ?? 6443}`),
  );
}

/** All versions with an administrator's kubeconfig; on a node only those of the API servers. */
async function clusterVersions(): Promise<ClusterVersions> {
  if (!hasControlPlane()) {
    const list = readIfThere(apiServersFile)
      ?.split("\n")
      .filter((line) => line !== "");
    const servers = list ?? [new URL((await loadKubeconfig(kubeletConf)).host).host];
    return { apiServers: await versionsAt(kubeletConf, servers), kubelets: {} };
  }
  const client = await clientBy(adminConf);
  try {
    const { items } = await client.list<Node>(nodes, {}, { signal: AbortSignal.timeout(requestMs) });
    return {
      apiServers: await versionsAt(adminConf, await serversKnown(client)),
      kubelets: Object.fromEntries(
        items.map(({ metadata, status }) => [metadata.name ?? "", status?.nodeInfo?.kubeletVersion ?? ""]),
      ),
    };
  } catch (err) {
    throw new Failure(`cannot read the versions of the cluster: ${messageOf(err)}`);
  } finally {
    client.close();
  }
}

const versionsAt = async (kubeconfig: string, servers: readonly string[]): Promise<Record<string, string | undefined>> =>
  Object.fromEntries(await Promise.all(servers.map(async (server) => [server, await versionAt(kubeconfig, server)] as const)));

async function faultsOf({ kubernetes }: ArchiveVersion, versions: ClusterVersions): Promise<string[]> {
  if (!hasControlPlane()) return machineFaults(kubernetes, { own: undefined, usesOwn: false }, versions);
  const { host } = await loadKubeconfig(kubeletConf).catch(() => ({ host: "" }));
  return machineFaults(kubernetes, { own: ownHost(), usesOwn: host === ownServer() }, versions);
}

async function plan(home: string): Promise<void> {
  const to = versionOf(home);
  const from = await installedArchive().catch((err: Error) => err);
  if (from instanceof Error && !hasControlPlane() && !existsSync(kubeletConf)) throw from; // this machine is in no cluster
  const versions = await clusterVersions();
  const { apiServers, kubelets } = versions;
  printTable([
    ["COMPONENT", "CURRENT", "THIS ARCHIVE"],
    ["archive of this machine", from instanceof Error ? "<none>" : from.coxswain, to.coxswain],
    ...Object.entries(apiServers).map(([server, version]) => [
      `kube-apiserver ${server}`,
      version ?? "<no answer>",
      to.kubernetes,
    ]),
    ...Object.entries(kubelets).map(([node, version]) => [`kubelet of ${node}`, version, to.kubernetes]),
  ]);
  const faults = [...(await faultsOf(to, versions)), ...(from instanceof Error ? [from.message] : [])];
  if (faults.length > 0 || from instanceof Error) throw new Failure(faults);
  if (from.home === to.home) return console.log(`this machine has ${to.home} already`);
  console.log(`
To get ${to.coxswain}, unpack the archive on each machine and run, one machine after the other,
  ${home}/bin/coxswain upgrade apply    # on a machine of the control plane
  ${home}/bin/coxswain upgrade node     # on the others of the control plane, then on the nodes`);
}

/** The name under which the machine's kubelet registered. */
function nodeNameOf(): string {
  const flags = readIfThere(join(kubeletFolder, "kubeadm-flags.env")) ?? "";
  return (/--hostname-override=([^\s"]+)/.exec(flags)?.[1] ?? hostname()).toLowerCase();
}

const clusterStep = (home: string): Step<Upgrade> => ({
  name: "cluster",
  missing: () => ["write the rights of coxswain-services as this archive has them"],
  run: () => writeServicesRights(home),
});

async function change(home: string, flags: Flags, isFirst: boolean): Promise<void> {
  if (process.getuid?.() !== 0) throw new Failure("upgrade needs root: run it with sudo");
  const to = versionOf(home);
  const from = await installedArchive();
  if (isFirst && !isControlPlane()) {
    if (existsSync(serverManifest))
      throw new Failure(
        "the control plane runs as static pods: import the images of this archive and run coxswain init --static-pods again",
      );
    throw new UsageFailure("this machine is not part of the control plane: run coxswain upgrade node");
  }
  const faults = await faultsOf(to, await clusterVersions());
  if (faults.length > 0 && !flags.force) throw new Failure(faults);
  const kubeconfig = isControlPlane() ? adminConf : kubeletConf;
  const client = await clientBy(kubeconfig);
  const upgrade: Upgrade = {
    ...{ from, to, client, isApiReady: isOwnApiReady, nodeName: nodeNameOf(), timeoutMs: flags.timeout },
    drainMs: flags.drain ? flags.drainTimeout : undefined,
    print: (line) => console.log(line),
  };
  try {
    await runUpgrade(upgrade, flags.dryRun, isFirst ? [clusterStep(home)] : []);
  } finally {
    client.close();
  }
  if (!flags.dryRun) console.log(`This machine has ${to.coxswain} now. The archive ${from.home} is needed to go back.`);
}

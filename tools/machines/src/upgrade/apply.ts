/** Installs another archive on a machine, and restores the previous one when that fails. */

import type { Client } from "@coxswain/apimachinery/client/client";
import { messageOf } from "@coxswain/apimachinery/objects/errors/message";
import { Failure } from "../failure.ts";
import { runProgram } from "../host/programs.ts";
import { isActive } from "../host/systemd.ts";
import { until } from "../host/until.ts";
import { answers } from "../node/steps.ts";
import { runSteps, type Step } from "../steps.ts";
import { type ArchiveVersion, isSteady, runsFrom } from "./archive.ts";
import { drain, podsOn, podsToEvict, setSchedulable } from "./drain.ts";
import { filesOf, installedDaemons, missingOf, presentFiles, writeMachine } from "./machine-files.ts";

export interface Upgrade {
  readonly from: ArchiveVersion;
  readonly to: ArchiveVersion;
  readonly nodeName: string;
  /** Client with the permissions of the machine's kubelet, or of an administrator. */
  readonly client: Client;
  /** Whether the API server of this machine is ready. */
  readonly isApiReady: () => Promise<boolean>;
  /** How long a restarted daemon may take to become healthy. */
  readonly timeoutMs: number;
  /** Time limit for evicting pods; undefined: pods are not evicted. */
  readonly drainMs: number | undefined;
  readonly print: (line: string) => void;
}

const drainStep = (drainMs: number): Step<Upgrade> => ({
  name: "drain",
  missing: async ({ client, nodeName }) => [
    `mark node ${nodeName} unschedulable`,
    ...podsToEvict(await podsOn(client, nodeName)).map(({ metadata }) => `evict pod ${metadata.namespace}/${metadata.name}`),
  ],
  run: ({ client, nodeName }) => drain({ client, nodeName, timeoutMs: drainMs }),
});

const filesStep: Step<Upgrade> = {
  name: "install",
  missing: ({ from, to }) => missingOf(filesOf(presentFiles(), from.home, to.home)),
  run: ({ from, to }) => writeMachine(filesOf(presentFiles(), from.home, to.home)),
};

/** True when the restarted daemon runs from the archive and is healthy. */
async function works(name: string, home: string, isApiReady: () => Promise<boolean>): Promise<boolean> {
  if (!(await runsFrom(name, home)) || !(await isSteady(name))) return false;
  if (name === "kube-apiserver") return isApiReady();
  return name !== "kubelet" || answers("http://127.0.0.1:10248/healthz");
}

const daemonStep = (name: string): Step<Upgrade> => ({
  name,
  missing: async ({ to }) => ((await runsFrom(name, to.home)) && (await isActive(name)) ? [] : [`restart ${name}`]),
  run: (context) => restart(name, context.to.home, context),
});

async function restart(name: string, home: string, { isApiReady, timeoutMs }: Upgrade): Promise<void> {
  await runProgram("systemctl", ["restart", "--no-block", name]);
  await until(() => works(name, home, isApiReady), {
    timeoutMs,
    what: `${name} to work`,
    remedy: `journalctl --unit ${name}`,
  });
}

const uncordonStep: Step<Upgrade> = {
  name: "uncordon",
  missing: ({ nodeName }) => [`mark node ${nodeName} schedulable`],
  run: ({ client, nodeName }) =>
    until(() => setSchedulable(client, nodeName, true).then(() => true), {
      timeoutMs: 60_000,
      what: `node ${nodeName} to be written`,
    }).then(() => {}),
};

/** @param more steps of the command that follow the change of version */
const upgradeSteps = (drainMs: number | undefined, more: readonly Step<Upgrade>[]): Step<Upgrade>[] => [
  ...(drainMs === undefined ? [] : [drainStep(drainMs)]),
  filesStep,
  ...installedDaemons().map(daemonStep),
  ...(drainMs === undefined ? [] : [uncordonStep]),
  ...more,
];

/** Runs the steps. @throws Failure; the machine was rolled back to its previous version, unless the message says otherwise */
export async function runUpgrade(upgrade: Upgrade, dryRun: boolean, more: readonly Step<Upgrade>[]): Promise<void> {
  const before = presentFiles();
  try {
    await runSteps(upgradeSteps(upgrade.drainMs, more), upgrade, { dryRun, print: upgrade.print });
  } catch (err) {
    if (dryRun) throw err;
    throw new Failure([messageOf(err), ...(await goBack(upgrade, before).catch(notBack))]);
  }
}

const notBack = (err: Error): string[] => [`going back failed, too: ${err.message}`];

async function goBack(upgrade: Upgrade, before: ReturnType<typeof presentFiles>): Promise<string[]> {
  const { from, to, print, drainMs, client, nodeName } = upgrade;
  if (from.home !== to.home) {
    print(`[back] to ${from.coxswain}`);
    await writeMachine(before);
    for (const name of installedDaemons()) {
      if (await runsFrom(name, from.home)) continue;
      print(`[back] restart ${name}`);
      await restart(name, from.home, upgrade);
    }
  }
  if (drainMs !== undefined) await setSchedulable(client, nodeName, true);
  return [`this machine has ${from.coxswain} again; mend the cause and run the command once more`];
}

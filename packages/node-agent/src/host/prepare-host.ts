import { ConfigError } from "@coxswain/apimachinery/flags/run-main";
import type { Clock } from "@coxswain/apimachinery/process/clock/clock";
import type { Logger } from "@coxswain/apimachinery/process/logging/logger";
import type { AgentConfig } from "../agent-config.ts";
import { type CgroupTree, openCgroupTree } from "../resources/cgroup-tree.ts";
import { keepUtilChains } from "./iptables-util-chains.ts";
import { setKernelTunables } from "./kernel-tunables.ts";
import { acquireLockFile } from "./lock-file.ts";
import { setMaxOpenFiles, setOomScoreAdj } from "./process-limits.ts";
import { gatherSystemProcesses } from "./system-cgroup.ts";

const ownCgroupMs = 5 * 60_000;
const systemCgroupMs = 60_000;

interface PrepareHostOptions {
  clock: Clock;
  log: Logger;
  signal: AbortSignal;
  /** Default `/proc/sys`; overridden in tests. */
  kernelDir?: string;
  /** Where cgroups are mounted; default `/sys/fs/cgroup`, overridden in tests. */
  cgroupDir?: string;
}

/**
 * Prepares the host and this process: lock file, resource limits, kernel parameters, cgroups, iptables. Not used by tests
 * that run the agent in their own process.
 * @returns `contended` resolves when another process wants the lock and the agent should exit
 * @throws ConfigError
 * Source: cmd/kubelet/app/server.go run, RunKubelet
 */
export async function prepareHost(
  config: AgentConfig,
  { clock, log, signal, kernelDir, cgroupDir }: PrepareHostOptions,
): Promise<{ contended: Promise<void> }> {
  let contended = new Promise<void>(() => undefined);
  if (config.lockFile !== "") {
    const lock = await orConfigError(acquireLockFile(config.lockFile, { clock, log }));
    if (config.exitOnLockContention) contended = lock.contended(signal);
  }
  await quietly("Failed to ApplyOOMScoreAdj", setOomScoreAdj(process.pid, config.oomScoreAdj));
  await quietly("Failed to set rlimit on max file handles", setMaxOpenFiles(process.pid, config.maxOpenFiles));
  await orConfigError(setKernelTunables({ protect: config.protectKernelDefaults, log, dir: kernelDir }));
  if (config.systemCgroups === "/") throw new ConfigError('system container cannot be root ("/")');
  const { kubeletCgroups, systemCgroups } = config;
  const stays = "Failed to ensure that processes are in their cgroup";
  if (systemCgroups !== "") {
    void again(systemCgroupMs, stays, async () => gatherSystemProcesses(await openTree(log, cgroupDir), systemCgroups));
  }
  if (kubeletCgroups !== "") void again(ownCgroupMs, stays, () => moveToCgroup(kubeletCgroups, process.pid, log, cgroupDir));
  if (config.makeIptablesUtilChains) {
    const { iptablesMasqueradeBit: masqueradeBit, iptablesDropBit: dropBit } = config;
    void keepUtilChains({ masqueradeBit, dropBit, clock, log }, signal);
  }
  return { contended };

  async function quietly(message: string, attempt: Promise<void>): Promise<void> {
    await attempt.catch((err: Error) => log.warn(message, { reason: err.message }));
  }

  /** Repeated, because others (e.g. a restarted service manager) may move processes out of the cgroup. */
  async function again(everyMs: number, message: string, work: () => Promise<void>): Promise<void> {
    while (!signal.aborted) {
      await quietly(message, work());
      await clock.sleep(everyMs, signal).catch(() => undefined);
    }
  }
}

const openTree = (log: Logger, mountPoint?: string): Promise<CgroupTree> =>
  openCgroupTree({ cfsPeriodUs: 100_000, log, mountPoint });

/** Rethrows as ConfigError, which is shown to the user in one line. */
function orConfigError<T>(attempt: Promise<T>): Promise<T> {
  return attempt.catch((err: Error) => {
    throw new ConfigError(err.message);
  });
}

/** `--kubelet-cgroups`. Creates the cgroup if it does not exist. */
export async function moveToCgroup(cgroup: string, pid: number, log: Logger, mountPoint?: string): Promise<void> {
  const tree = await openTree(log, mountPoint);
  await tree.make(cgroup);
  await tree.addProcess(cgroup, pid);
}

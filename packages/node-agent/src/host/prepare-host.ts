import type { Clock } from "@coxswain/apimachinery/clock/clock";
import { ConfigError } from "@coxswain/apimachinery/flags/run-main";
import type { Logger } from "@coxswain/apimachinery/logging/logger";
import type { AgentConfig } from "../config.ts";
import { openCgroupTree } from "../resources/cgroup-tree.ts";
import { keepUtilChains } from "./iptables-util-chains.ts";
import { setKernelTunables } from "./kernel-tunables.ts";
import { acquireLockFile } from "./lock-file.ts";
import { setMaxOpenFiles, setOomScoreAdj } from "./process-limits.ts";

const ownCgroupMs = 5 * 60_000;

/**
 * What the daemon does to its machine and to its own process before it works: the lock, limits, the kernel's settings,
 * its cgroup, iptables. What runs inside another process (tests) does none of it.
 * @returns resolves when the daemon shall end because another one wants the lock; never without a lock
 * @throws ConfigError
 * Source: cmd/kubelet/app/server.go run, RunKubelet
 */
export async function prepareHost(
  config: AgentConfig,
  { clock, log, signal }: { clock: Clock; log: Logger; signal: AbortSignal },
): Promise<{ contended: Promise<void> }> {
  let contended = new Promise<void>(() => undefined);
  if (config.lockFile !== "") {
    const lock = await orConfigError(acquireLockFile(config.lockFile, { clock, log }));
    if (config.exitOnLockContention) contended = lock.contended(signal);
  }
  await quietly("Failed to ApplyOOMScoreAdj", setOomScoreAdj(process.pid, config.oomScoreAdj));
  await quietly("Failed to set rlimit on max file handles", setMaxOpenFiles(process.pid, config.maxOpenFiles));
  await orConfigError(setKernelTunables({ protect: config.protectKernelDefaults, log }));
  if (config.kubeletCgroups !== "") void keepOwnCgroup(config.kubeletCgroups);
  if (config.makeIptablesUtilChains) {
    const { iptablesMasqueradeBit: masqueradeBit, iptablesDropBit: dropBit } = config;
    void keepUtilChains({ masqueradeBit, dropBit, clock, log }, signal);
  }
  return { contended };

  async function quietly(message: string, attempt: Promise<void>): Promise<void> {
    await attempt.catch((err: Error) => log.warn(message, { reason: err.message }));
  }

  /** `--kubelet-cgroups`: somebody else (a service manager that starts anew) may move the process away again. */
  async function keepOwnCgroup(cgroup: string): Promise<void> {
    while (!signal.aborted) {
      await quietly("Failed to ensure that the process is in its cgroup", moveToCgroup(cgroup, process.pid, log));
      await clock.sleep(ownCgroupMs, signal).catch(() => undefined);
    }
  }
}

/** The machine is not as the configuration wants it: that is for whoever started us, in one line. */
function orConfigError<T>(attempt: Promise<T>): Promise<T> {
  return attempt.catch((err: Error) => {
    throw new ConfigError(err.message);
  });
}

/** Makes the cgroup where it does not exist yet. */
export async function moveToCgroup(cgroup: string, pid: number, log: Logger, mountPoint?: string): Promise<void> {
  const tree = await openCgroupTree({ cfsPeriodUs: 100_000, log, mountPoint });
  await tree.make(cgroup);
  await tree.addProcess(cgroup, pid);
}

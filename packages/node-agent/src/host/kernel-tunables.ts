import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { joinedFailures } from "@coxswain/apimachinery/objects/errors/joined-failures";
import { messageOf } from "@coxswain/apimachinery/objects/errors/message";
import type { Logger } from "@coxswain/apimachinery/process/logging/logger";

/** Settings that containers rely on: memory overcommit, and a reboot after a kernel panic. */
const tunables: Readonly<Record<string, number>> = {
  "vm/overcommit_memory": 1,
  "vm/panic_on_oom": 0,
  "kernel/panic": 10,
  "kernel/panic_on_oops": 1,
  "kernel/keys/root_maxkeys": 1_000_000,
  "kernel/keys/root_maxbytes": 25_000_000,
};

interface KernelTunableOptions {
  /** `--protect-kernel-defaults`: differences are errors and nothing is changed. */
  protect: boolean;
  log: Logger;
  /** `/proc/sys`; overridden in tests. */
  dir?: string | undefined;
}

/**
 * Sets kernel parameters to the expected values. Failed writes (e.g. in a container) are logged.
 * @throws Error that lists all differences, with `protect`
 * Source: pkg/kubelet/cm/container_manager_linux.go setupKernelTunables
 */
export async function setKernelTunables({ protect, log, dir = "/proc/sys" }: KernelTunableOptions): Promise<void> {
  const differences: string[] = [];
  for (const [flag, expected] of Object.entries(tunables)) {
    const path = join(dir, flag);
    let actual: number;
    try {
      actual = Number(await readFile(path, "utf8"));
    } catch (err) {
      if (protect) differences.push(messageOf(err));
      else log.error("cannot read a kernel flag", err, { flag });
      continue;
    }
    if (actual === expected) continue;
    if (protect) {
      differences.push(`invalid kernel flag: ${flag}, expected value: ${expected}, actual value: ${actual}`);
      continue;
    }
    log.v(2)?.info("Updating kernel flag", { flag, expectedValue: expected, actualValue: actual });
    try {
      await writeFile(path, String(expected));
    } catch (err) {
      log.error("Updating kernel flag failed", err, { flag });
    }
  }
  if (differences.length === 0) return;
  throw new Error(`failed to start ContainerManager: ${joinedFailures(differences)}`);
}

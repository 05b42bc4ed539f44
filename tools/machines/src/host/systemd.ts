import { runProgram, tryProgram } from "./programs.ts";

export const unitFolder = "/etc/systemd/system";

/** False also for starting and unknown units, and without systemd. */
export const isActive = async (unit: string): Promise<boolean> =>
  (await tryProgram("systemctl", "is-active", unit))?.trim() === "active";

export const isEnabled = async (unit: string): Promise<boolean> =>
  (await tryProgram("systemctl", "is-enabled", unit))?.trim() === "enabled";

/** Starts and enables units; a running one is restarted, so that it uses the current files. */
export async function startUnits(units: readonly string[]): Promise<void> {
  await runProgram("systemctl", ["daemon-reload"]);
  await runProgram("systemctl", ["enable", ...units]);
  // Units of Type=notify may have to wait for one another.
  await runProgram("systemctl", ["restart", "--no-block", ...units]);
}

/** Also disables them, one after the other; units that do not exist are no error. */
export async function stopUnits(units: readonly string[]): Promise<void> {
  for (const unit of units) {
    // A unit that does not exist counts as stopped.
    await tryProgram("systemctl", "disable", "--now", unit);
    await tryProgram("systemctl", "reset-failed", unit);
  }
}

export const reloadUnits = (): Promise<string> => runProgram("systemctl", ["daemon-reload"]);

import { runProgram, tryProgram } from "./programs.ts";

export const unitFolder = "/etc/systemd/system";

/** False also for a unit that is starting, that is unknown, or when there is no systemd. */
export const isActive = async (unit: string): Promise<boolean> =>
  (await tryProgram("systemctl", "is-active", unit))?.trim() === "active";

export const isEnabled = async (unit: string): Promise<boolean> =>
  (await tryProgram("systemctl", "is-enabled", unit))?.trim() === "enabled";

/** Starts units at once and with the machine; a running one is restarted, so that it has the files that are there now. */
export async function startUnits(units: readonly string[]): Promise<void> {
  await runProgram("systemctl", ["daemon-reload"]);
  await runProgram("systemctl", ["enable", ...units]);
  // Those that say when they are ready may have to wait for one another.
  await runProgram("systemctl", ["restart", "--no-block", ...units]);
}

/** Also disables them, one after the other; units that do not exist are no error. */
export async function stopUnits(units: readonly string[]): Promise<void> {
  for (const unit of units) {
    // One that is not there is stopped.
    await tryProgram("systemctl", "disable", "--now", unit);
    await tryProgram("systemctl", "reset-failed", unit);
  }
}

export const reloadUnits = (): Promise<string> => runProgram("systemctl", ["daemon-reload"]);

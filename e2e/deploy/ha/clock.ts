import { cpSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Machine } from "../machine.ts";

/** Before daemons start: gives those of the machine that are ours a clock that {@link shiftClock} can set. */
export async function makeClockShiftable(machine: Machine): Promise<void> {
  cpSync(join(import.meta.dirname, "clock.cjs"), machine.path("/etc/clock.cjs"));
  await machine.run("systemctl", "set-environment", "NODE_OPTIONS=--require=/etc/clock.cjs");
}

/** @param shiftMs from the true time; 0: none */
export function shiftClock(machine: Machine, shiftMs: number): void {
  const file = machine.path("/etc/clock-shift");
  if (shiftMs === 0) rmSync(file, { force: true });
  else writeFileSync(file, String(shiftMs));
}

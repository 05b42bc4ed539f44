import type { RunProgram } from "../host/run-program.ts";
import { isOfServices, removeLeftChains } from "./iptables.ts";
import { restoreLoopbackRouting } from "./kernel-settings.ts";

/** For a process without the part: removes the rules that an earlier one has left. @returns whether there were any */
export async function removeLeftRules(prefix: string, run: RunProgram): Promise<boolean> {
  if (!(await removeLeftChains(isOfServices(prefix), run))) return false;
  await restoreLoopbackRouting(run);
  return true;
}

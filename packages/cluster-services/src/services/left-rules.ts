import type { RunProgram } from "../host/run-program.ts";
import { hasChains, isOfServices, removeChains } from "./iptables.ts";
import { restoreLoopbackRouting } from "./kernel-settings.ts";

/** For a process without the part: removes the rules that an earlier one has left. @returns whether there were any */
export async function removeLeftRules(prefix: string, run: RunProgram): Promise<boolean> {
  const isOne = isOfServices(prefix);
  const present = await Promise.all((["IPv4", "IPv6"] as const).map((family) => hasChains(family, isOne, run)));
  if (!present.includes(true)) return false;
  await removeChains(isOne, run);
  await restoreLoopbackRouting(run);
  return true;
}

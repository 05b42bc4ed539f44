import type { RunProgram } from "../host/run-program.ts";
import { cleanUp } from "../services/iptables.ts";
import { releaseAddresses } from "./local-addresses.ts";
import { chainMark } from "./names.ts";
import type { Pool } from "./pool.ts";
import { hasRules } from "./rules.ts";

/** For a process without the part: removes what an earlier one that was killed has left. @returns whether there were rules */
export async function removeLeftAddresses(pool: Pool, chainPrefix: string, run: RunProgram): Promise<boolean> {
  await releaseAddresses(pool, run);
  const present = await Promise.all((["IPv4", "IPv6"] as const).map((family) => hasRules(chainPrefix, family, run)));
  if (!present.includes(true)) return false;
  await cleanUp(`${chainPrefix}${chainMark}`, run);
  return true;
}

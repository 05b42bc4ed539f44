import type { RunProgram } from "../host/run-program.ts";
import { removeLeftChains } from "../services/iptables.ts";
import { releaseAddresses } from "./local-addresses.ts";
import type { Pool } from "./pool.ts";
import { isOfAddresses } from "./rules.ts";

/** For a process without the part: removes what an earlier one that was killed has left. @returns whether there were rules */
export async function removeLeftAddresses(pool: Pool, chainPrefix: string, run: RunProgram): Promise<boolean> {
  await releaseAddresses(pool, run);
  return removeLeftChains(isOfAddresses(chainPrefix), run);
}

import type { ServicesFlags } from "./flags.ts";
import { type RunProgram, runProgram } from "./host/run-program.ts";
import { releaseAddresses } from "./load-balancers/local-addresses.ts";
import { poolOf } from "./load-balancers/settings.ts";
import { podNetworkSettings } from "./pod-network/settings.ts";
import { withdraw } from "./pod-network/withdraw.ts";
import { cleanUp } from "./services/iptables.ts";
import { restoreLoopbackRouting } from "./services/kernel-settings.ts";
import { settingsOf } from "./services/part.ts";

/**
 * Removes what the parts have left in the kernel and in the folder of CNI configurations.
 * @param root folder of the kernel's files; tests give another
 */
export async function cleanUpMachine(flags: ServicesFlags, run: RunProgram = runProgram, root = "/"): Promise<void> {
  const { prefix } = settingsOf(flags);
  await withdraw(podNetworkSettings(flags), run);
  await releaseAddresses(poolOf(flags), run);
  await cleanUp(prefix, run); // all parts' chains begin with it
  await restoreLoopbackRouting(run, root);
}

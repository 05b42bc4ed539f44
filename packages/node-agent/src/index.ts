import type { ClientConfig } from "@coxswain/apimachinery/client/config";
import { newFeatureGates } from "@coxswain/apimachinery/flags/feature-gates";
import { parseFlags } from "@coxswain/apimachinery/flags/flags";
import { realClock } from "@coxswain/apimachinery/process/clock/clock";
import { newLogger, type RootLogger } from "@coxswain/apimachinery/process/logging/logger";
import { type RunningAgent, startAgent } from "./agent.ts";
import { newAgentConfig } from "./config.ts";
import { kubelet } from "./flags.ts";

export type { RunningAgent } from "./agent.ts";

/**
 * What `@coxswain/node-agent` offers: the kubelet in the caller's process, on a machine with a container runtime, as root.
 * @param flags as on its command line: `["--config=kubelet.yaml"]`
 * @param options.clientConfig absent: static pods only
 * @throws Error for flags and files that cannot be, and when the runtime is not there
 */
export async function startKubelet(
  flags: readonly string[],
  { clientConfig, log = newLogger() }: { readonly clientConfig?: ClientConfig; readonly log?: RootLogger } = {},
): Promise<RunningAgent> {
  const { values, set } = parseFlags(kubelet.flags, flags);
  const config = newAgentConfig(values, set);
  const featureGates = newFeatureGates("kubelet", config.featureGates);
  return startAgent({ config, api: clientConfig, featureGates, clock: realClock, log });
}

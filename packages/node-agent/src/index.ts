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
 * The public API of `@coxswain/node-agent`: runs the kubelet in the caller's process, on a machine with a container runtime, as root.
 * @param flags as on its command line: `["--config=kubelet.yaml"]`
 * @param options.clientConfig absent: runs static pods only
 * @throws Error for invalid flags and files, and when the container runtime is unreachable
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

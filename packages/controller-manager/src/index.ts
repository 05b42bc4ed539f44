import { newFeatureGates } from "@coxswain/apimachinery/flags/feature-gates";
import { parseFlags } from "@coxswain/apimachinery/flags/flags";
import type { InProcessDaemon } from "@coxswain/apimachinery/flags/in-process";
import { realClock } from "@coxswain/apimachinery/process/clock/clock";
import { newUnlimitedTurns } from "@coxswain/apimachinery/process/event-loop/turns";
import { discardLogger } from "@coxswain/apimachinery/process/logging/logger";
import { newMetricsRegistry } from "@coxswain/apimachinery/process/metrics/registry";
import { completeConfig } from "./config.ts";
import { kubeControllerManager } from "./flags.ts";
import { runManager } from "./manager.ts";

export type { InProcessDaemon, InProcessOptions } from "@coxswain/apimachinery/flags/in-process";

/**
 * The public API of `@coxswain/controller-manager`: runs kube-controller-manager in the caller's process, without a server.
 * @param flags as on its command line: `["--controllers=deployment,replicaset", "--leader-elect=false"]`
 * @throws Error for invalid flags and unknown controller names
 */
export function newControllerManager(flags: readonly string[]): InProcessDaemon {
  const { values, set } = parseFlags(kubeControllerManager.flags, flags);
  const featureGates = newFeatureGates(kubeControllerManager.name, values["feature-gates"]);
  const config = completeConfig(values, featureGates, set);
  return {
    async run({ clock = realClock, log = discardLogger, ...options }) {
      const metrics = newMetricsRegistry();
      const end = await runManager({ ...options, clock, turns: newUnlimitedTurns(), log, config, metrics, featureGates });
      if (end === "leadership-lost") throw new Error("another controller manager is the leader now");
    },
  };
}

import type { ClientConfig } from "@coxswain/apimachinery/client/config";
import type { Transport } from "@coxswain/apimachinery/client/transport";
import { newFeatureGates } from "@coxswain/apimachinery/flags/feature-gates";
import { parseFlags } from "@coxswain/apimachinery/flags/flags";
import type { Clock } from "@coxswain/apimachinery/process/clock/clock";
import type { Logger } from "@coxswain/apimachinery/process/logging/logger";
import { newMetricsRegistry } from "@coxswain/apimachinery/process/metrics/registry";
import { completeConfig } from "@coxswain/controller-manager/config";
import { kubeControllerManager } from "@coxswain/controller-manager/flags";
import { runManager } from "@coxswain/controller-manager/manager";
import type { Scratch } from "./scratch.ts";

/** What every program of a cluster is given. */
export interface ProgramOptions {
  readonly clientConfig: ClientConfig;
  readonly transport: Transport;
  readonly clock: Clock;
  readonly log: Logger;
  readonly signal: AbortSignal;
}

/**
 * kube-controller-manager without leader election: there is only one.
 * @param names as in `--controllers`
 * @returns runs it @throws Error for a name that no controller has
 */
export function newControllers(names: readonly string[], scratch: Scratch): (options: ProgramOptions) => Promise<void> {
  const { values } = parseFlags(kubeControllerManager.flags, [
    `--controllers=${names.join(",")}`,
    "--leader-elect=false",
    "--kube-api-qps=100000",
    "--kube-api-burst=100000",
    `--service-account-private-key-file=${scratch.serviceAccountKey}`,
  ]);
  const config = completeConfig(values);
  return async (options) => {
    const featureGates = newFeatureGates(kubeControllerManager.name, {});
    await runManager({ ...options, config, metrics: newMetricsRegistry(), featureGates });
  };
}

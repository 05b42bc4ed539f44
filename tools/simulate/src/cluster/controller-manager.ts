import { newFeatureGates } from "@coxswain/apimachinery/flags/feature-gates";
import { parseFlags } from "@coxswain/apimachinery/flags/flags";
import { newUnlimitedTurns } from "@coxswain/apimachinery/process/event-loop/turns";
import { newMetricsRegistry } from "@coxswain/apimachinery/process/metrics/registry";
import { completeConfig } from "@coxswain/controller-manager/config";
import { kubeControllerManager } from "@coxswain/controller-manager/flags";
import { runManager } from "@coxswain/controller-manager/manager";
import type { Life } from "./daemon.ts";

/** kube-controller-manager with leader election. */
export async function runControllerManager(
  { process, transport, clientConfig, log, signal }: Life,
  controllers: readonly string[],
  flags: readonly string[],
): Promise<void> {
  await runManager({
    config: configOf([`--controllers=${controllers.join(",")}`, "--kube-api-qps=1000", ...flags]),
    clientConfig,
    transport,
    log,
    clock: process.clock,
    metrics: newMetricsRegistry(),
    turns: newUnlimitedTurns(),
    featureGates: newFeatureGates(kubeControllerManager.name, {}),
    signal,
  });
}

const configs = new Map<string, ReturnType<typeof completeConfig>>();

/** Made once for each command line: simulations start managers with few different ones. */
const configOf = (flags: readonly string[]): ReturnType<typeof completeConfig> =>
  configs.getOrInsertComputed(flags.join("\0"), () => completeConfig(parseFlags(kubeControllerManager.flags, [...flags]).values));

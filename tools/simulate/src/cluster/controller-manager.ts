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
  const { values } = parseFlags(kubeControllerManager.flags, [
    `--controllers=${controllers.join(",")}`,
    "--kube-api-qps=1000",
    ...flags,
  ]);
  await runManager({
    config: completeConfig(values),
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

import { newLeaderStatus } from "@coxswain/apimachinery/controller/leader-status";
import { DecisionLog, decisionLimitBytes } from "@coxswain/apimachinery/decisions/decision-log";
import { metricsOptions } from "@coxswain/apimachinery/flags/metrics";
import { type Runtime, runMain } from "@coxswain/apimachinery/flags/run-main";
import { realClock } from "@coxswain/apimachinery/process/clock/clock";
import { Turns } from "@coxswain/apimachinery/process/event-loop/turns";
import { tuneDaemonHeap } from "@coxswain/apimachinery/process/memory/daemon-heap";
import { newMetricsRegistry } from "@coxswain/apimachinery/process/metrics/registry";
import { startComponentServer } from "@coxswain/apimachinery/serving/component-server";
import { completeConfig, shownConfig } from "./config.ts";
import { type ControllerManagerFlags, kubeControllerManager } from "./flags.ts";
import { loadClientConfig, runManager } from "./manager.ts";
import { newControllerHealth } from "./supervise.ts";

await runMain(kubeControllerManager, run);

/** kube-controller-manager: serves health and metrics immediately, runs controllers once it is the leader. */
async function run(flags: ControllerManagerFlags, { log, signal, featureGates, set }: Runtime): Promise<void> {
  const completed = completeConfig(flags, featureGates, set);
  const clientConfig = await loadClientConfig(completed);
  // Without --root-ca-file, the CA of the client configuration. Source: app/certificates.go startRootCACertPublisher
  const config = { ...completed, rootCa: completed.rootCa ?? clientConfig.ca };
  const clock = realClock;
  const turns = new Turns();
  const metrics = newMetricsRegistry({ processMetrics: true, turns, ...metricsOptions(flags) });
  const { enabled, resourceName: name, leaseDurationMs } = config.leaderElection;
  const leadership = enabled ? newLeaderStatus({ name, leaseDurationMs, clock, metrics }) : undefined;
  const decisions = new DecisionLog({
    component: kubeControllerManager.name,
    clock,
    registry: metrics,
    limitBytes: decisionLimitBytes(process.env),
  });
  const health = newControllerHealth({ clock, metrics });
  const server = await startComponentServer({
    name: kubeControllerManager.name,
    flags,
    log,
    clock,
    metrics,
    checks: leadership === undefined ? {} : { leaderElection: leadership.check },
    informativeChecks: Object.fromEntries([...config.controllers].map((name) => [name, () => health.check(name)])),
    configz: () => ({ "kubecontrollermanager.config.k8s.io": shownConfig(config) }),
  });
  tuneDaemonHeap({ collectsRarely: true, youngBytes: 12 * 1024 * 1024 });
  try {
    const parts = { log, clock, turns, metrics, featureGates, leadership, health, decisions, signal };
    const running = runManager({ config, clientConfig, ...parts });
    const end = await (server === undefined ? running : Promise.race([running, server.failed]));
    // Another instance is the leader now, so the process must exit. Source: app/controllermanager.go OnStoppedLeading
    if (end === "leadership-lost") log.fatal("leaderelection lost");
  } finally {
    await server?.close(0);
  }
}

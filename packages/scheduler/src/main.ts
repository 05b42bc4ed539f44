#!/usr/bin/env node
import { randomUUID } from "node:crypto";
import { writeFileSync } from "node:fs";
import { hostname } from "node:os";
import { newClient } from "@coxswain/apimachinery/client/client";
import { userAgentOf } from "@coxswain/apimachinery/client/config";
import { loadKubeconfig } from "@coxswain/apimachinery/client/kubeconfig";
import { clientMetrics } from "@coxswain/apimachinery/client/metrics";
import { realClock } from "@coxswain/apimachinery/clock/clock";
import { newEventRecorder } from "@coxswain/apimachinery/controller/event-recorder";
import { runLeaderElection } from "@coxswain/apimachinery/controller/leader-election";
import { newResourceLock } from "@coxswain/apimachinery/controller/resource-lock";
import { metricsOptions } from "@coxswain/apimachinery/flags/metrics";
import { ConfigError, runMain } from "@coxswain/apimachinery/flags/run-main";
import { newInformerFactory } from "@coxswain/apimachinery/informers/factory";
import { type MetricsRegistry, newMetricsRegistry } from "@coxswain/apimachinery/metrics/registry";
import { startComponentServer } from "@coxswain/apimachinery/serving/component-server";
import { completeConfig, type SchedulerConfig } from "./config/config.ts";
import { asWritten, asYaml } from "./config/written.ts";
import { newHttpExtender } from "./extenders/http-extender.ts";
import { kubeScheduler } from "./flags.ts";
import { newSchedulerMetrics } from "./metrics.ts";
import { newScheduler, type Scheduler, type SchedulerOptions } from "./scheduler.ts";

await runMain(kubeScheduler, async (flags, { log, signal, set, featureGates }) => {
  const config = completeConfig(flags, set, featureGates);
  const clock = realClock;
  const metrics = newMetricsRegistry({ processMetrics: true, ...metricsOptions(flags) });
  const client = await clientOf(config, metrics);
  const informers = newInformerFactory(client, { log, clock });
  const scheduler = schedulerOf({
    client,
    informers,
    clock,
    log,
    gates: featureGates,
    profiles: config.profiles,
    extenders: config.extenders.map(newHttpExtender),
    percentageOfNodesToScore: config.percentageOfNodesToScore,
    podInitialBackoffMs: config.podInitialBackoffSeconds * 1000,
    podMaxBackoffMs: config.podMaxBackoffSeconds * 1000,
    recorderOf: (component) => newEventRecorder({ client, component, log, clock }),
    metrics: newSchedulerMetrics(metrics, clock),
  });
  if (flags["write-config-to"] !== "") return writeFileSync(flags["write-config-to"], asYaml(config));
  const server = await startComponentServer({
    name: "kube-scheduler",
    flags: { ...flags, profiling: config.enableProfiling },
    log,
    clock,
    metrics,
    checks: {},
    configz: () => ({ "kubescheduler.config.k8s.io": asWritten(config) }),
  });

  const lead = async (leading: AbortSignal): Promise<void> => {
    informers.start(leading);
    await scheduler.run(leading);
  };

  const { leaderElection } = config;
  if (!leaderElection.enabled) {
    await lead(signal);
  } else {
    let leading = Promise.resolve();
    await runLeaderElection({
      ...leaderElection,
      client,
      lock: newResourceLock(leaderElection.resourceLock, leaderElection.resourceNamespace, leaderElection.resourceName),
      identity: `${hostname()}_${randomUUID()}`,
      // The next one need not wait for the lease to run out after a restart.
      releaseOnCancel: true,
      onStarted(started) {
        leading = lead(started).catch((err: unknown) => {
          if (!started.aborted) log.fatal("scheduling failed", err);
        });
      },
      onStopped() {
        // Somebody else may schedule from now on: only a new process starts with a clean view.
        if (!signal.aborted) log.fatal("leaderelection lost");
      },
      log,
      clock,
      signal,
    });
    await leading;
  }
  await server?.close(1_000);
});

async function clientOf({ clientConnection, master }: SchedulerConfig, metrics: MetricsRegistry) {
  const { kubeconfig, contentType, qps, burst } = clientConnection;
  if (kubeconfig === "" && master === "") throw new ConfigError("--kubeconfig or --master is needed to find the API server");
  const config = kubeconfig === "" ? { host: master } : await loadKubeconfig(kubeconfig, { master });
  const own = { contentType, qps, burst, userAgent: userAgentOf("kube-scheduler") };
  return newClient({ ...config, ...own }, { observer: clientMetrics(metrics) });
}

/** @throws ConfigError for profiles that cannot be put together */
function schedulerOf(options: SchedulerOptions): Scheduler {
  try {
    return newScheduler(options);
  } catch (err) {
    throw new ConfigError(`couldn't create scheduler: initializing profiles: ${(err as Error).message}`, { cause: err });
  }
}

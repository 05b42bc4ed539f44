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
import { ConfigError, runMain } from "@coxswain/apimachinery/flags/run-main";
import { newInformerFactory } from "@coxswain/apimachinery/informers/factory";
import { type MetricsRegistry, newMetricsRegistry } from "@coxswain/apimachinery/metrics/registry";
import { startComponentServer } from "@coxswain/apimachinery/serving/component-server";
import { completeConfig, type SchedulerConfig } from "./config.ts";
import { kubeScheduler } from "./flags.ts";
import { newSchedulerMetrics } from "./metrics.ts";
import { plugins } from "./plugins/catalogue.ts";
import { newScheduler } from "./scheduler.ts";

await runMain(kubeScheduler, async (flags, { log, signal, set }) => {
  const config = completeConfig(flags, set);
  if (flags["write-config-to"] !== "")
    return writeFileSync(flags["write-config-to"], `${JSON.stringify(asWritten(config), undefined, 2)}\n`);
  const clock = realClock;
  const metrics = newMetricsRegistry({ processMetrics: true, disabled: flags["disabled-metrics"] });
  const client = await clientOf(config, metrics);
  const server = await startComponentServer({
    name: "kube-scheduler",
    flags,
    log,
    clock,
    metrics,
    checks: {},
    configz: () => ({ "kubescheduler.config.k8s.io": asWritten(config) }),
  });

  const lead = async (leading: AbortSignal): Promise<void> => {
    const informers = newInformerFactory(client, { log, clock });
    const scheduler = newScheduler({
      ...config,
      client,
      informers,
      clock,
      log,
      profiles: config.profiles.map((profile) => ({
        ...profile,
        plugins: profile.plugins.flatMap((name) => plugins[name]?.({ client }) ?? []),
      })),
      recorder: newEventRecorder({ client, component: "default-scheduler", log, clock }),
      metrics: newSchedulerMetrics(metrics, clock),
    });
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

async function clientOf({ kubeconfig, master, qps, burst }: SchedulerConfig, metrics: MetricsRegistry) {
  if (kubeconfig === "" && master === "") throw new ConfigError("--kubeconfig or --master is needed to find the API server");
  const config = kubeconfig === "" ? { host: master } : await loadKubeconfig(kubeconfig, { master });
  return newClient({ ...config, qps, burst, userAgent: userAgentOf("kube-scheduler") }, { observer: clientMetrics(metrics) });
}

/** As the configuration file spells it. */
function asWritten(config: SchedulerConfig): unknown {
  const seconds = (ms: number): string => `${ms / 1000}s`;
  const { leaderElection } = config;
  return {
    apiVersion: "kubescheduler.config.k8s.io/v1beta2",
    kind: "KubeSchedulerConfiguration",
    clientConnection: { kubeconfig: config.kubeconfig, qps: config.qps, burst: config.burst },
    leaderElection: {
      leaderElect: leaderElection.enabled,
      leaseDuration: seconds(leaderElection.leaseDurationMs),
      renewDeadline: seconds(leaderElection.renewDeadlineMs),
      retryPeriod: seconds(leaderElection.retryPeriodMs),
      resourceLock: leaderElection.resourceLock,
      resourceName: leaderElection.resourceName,
      resourceNamespace: leaderElection.resourceNamespace,
    },
    percentageOfNodesToScore: config.percentageOfNodesToScore,
    podInitialBackoffSeconds: config.podInitialBackoffMs / 1000,
    podMaxBackoffSeconds: config.podMaxBackoffMs / 1000,
    profiles: config.profiles.map(({ schedulerName }) => ({ schedulerName })),
  };
}

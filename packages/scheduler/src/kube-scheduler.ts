import { randomUUID } from "node:crypto";
import { writeFileSync } from "node:fs";
import { hostname } from "node:os";
import { type ClientFamily, newClientFamily } from "@coxswain/apimachinery/client/client";
import { userAgentOf } from "@coxswain/apimachinery/client/config";
import { configFromFlags } from "@coxswain/apimachinery/client/in-cluster";
import { clientMetrics } from "@coxswain/apimachinery/client/metrics";
import { newEventRecorder } from "@coxswain/apimachinery/controller/event-recorder";
import { checkDurations, type LeaderElectionConfig, runLeaderElection } from "@coxswain/apimachinery/controller/leader-election";
import { newLeaderStatus } from "@coxswain/apimachinery/controller/leader-status";
import { newResourceLock, type ResourceLock } from "@coxswain/apimachinery/controller/resource-lock";
import { newSeriesRecorder } from "@coxswain/apimachinery/controller/series-recorder";
import { waitForServer } from "@coxswain/apimachinery/controller/wait-for-server";
import { answerQuestions } from "@coxswain/apimachinery/decisions/answer-questions";
import { DecisionLog, decisionLimitBytes } from "@coxswain/apimachinery/decisions/decision-log";
import { metricsOptions } from "@coxswain/apimachinery/flags/metrics";
import { ConfigError, runMain } from "@coxswain/apimachinery/flags/run-main";
import { newInformerFactory } from "@coxswain/apimachinery/informers/factory";
import { informerFailures, informerSync } from "@coxswain/apimachinery/informers/metrics";
import { causesOf, messageOf } from "@coxswain/apimachinery/objects/errors/message";
import { realClock } from "@coxswain/apimachinery/process/clock/clock";
import { Turns } from "@coxswain/apimachinery/process/event-loop/turns";
import { tuneDaemonHeap } from "@coxswain/apimachinery/process/memory/daemon-heap";
import { type MetricsRegistry, newMetricsRegistry } from "@coxswain/apimachinery/process/metrics/registry";
import { startComponentServer } from "@coxswain/apimachinery/serving/component-server";
import { completeConfig } from "./config/config.ts";
import type { SchedulerConfig } from "./config/scheduler-config.ts";
import { asWritten, asYaml } from "./config/written.ts";
import { kubeScheduler } from "./flags.ts";
import { newSchedulerMetrics } from "./metrics.ts";
import { newResourceMetrics } from "./resource-metrics.ts";
import { configuredOptions, Scheduler, type SchedulerOptions } from "./scheduler.ts";

await runMain(kubeScheduler, async (flags, { log, signal, set, featureGates }) => {
  const config = completeConfig(flags, set, featureGates);
  const clock = realClock;
  const turns = new Turns();
  const metrics = newMetricsRegistry({ processMetrics: true, turns, ...metricsOptions(flags) });
  const family = await clientsOf(config, metrics);
  const { qps, burst } = config.clientConnection;
  const client = family.member({ qps, burst });
  // Separate rate limits: events must not delay bindings, and neither may delay lease renewal.
  const eventClient = family.member({ qps, burst });
  const informers = newInformerFactory(client, { log, clock, onFailure: informerFailures(metrics), turns: turns.ahead });
  const decisions = new DecisionLog({
    component: "kube-scheduler",
    clock,
    registry: metrics,
    limitBytes: decisionLimitBytes(process.env),
  });
  const scheduler = schedulerOf({
    client,
    informers,
    clock,
    turns,
    log,
    gates: featureGates,
    ...configuredOptions(config),
    recorderOf: (controller) => newSeriesRecorder({ client: eventClient, controller, log, clock, signal }),
    metrics: newSchedulerMetrics(metrics, clock),
    decisions,
  });
  if (flags["write-config-to"] !== "") return writeFileSync(flags["write-config-to"], asYaml(config));
  tuneDaemonHeap({ youngBytes: 6 * 1024 * 1024 });
  const { leaderElection } = config;
  const { enabled, leaseDurationMs } = leaderElection;
  const lock = lockOf(leaderElection);
  const status = enabled ? newLeaderStatus({ name: "kube-scheduler", leaseDurationMs, clock, metrics }) : undefined;
  const resources = newResourceMetrics(() => scheduler.pods.list());
  const server = await startComponentServer({
    name: "kube-scheduler",
    flags: { ...flags, profiling: config.enableProfiling },
    log,
    clock,
    metrics,
    checks: status === undefined ? {} : { leaderElection: status.check },
    informativeChecks: { "informer-sync": informerSync(metrics, informers) },
    // Only the leader has synced informers, and one source of these metrics is enough.
    metricsPages: { "/metrics/resources": async () => (status?.isLeader === false ? "" : resources.render()) },
    configz: () => ({ "kubescheduler.config.k8s.io": asWritten(config) }),
  });

  const lead = async (leading: AbortSignal): Promise<void> => {
    informers.start(leading);
    const answerer = family.member({ qps: -1 });
    void answerQuestions({ client: answerer, recipient: decisions.component, decisions, clock, turns, log, signal: leading });
    await scheduler.run(leading);
  };

  const work = async (): Promise<void> => {
    await waitForServer(family.member({ qps: -1 }), { purpose: "scheduling", clock, log, signal });
    if (status === undefined) {
      await lead(signal);
    } else {
      let leading = Promise.resolve();
      await runLeaderElection({
        ...leaderElection,
        client: family.apart({ qps: -1, userAgent: userAgentOf("kube-scheduler", "leader-election") }),
        status,
        recorder: newEventRecorder({ client: eventClient, component: config.profiles[0]?.schedulerName ?? "", log, clock }),
        lock,
        identity: `${hostname()}_${randomUUID()}`,
        // On shutdown the next leader need not wait for the lease to expire.
        releaseOnCancel: true,
        onStarted(started) {
          leading = lead(started).catch((err: unknown) => {
            if (!started.aborted) log.fatal("scheduling failed", err);
          });
        },
        onStopped() {
          if (signal.aborted) return;
          // Another instance may schedule from now on; restart so that no stale cache is used. Source: app/server.go Run
          log.error("Leaderelection lost");
          process.exit(1);
        },
        log,
        clock,
        signal,
      });
      await leading;
    }
  };
  await (server === undefined ? work() : Promise.race([work(), server.failed]));
  await server?.close(1_000);
});

async function clientsOf({ clientConnection, master }: SchedulerConfig, metrics: MetricsRegistry): Promise<ClientFamily> {
  const { kubeconfig, contentType } = clientConnection;
  const config = await configFromFlags(kubeconfig, master).catch((err: Error) => {
    throw new ConfigError(causesOf(err), { cause: err });
  });
  const own = { contentType, userAgent: userAgentOf("kube-scheduler"), omitsManagedFields: true };
  return newClientFamily({ ...config, ...own }, { observer: clientMetrics(metrics) });
}

/** @throws ConfigError for an unknown lock type and for inconsistent durations */
function lockOf({ enabled, ...lease }: LeaderElectionConfig): ResourceLock {
  const problem = enabled ? checkDurations(lease) : undefined;
  if (problem !== undefined) throw new ConfigError(`couldn't create leader elector: ${problem}`);
  try {
    return newResourceLock(enabled ? lease.resourceLock : "leases", lease.resourceNamespace, lease.resourceName);
  } catch (err) {
    throw new ConfigError(`couldn't create resource lock: ${messageOf(err)}`, { cause: err });
  }
}

/** @throws ConfigError when a profile is invalid */
function schedulerOf(options: SchedulerOptions): Scheduler {
  try {
    return new Scheduler(options);
  } catch (err) {
    throw new ConfigError(`couldn't create scheduler: initializing profiles: ${messageOf(err)}`, { cause: err });
  }
}

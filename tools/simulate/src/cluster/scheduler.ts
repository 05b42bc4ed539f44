import { newEventRecorder } from "@coxswain/apimachinery/controller/event-recorder";
import { runLeaderElection } from "@coxswain/apimachinery/controller/leader-election";
import { newResourceLock } from "@coxswain/apimachinery/controller/resource-lock";
import { newFeatureGates } from "@coxswain/apimachinery/flags/feature-gates";
import { parseFlags } from "@coxswain/apimachinery/flags/flags";
import { newInformerFactory } from "@coxswain/apimachinery/informers/factory";
import { completeConfig } from "@coxswain/scheduler/config/config";
import { kubeScheduler } from "@coxswain/scheduler/flags";
import { noMetrics } from "@coxswain/scheduler/metrics";
import { Scheduler } from "@coxswain/scheduler/scheduler";
import type { Life } from "./daemon.ts";

/** kube-scheduler with leader election, assembled as in its main program. Ends when it is no longer the leader. */
export async function runScheduler({ process, client, log, signal }: Life, flags: readonly string[]): Promise<void> {
  const { clock } = process;
  const gates = newFeatureGates(kubeScheduler.name, {});
  const { values, set } = parseFlags(kubeScheduler.flags, [...flags]);
  const config = completeConfig(values, set, gates);
  const informers = newInformerFactory(client, { log, clock });
  const scheduler = new Scheduler({
    client,
    informers,
    clock,
    log,
    gates,
    profiles: config.profiles,
    recorderOf: (component) => newEventRecorder({ client, component, log, clock }),
    metrics: noMetrics,
  });
  const { leaderElection } = config;
  const { resourceLock, resourceNamespace, resourceName } = leaderElection;
  await runLeaderElection({
    ...leaderElection,
    client,
    lock: newResourceLock(resourceLock, resourceNamespace, resourceName),
    identity: process.name,
    releaseOnCancel: true,
    onStarted(leading) {
      informers.start(leading);
      scheduler.run(leading).catch((err: unknown) => {
        if (!leading.aborted) log.error("scheduling failed", err);
      });
    },
    log,
    clock,
    signal,
  });
}

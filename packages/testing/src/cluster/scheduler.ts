import { newClient } from "@coxswain/apimachinery/client/client";
import { newEventRecorder } from "@coxswain/apimachinery/controller/event-recorder";
import { newFeatureGates } from "@coxswain/apimachinery/flags/feature-gates";
import { parseFlags } from "@coxswain/apimachinery/flags/flags";
import { newInformerFactory } from "@coxswain/apimachinery/informers/factory";
import { completeConfig } from "@coxswain/scheduler/config/config";
import { kubeScheduler } from "@coxswain/scheduler/flags";
import { noMetrics } from "@coxswain/scheduler/metrics";
import { newScheduler } from "@coxswain/scheduler/scheduler";
import type { ProgramOptions } from "./controllers.ts";

/** kube-scheduler without leader election. */
export async function runScheduler({ clientConfig, transport, clock, log, signal }: ProgramOptions): Promise<void> {
  const client = newClient(clientConfig, { clock, transport });
  const gates = newFeatureGates(kubeScheduler.name, {});
  const { values, set } = parseFlags(kubeScheduler.flags, []);
  const informers = newInformerFactory(client, { log, clock });
  const scheduler = newScheduler({
    client,
    informers,
    clock,
    log,
    gates,
    profiles: completeConfig(values, set, gates).profiles,
    recorderOf: (component) => newEventRecorder({ client, component, log, clock }),
    metrics: noMetrics,
  });
  informers.start(signal);
  await scheduler.run(signal);
}

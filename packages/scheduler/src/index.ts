import { newClient } from "@coxswain/apimachinery/client/client";
import { newEventRecorder } from "@coxswain/apimachinery/controller/event-recorder";
import { newFeatureGates } from "@coxswain/apimachinery/flags/feature-gates";
import { parseFlags } from "@coxswain/apimachinery/flags/flags";
import type { InProcessDaemon } from "@coxswain/apimachinery/flags/in-process";
import { newInformerFactory } from "@coxswain/apimachinery/informers/factory";
import { realClock } from "@coxswain/apimachinery/process/clock/clock";
import { discardLogger } from "@coxswain/apimachinery/process/logging/logger";
import { completeConfig } from "./config/config.ts";
import { kubeScheduler } from "./flags.ts";
import { noMetrics } from "./metrics.ts";
import { configuredOptions, Scheduler } from "./scheduler.ts";

export type { InProcessDaemon, InProcessOptions } from "@coxswain/apimachinery/flags/in-process";

/**
 * The public API of `@coxswain/scheduler`: runs kube-scheduler in the caller's process, without leader election and without a server.
 * @param flags as on its command line: `["--config=scheduler.yaml"]`
 * @throws Error for invalid flags and files
 */
export function newKubeScheduler(flags: readonly string[]): InProcessDaemon {
  const { values, set } = parseFlags(kubeScheduler.flags, flags);
  const gates = newFeatureGates(kubeScheduler.name, values["feature-gates"]);
  const config = completeConfig(values, set, gates);
  return {
    async run({ clientConfig, transport, clock = realClock, log = discardLogger, signal }) {
      const client = newClient(clientConfig, { clock, ...(transport && { transport }) });
      const informers = newInformerFactory(client, { log, clock });
      const scheduler = new Scheduler({
        client,
        informers,
        clock,
        log,
        gates,
        ...configuredOptions(config),
        recorderOf: (component) => newEventRecorder({ client, component, log, clock }),
        metrics: noMetrics,
      });
      informers.start(signal);
      await scheduler.run(signal);
    },
  };
}

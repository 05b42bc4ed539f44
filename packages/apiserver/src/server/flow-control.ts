/** Sets up the load limit of the server: priority and fairness, or the two max-in-flight limits. */
import type { Client } from "@coxswain/apimachinery/client/client";
import type { DecisionLog } from "@coxswain/apimachinery/decisions/decision-log";
import type { InformerFactory } from "@coxswain/apimachinery/informers/factory";
import { flowSchemas } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import type { Clock } from "@coxswain/apimachinery/process/clock/clock";
import type { Logger } from "@coxswain/apimachinery/process/logging/logger";
import type { MetricsRegistry } from "@coxswain/apimachinery/process/metrics/registry";
import { defaultLevels, defaultSchemas, isMandatory } from "../bootstrap/flow-schemas.ts";
import type { ApiserverConfig } from "../config.ts";
import type { Filter } from "../filters/filter.ts";
import { maxInFlight } from "../filters/max-in-flight.ts";
import type { RequestMetrics } from "../filters/metrics.ts";
import { followConfiguration } from "../flow-control/configuration.ts";
import { flowControlPages } from "../flow-control/debug-pages.ts";
import { FlowControlMetrics } from "../flow-control/metrics.ts";
import type { ObjectCounts } from "../flow-control/object-counts.ts";
import { newFlowControl, priorityAndFairness } from "../flow-control/priority-and-fairness.ts";
import { newReadWriteLoad } from "../flow-control/read-write-load.ts";
import type { ServerRequest } from "../request/server-request.ts";

export interface LoadLimit {
  readonly filter: Filter;
  /** Serves the debug pages; returns false for other paths. */
  page(request: ServerRequest): boolean;
  /** Starts applying the cluster's configuration; undefined with max in flight. */
  readonly follow: ((signal: AbortSignal) => void) | undefined;
}

interface LoadLimitOptions {
  readonly config: ApiserverConfig;
  readonly fairness: boolean;
  readonly client: Client;
  readonly informers: InformerFactory;
  readonly objectCounts: ObjectCounts;
  readonly clock: Clock;
  readonly log: Logger;
  readonly metrics: MetricsRegistry;
  readonly requestMetrics: RequestMetrics;
  readonly decisions?: DecisionLog | undefined;
}

/** @throws Error when the limits add up to zero with priority and fairness */
export function newLoadLimit(options: LoadLimitOptions): LoadLimit {
  const { config, clock, requestMetrics } = options;
  const { flags } = config;
  const [maxReadOnly, maxMutating] = [flags["max-requests-inflight"], flags["max-mutating-requests-inflight"]];
  const load = newReadWriteLoad(options.metrics, clock);
  if (!options.fairness) {
    const filter = maxInFlight({ maxReadOnly, maxMutating, clock, metrics: requestMetrics, load });
    return { filter, page: () => false, follow: undefined };
  }
  if (maxReadOnly + maxMutating <= 0) {
    throw new Error(
      `invalid configuration: MaxRequestsInFlight=${maxReadOnly} and MaxMutatingRequestsInFlight=${maxMutating}; they must add up to something positive`,
    );
  }
  const flowControl = newFlowControl({
    mandatory: { levels: defaultLevels.filter(isMandatory), schemas: defaultSchemas.filter(isMandatory) },
    limits: { concurrency: maxReadOnly + maxMutating, requestWaitLimitMs: flags["request-timeout"] / 4 },
    clock,
    metrics: new FlowControlMetrics(options.metrics, clock),
  });
  const storedObjects = options.objectCounts.of;
  // An informer of a resource that is not served never syncs.
  const isServed = ["flowschemas", "prioritylevelconfigurations"].every((resource) =>
    config.served("flowcontrol.apiserver.k8s.io", "v1beta2", resource, true),
  );
  return {
    filter: priorityAndFairness({
      flowControl,
      storedObjects,
      clock,
      metrics: requestMetrics,
      load,
      refused: refusalsIn(options.decisions),
    }),
    page: flowControlPages(flowControl),
    follow: isServed ? followConfiguration({ ...options, flowControl }) : () => {},
  };
}

/** Records, for each flow schema, the last request that was rejected with 429. */
function refusalsIn(decisions: DecisionLog | undefined) {
  return ({ user, info }: ServerRequest, schema: string): void => {
    const { group, resource, kind } = flowSchemas;
    const { verb, path } = info;
    const { name: lastUser } = user;
    decisions?.record({ group, resource, kind, namespace: "", name: schema, uid: "" }, "flow-control", {
      verdict: "refused",
      reason: "TooManyRequests",
      description: () => ({
        summary: "requests of its flows got 429: the seats and queues of its priority level were taken",
        details: { lastUser, lastRequest: `${verb} ${path}` },
        remedy: "send fewer or smaller requests, or give its priority level more shares",
      }),
      sizeBytes: 300 + 2 * (path.length + lastUser.length),
    });
  };
}

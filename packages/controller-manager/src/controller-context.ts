import type { Client } from "@coxswain/apimachinery/client/client";
import type { QueueMetrics } from "@coxswain/apimachinery/controller/controller";
import type { EventRecorder } from "@coxswain/apimachinery/controller/event-recorder";
import type { DecisionLog } from "@coxswain/apimachinery/decisions/decision-log";
import type { FeatureGates } from "@coxswain/apimachinery/flags/feature-gates";
import type { InformerFactory } from "@coxswain/apimachinery/informers/factory";
import type { Clock } from "@coxswain/apimachinery/process/clock/clock";
import type { Turns } from "@coxswain/apimachinery/process/event-loop/turns";
import type { Logger } from "@coxswain/apimachinery/process/logging/logger";
import type { MetricsRegistry } from "@coxswain/apimachinery/process/metrics/registry";
import type { ControllerManagerConfig } from "./config/controller-manager-config.ts";
import type { ResourceDiscovery } from "./resource-discovery.ts";

/** Dependencies of a controller. Each has its own client (user agent, credentials), log and recorder; informers are shared. */
export interface ControllerContext {
  readonly client: Client;
  readonly informers: InformerFactory;
  /** The resources that the server serves, for controllers that look for new ones. */
  readonly discovery: ResourceDiscovery;
  readonly recorder: EventRecorder;
  /** Recorder for a part with its own Event source. */
  readonly recorderOf: (component: string) => EventRecorder;
  /** Decisions of all controllers about objects, for `kubectl why`. */
  readonly decisions: DecisionLog;
  readonly config: ControllerManagerConfig;
  readonly log: Logger;
  readonly clock: Clock;
  readonly queueMetrics?: QueueMetrics | undefined;
  readonly turns: Turns;
  /** Registry for the controller's own metrics. */
  readonly registry: MetricsRegistry;
  readonly featureGates: FeatureGates;
}

/** A controller: one or several loops under one name. */
export interface Runnable {
  /** Resolves after `signal` is aborted and the work in progress has finished. */
  run(signal: AbortSignal): Promise<void>;
}

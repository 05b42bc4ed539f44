import type { Client } from "@coxswain/apimachinery/client/client";
import type { EventRecorder } from "@coxswain/apimachinery/controller/event-recorder";
import type { FeatureGates } from "@coxswain/apimachinery/flags/feature-gates";
import type { InformerFactory } from "@coxswain/apimachinery/informers/factory";
import type { Clock } from "@coxswain/apimachinery/process/clock/clock";
import type { Turns } from "@coxswain/apimachinery/process/event-loop/turns";
import type { Logger } from "@coxswain/apimachinery/process/logging/logger";
import type { Extender } from "../extenders/extender.ts";
import type { Nominator } from "../framework/nominator.ts";
import type { SchedulerMetrics } from "../metrics.ts";
import type { PodStatuses } from "../pod-status.ts";
import type { Profile } from "../profile.ts";

/** Dependencies of plugins, passed to their constructors. */
export interface PluginContext {
  readonly client: Client;
  readonly informers: Pick<InformerFactory, "for">;
  readonly gates: Pick<FeatureGates, "enabled">;
  readonly clock: Clock;
  readonly log: Logger;
  readonly recorder: EventRecorder;
  readonly metrics: SchedulerMetrics;
  readonly nominator: Nominator;
  readonly statuses: Pick<PodStatuses, "clearNomination">;
  readonly extenders: readonly Extender[];
  readonly random: () => number;
  /** Yields to the event loop in long searches; undefined: never. */
  readonly turns?: Turns | undefined;
  /** The plugin's profile. @throws Error while the profile's plugins are still being constructed */
  profile(): Profile;
}

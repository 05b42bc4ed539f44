import type { Client } from "@coxswain/apimachinery/client/client";
import type { Clock } from "@coxswain/apimachinery/clock/clock";
import type { EventRecorder } from "@coxswain/apimachinery/controller/event-recorder";
import type { FeatureGates } from "@coxswain/apimachinery/flags/feature-gates";
import type { InformerFactory } from "@coxswain/apimachinery/informers/factory";
import type { Logger } from "@coxswain/apimachinery/logging/logger";
import type { Extender } from "../extenders/extender.ts";
import type { SchedulerMetrics } from "../metrics.ts";
import type { Nominator } from "./nominator.ts";
import type { Profile } from "./profile.ts";

/** What plugins may use besides what they are handed in each call. */
export interface PluginContext {
  readonly client: Client;
  readonly informers: Pick<InformerFactory, "for">;
  readonly gates: Pick<FeatureGates, "enabled">;
  readonly clock: Clock;
  readonly log: Logger;
  readonly recorder: EventRecorder;
  readonly metrics: SchedulerMetrics;
  readonly nominator: Nominator;
  readonly extenders: readonly Extender[];
  readonly random: () => number;
  /** The profile that the plugin is part of; not before all its plugins are made. */
  profile(): Profile;
}

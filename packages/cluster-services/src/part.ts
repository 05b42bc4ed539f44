import type { Client } from "@coxswain/apimachinery/client/client";
import type { EventRecorder } from "@coxswain/apimachinery/controller/event-recorder";
import type { InformerFactory } from "@coxswain/apimachinery/informers/factory";
import type { Reconnection } from "@coxswain/apimachinery/informers/reconnection";
import type { KubeObject } from "@coxswain/apimachinery/objects/meta/types";
import type { PolicyRule } from "@coxswain/apimachinery/objects/schema/kinds/rbac/v1";
import type { Clock } from "@coxswain/apimachinery/process/clock/clock";
import type { Turns } from "@coxswain/apimachinery/process/event-loop/turns";
import type { Logger } from "@coxswain/apimachinery/process/logging/logger";
import type { MetricsRegistry } from "@coxswain/apimachinery/process/metrics/registry";
import type { ServicesFlags } from "./flags.ts";

/** What a part is started with. */
export interface PartContext {
  readonly nodeName: string;
  readonly flags: ServicesFlags;
  /** The part's own: user agent and rate limit. */
  readonly client: Client;
  /** Shared by all parts, already started; the part's handlers are removed when it ends. */
  readonly informers: InformerFactory;
  /** When to retry while the API server cannot be reached. */
  readonly reconnection: Reconnection;
  /** For events under the part's name. */
  readonly recorder: EventRecorder;
  readonly log: Logger;
  readonly clock: Clock;
  /** Of the process, for work that takes longer than some milliseconds. */
  readonly turns: Turns;
  /** Shared by all parts; an existing metric of the same name is returned when a part starts again. */
  readonly metrics: MetricsRegistry;
  /** Aborted when the part has to end, also during `start`, which may then reject. */
  readonly signal: AbortSignal;
  /** Ends the part as failed; it is stopped and started again after a pause. */
  fail(err: unknown): void;
}

/** A running part. */
export interface Part {
  /** Health check. @throws Error with the reason when the part does not do its work */
  check?(): void | Promise<void>;
  /** Called once, after the context's signal was aborted; resolves when nothing of the part runs any longer. */
  stop?(): Promise<void>;
}

export type StartPart = (context: PartContext) => Promise<Part>;

/** Rights that a part needs, beside those of every part (see `rights.ts`). */
export interface PartRights {
  /** Rules in the whole cluster. */
  readonly cluster?: readonly PolicyRule[];
  /** Namespaces of this program that the roles below need. */
  readonly namespaces?: readonly string[];
  /** Rules by namespace. */
  readonly namespaced?: Readonly<Record<string, readonly PolicyRule[]>>;
  /** Further RBAC objects, e.g. roles for those who use what the part serves. */
  readonly others?: readonly KubeObject[];
}

export interface PartDefinition {
  /** Name in `--enable` and `--disable`, in events, health checks and metrics. */
  readonly name: string;
  /** On every node, or in the one process that holds the lease. */
  readonly runs: "node" | "once";
  readonly onByDefault: boolean;
  readonly rights: PartRights;
  /**
   * Removes what an earlier process with the part has left on this machine, where the part is off now. Cheap when there is nothing.
   * @returns whether there was something
   */
  readonly removeLeft?: (flags: ServicesFlags) => Promise<boolean>;
  /** Imports the part's code, so that a part that is off costs nothing. */
  readonly load: () => Promise<StartPart>;
}

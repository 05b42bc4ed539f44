/**
 * Custom resources: wires the serving, status controllers and finalizer of CustomResourceDefinitions.
 * Source: apiextensions-apiserver pkg/apiserver/apiserver.go
 */
import type { Client } from "@coxswain/apimachinery/client/client";
import type { QueueMetrics } from "@coxswain/apimachinery/controller/controller";
import type { InformerFactory } from "@coxswain/apimachinery/informers/factory";
import type { GroupVersion } from "@coxswain/apimachinery/objects/meta/group-version";
import { customResourceDefinitions } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import type { Clock } from "@coxswain/apimachinery/process/clock/clock";
import type { Logger } from "@coxswain/apimachinery/process/logging/logger";
import { type CustomResourceDefinition, nameOf } from "./definitions.ts";
import { newFinalizer } from "./finalizer.ts";
import { newServing, type ServingOptions } from "./serving.ts";
import { newStatusControllers } from "./status-controllers.ts";

interface CustomResourcesOptions
  extends Pick<ServingOptions, "catalogue" | "storage" | "storeOptions" | "turns" | "memory" | "builtInGroups" | "converterFor"> {
  readonly client: Client;
  readonly informers: InformerFactory;
  /** Called when group versions appear or disappear. */
  readonly groupVersions: { add(groupVersion: GroupVersion): void; remove(groupVersion: GroupVersion): void };
  /** Delay between accepted names and Established, so that other API servers serve the resource before clients use it. */
  readonly establishDelayMs: number;
  readonly featureEnabled: (gate: string) => boolean;
  readonly queues?: QueueMetrics | undefined;
  readonly clock: Clock;
  readonly log: Logger;
}

export interface CustomResources {
  /** Resolves when all definitions that existed at startup are listed and their resources are served. */
  waitForSync(signal: AbortSignal): Promise<void>;
  /** Runs the status controllers and the finalizer until `signal` is aborted. */
  run(signal: AbortSignal): Promise<void>;
  readonly synced: boolean;
}

export function newCustomResources(options: CustomResourcesOptions): CustomResources {
  const { client, informers, queues, turns, clock, log } = options;
  const definitions = informers.for<CustomResourceDefinition>(customResourceDefinitions);
  const status = newStatusControllers({ client, definitions, queues, turns, clock, log });
  const serving = newServing({
    ...options,
    definitions,
    served: (definition) => status.establish(nameOf(definition), options.establishDelayMs),
  });
  followGroupVersions();
  const finalizer = newFinalizer({ ...options, definitions, storeOf: serving.storeOf });

  /** Counts the definitions of each group version, as work on one definition must not grow with the number of all others. */
  function followGroupVersions(): void {
    const counts = new Map<string, number>();
    const follow = (before: CustomResourceDefinition | undefined, now: CustomResourceDefinition | undefined): void => {
      const [had, has] = [groupVersionsOf(before), groupVersionsOf(now)];
      for (const [name, groupVersion] of has) {
        if (had.has(name)) continue;
        const count = counts.get(name) ?? 0;
        counts.set(name, count + 1);
        if (count === 0) options.groupVersions.add(groupVersion);
      }
      for (const [name, groupVersion] of had) {
        if (has.has(name)) continue;
        const count = (counts.get(name) ?? 0) - 1;
        if (count > 0) counts.set(name, count);
        else if (counts.delete(name)) options.groupVersions.remove(groupVersion);
      }
    };
    definitions.addHandler({
      added: (now) => follow(undefined, now),
      updated: (before, now) => follow(before, now),
      deleted: (last) => follow(last, undefined),
    });
  }

  return {
    async waitForSync(signal) {
      await definitions.waitForSync(signal);
      await serving.settled();
    },
    async run(signal) {
      await Promise.all([status.run(signal), finalizer.run(signal)]);
    },
    get synced() {
      return definitions.synced;
    },
  };
}

/** Served group versions of a definition, by name (`example.com/v1`). */
function groupVersionsOf(definition: CustomResourceDefinition | undefined): Map<string, GroupVersion> {
  if (definition === undefined) return new Map();
  const { group, versions } = definition.spec;
  return new Map(versions.filter(({ served }) => served).map(({ name: version }) => [`${group}/${version}`, { group, version }]));
}

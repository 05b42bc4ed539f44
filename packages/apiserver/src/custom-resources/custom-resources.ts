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
import { newServing, type ServingOptions, servedGroupVersions } from "./serving.ts";
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

  function followGroupVersions(): void {
    let announced = new Map<string, GroupVersion>();
    const follow = (): void => {
      const wanted = servedGroupVersions(definitions.lister.list());
      for (const [name, groupVersion] of wanted) if (!announced.has(name)) options.groupVersions.add(groupVersion);
      for (const [name, groupVersion] of announced) if (!wanted.has(name)) options.groupVersions.remove(groupVersion);
      announced = wanted;
    };
    definitions.addHandler({ added: follow, updated: follow, deleted: follow });
  }

  return {
    waitForSync: (signal) => definitions.waitForSync(signal),
    async run(signal) {
      await Promise.all([status.run(signal), finalizer.run(signal)]);
    },
    get synced() {
      return definitions.synced;
    },
  };
}

import type { Client } from "../client/client.ts";
import { formatGroupResource, type ResourceRef } from "../objects/meta/group-version.ts";
import type { KubeObject } from "../objects/meta/types.ts";
import type { Clock } from "../process/clock/clock.ts";
import type { LongWork } from "../process/event-loop/turns.ts";
import type { Logger } from "../process/logging/logger.ts";
import type { Reconnection } from "./reconnection.ts";
import { newSharedInformer, type SharedInformer } from "./shared-informer.ts";

/** Shares one informer per resource and selectors. Source: client-go informers/factory.go */
export interface InformerFactory {
  /** Returns the informer for a resource and selectors. One requested after `start` runs at once. */
  for<T extends KubeObject>(ref: ResourceRef, options?: InformerSelectors): SharedInformer<T>;
  /** Whether an informer of all objects of a resource exists, so that another component can use it at no cost. */
  hasAll(ref: ResourceRef): boolean;
  /** Resources of running informers that have not synced, e.g. `pods`, `leases.coordination.k8s.io`. */
  unsynced(): string[];
  /** Runs all informers, present and future, until `signal` is aborted. */
  start(signal: AbortSignal): void;
  /** Resolves when all informers requested so far are synced; rejects with the signal's reason. */
  waitForSync(signal: AbortSignal): Promise<void>;
  readonly client: Client;
}

interface InformerSelectors {
  readonly labelSelector?: string;
  readonly fieldSelector?: string;
  readonly metadataOnly?: boolean;
}

export interface InformerFactoryOptions {
  readonly log: Logger;
  readonly clock: Clock;
  /** Resync period; a function is called once per informer (for jitter). Default none. */
  readonly resyncMs?: number | (() => number);
  /** Restricts namespaced resources to one namespace. */
  readonly namespace?: string;
  /** Waits of all informers while the server cannot be reached; see `runReflector`. */
  readonly reconnection?: Reconnection;
  /** Strips each object before it is stored; may modify its argument. */
  readonly transform?: (object: KubeObject) => KubeObject;
  /** Called for each error of a handler, an index function or a transform. See `metrics.ts`. */
  readonly onFailure?: (ref: ResourceRef) => void;
  /** In which the informers store objects and call handlers, for example `Turns.ahead`; default: at once. */
  readonly turns?: LongWork;
}

/** One informer for each resource, shared by all callers. */
export function newInformerFactory(client: Client, options: InformerFactoryOptions): InformerFactory {
  const { log, clock, resyncMs = 0, namespace, reconnection, transform, turns } = options;
  const informers = new Map<string, SharedInformer<KubeObject>>();
  let running: AbortSignal | undefined;

  return {
    client,
    for<T extends KubeObject>(ref: ResourceRef, selectors: InformerSelectors = {}): SharedInformer<T> {
      const id = informerId(ref, selectors);
      let informer = informers.get(id);
      if (informer === undefined) {
        informer = newSharedInformer<KubeObject>({
          ...selectors,
          client,
          clock,
          log,
          ref,
          reconnection,
          transform,
          turns,
          namespace: ref.namespaced ? namespace : undefined,
          resyncMs: typeof resyncMs === "function" ? resyncMs() : resyncMs,
          onFailure: () => options.onFailure?.(ref),
        });
        informers.set(id, informer);
        if (running !== undefined) void informer.run(running);
      }
      return informer as SharedInformer<T>; // cast: the caller names the kind of the resource
    },
    hasAll: (ref) => (namespace === undefined || !ref.namespaced) && informers.has(informerId(ref, {})),
    unsynced() {
      if (running === undefined) return [];
      const waiting = [...informers.values()].filter(({ synced }) => !synced);
      return [...new Set(waiting.map(({ ref }) => formatGroupResource(ref)))].toSorted();
    },
    start(signal) {
      if (running !== undefined) return;
      running = signal;
      for (const informer of informers.values()) void informer.run(signal);
    },
    async waitForSync(signal) {
      await Promise.all([...informers.values()].map((informer) => informer.waitForSync(signal)));
    },
  };
}

function informerId({ group, version, resource }: ResourceRef, selectors: InformerSelectors): string {
  const { labelSelector, fieldSelector, metadataOnly } = selectors;
  return JSON.stringify([group, version, resource, labelSelector, fieldSelector, metadataOnly]);
}

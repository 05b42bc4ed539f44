import type { Client } from "../client/client.ts";
import type { Clock } from "../clock/clock.ts";
import type { Logger } from "../logging/logger.ts";
import type { ResourceRef } from "../meta/group-version.ts";
import type { KubeObject } from "../meta/types.ts";
import { newSharedInformer, type SharedInformer } from "./shared-informer.ts";

/** One informer for each resource, however many ask for it. Source: client-go informers/factory.go */
export interface InformerFactory {
  /** The same resource and selectors give the same informer. One that is asked for after `start` runs at once. */
  for<T extends KubeObject>(ref: ResourceRef, options?: InformerSelectors): SharedInformer<T>;
  /** Runs what was asked for so far and what will be, until `signal` is aborted. */
  start(signal: AbortSignal): void;
  /** Resolves when every informer asked for so far is synced; rejects with the signal's reason. */
  waitForSync(signal: AbortSignal): Promise<void>;
  readonly client: Client;
}

export interface InformerSelectors {
  readonly labelSelector?: string;
  readonly fieldSelector?: string;
  readonly metadataOnly?: boolean;
}

export interface InformerFactoryOptions {
  readonly log: Logger;
  readonly clock: Clock;
  /** How often each informer calls its handlers for everything it knows; a function is asked for each informer (jitter). */
  readonly resyncMs?: number | (() => number);
  /** Only this namespace's objects; cluster-scoped resources are not restricted. */
  readonly namespace?: string;
  /** Selectors for a resource that nobody who asks for it should have to know. */
  readonly tweak?: (ref: ResourceRef) => InformerSelectors | undefined;
  /** Called for each failure of code that an informer gave an object. See `metrics.ts`. */
  readonly onFailure?: (ref: ResourceRef) => void;
}

export function newInformerFactory(client: Client, options: InformerFactoryOptions): InformerFactory {
  const { log, clock, resyncMs = 0, namespace, tweak } = options;
  const informers = new Map<string, SharedInformer<KubeObject>>();
  let running: AbortSignal | undefined;

  return {
    client,
    for<T extends KubeObject>(ref: ResourceRef, selectors: InformerSelectors = {}): SharedInformer<T> {
      const all = { ...tweak?.(ref), ...selectors };
      const id = JSON.stringify([ref.group, ref.version, ref.resource, all.labelSelector, all.fieldSelector, all.metadataOnly]);
      let informer = informers.get(id);
      if (informer === undefined) {
        informer = newSharedInformer<KubeObject>({
          ...all,
          client,
          clock,
          log,
          ref,
          namespace: ref.namespaced ? namespace : undefined,
          resyncMs: typeof resyncMs === "function" ? resyncMs() : resyncMs,
          onFailure: () => options.onFailure?.(ref),
        });
        informers.set(id, informer);
        if (running !== undefined) void informer.run(running);
      }
      return informer as unknown as SharedInformer<T>;
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

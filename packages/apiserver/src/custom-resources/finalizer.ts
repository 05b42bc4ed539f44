/**
 * Deletes the instances of a CustomResourceDefinition that is being deleted, then removes its finalizer.
 * Source: apiextensions-apiserver pkg/controller/finalizer/crd_finalizer.go
 */

import type { Client } from "@coxswain/apimachinery/client/client";
import { type Controller, done, newController, type QueueMetrics } from "@coxswain/apimachinery/controller/controller";
import { enqueueSelf } from "@coxswain/apimachinery/controller/sources";
import type { SharedInformer } from "@coxswain/apimachinery/informers/shared-informer";
import { messageOf } from "@coxswain/apimachinery/objects/errors/message";
import { isConflict, isNotFound } from "@coxswain/apimachinery/objects/errors/predicates";
import { customResourceDefinitions } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import type { Clock } from "@coxswain/apimachinery/process/clock/clock";
import type { Turns } from "@coxswain/apimachinery/process/event-loop/turns";
import type { Logger } from "@coxswain/apimachinery/process/logging/logger";
import { type ConditionState, withCondition } from "../registry/apiextensions/customresourcedefinitions/conditions.ts";
import { customResourceCleanupFinalizer } from "../registry/apiextensions/customresourcedefinitions/strategy.ts";
import type { RegistryStore } from "../registry/generic/resource.ts";
import type { StrategyContext } from "../registry/generic/strategy.ts";
import { type CustomResourceDefinition, isTrue, statusOf } from "./definitions.ts";

interface FinalizerOptions {
  readonly client: Client;
  readonly definitions: SharedInformer<CustomResourceDefinition>;
  readonly storeOf: (definition: CustomResourceDefinition) => RegistryStore | undefined;
  readonly featureEnabled: (gate: string) => boolean;
  readonly queues?: QueueMetrics | undefined;
  readonly turns?: Turns | undefined;
  readonly clock: Clock;
  readonly log: Logger;
}

const pollMs = 5_000;
const timeoutMs = 60_000;

/** The crd_finalizer controller. */
export function newFinalizer(options: FinalizerOptions): Controller {
  const { client, definitions, clock, log } = options;
  const writeStatus = (crd: CustomResourceDefinition, state: ConditionState, signal: AbortSignal) => {
    const status = statusOf(crd);
    const conditions = withCondition(status.conditions, state, clock.now());
    return client.update<CustomResourceDefinition>(
      customResourceDefinitions,
      { ...crd, status: { ...status, conditions } },
      { subresource: "status", signal },
    );
  };
  return newController({
    name: "crd_finalizer",
    sources: [enqueueSelf(definitions)],
    async reconcile(key, signal) {
      const listed = definitions.lister.get(key);
      const finalizers = listed?.metadata.finalizers ?? [];
      if (listed === undefined || !listed.metadata.deletionTimestamp) return done;
      if (!finalizers.includes(customResourceCleanupFinalizer)) return done;
      try {
        const crd = await writeStatus(listed, terminating("True", "InstanceDeletionInProgress", inProgress), signal);
        const { state, failure } = await deleteInstances(crd, options, signal);
        const left = (crd.metadata.finalizers ?? []).filter((name) => name !== customResourceCleanupFinalizer);
        const metadata = failure === undefined ? { ...crd.metadata, finalizers: left } : crd.metadata;
        await writeStatus({ ...crd, metadata }, state, signal);
        if (failure !== undefined) throw failure;
      } catch (err) {
        // Another writer was first: its change arrives as an event and enqueues the definition again.
        if (!isNotFound(err) && !isConflict(err)) throw err;
      }
      return done;
    },
    workers: 5,
    metrics: options.queues,
    turns: options.turns,
    clock,
    log,
  });
}

const inProgress = "CustomResource deletion is in progress";

function terminating(status: "True" | "False", reason: string, message: string): ConditionState {
  return { type: "Terminating", status, reason, message };
}

interface Outcome {
  readonly state: ConditionState;
  /** Set when the deletion must be retried. */
  readonly failure?: Error;
}

async function deleteInstances(
  crd: CustomResourceDefinition,
  { storeOf, featureEnabled, clock }: FinalizerOptions,
  signal: AbortSignal,
): Promise<Outcome> {
  if (!isTrue(crd, "Established")) {
    return { state: terminating("False", "NeverEstablished", "resource was never established") };
  }
  const store = storeOf(crd);
  const failed = (reason: string, what: string, err: unknown): Outcome => {
    const message = `${what}: ${messageOf(err)}`;
    return { state: terminating("True", reason, message), failure: new Error(message, { cause: err }) };
  };
  if (store === undefined)
    return failed("InstanceDeletionFailed", "could not get client", new Error(`${crd.metadata.name} is not served`));
  const namespaces = async (): Promise<Set<string>> => {
    const { entries } = await store.list("", { signal });
    return new Set(entries.map((entry) => entry.object().metadata.namespace ?? ""));
  };
  let left: Set<string>;
  try {
    left = await namespaces();
  } catch (err) {
    return failed("InstanceDeletionFailed", "could not list instances", err);
  }
  const ctx = (namespace: string): StrategyContext => ({
    user: undefined,
    namespace,
    dryRun: false,
    now: () => clock.now(),
    featureEnabled,
    warn: () => {},
  });
  const failures: Error[] = [];
  for (const namespace of left) {
    await store.deleteCollection(ctx(namespace), {}, { signal }).catch((err: Error) => failures.push(err));
  }
  if (failures.length > 0) {
    const texts = failures.map(({ message }) => message);
    const text = texts.length === 1 ? texts[0] : `[${texts.join(", ")}]`;
    return failed("InstanceDeletionFailed", "could not issue all deletes", new Error(text));
  }
  const deadline = clock.monotonic() + timeoutMs;
  try {
    while ((await namespaces()).size > 0) {
      if (clock.monotonic() >= deadline) throw new Error("timed out waiting for the condition");
      await clock.sleep(pollMs, signal);
    }
  } catch (err) {
    return failed("InstanceDeletionCheck", "could not confirm zero CustomResources remaining", err);
  }
  return { state: terminating("False", "InstanceDeletionCompleted", "removed all instances") };
}

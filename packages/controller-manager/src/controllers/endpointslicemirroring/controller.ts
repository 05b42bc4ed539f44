import { type Controller, done, type Result } from "@coxswain/apimachinery/controller/controller";
import { enqueueBy, type SourceQueue } from "@coxswain/apimachinery/controller/sources";
import type { SharedInformer } from "@coxswain/apimachinery/informers/shared-informer";
import { hasCause, isNotFound } from "@coxswain/apimachinery/objects/errors/predicates";
import { keyOf, type ObjectKey, toKey } from "@coxswain/apimachinery/objects/meta/object-key";
import type { Endpoints, Service } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import type { EndpointSlice } from "@coxswain/apimachinery/objects/schema/kinds/discovery/v1";
import { endpointSlices, endpoints, services } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import type { ControllerContext } from "../../controller-context.ts";
import { defineController } from "../../define-controller.ts";
import { newSliceTracker, type SliceTracker } from "../../services/slice-tracker.ts";
import { managedByLabel, type SlicePlan, serviceNameLabel } from "../endpointslice/labels.ts";
import { type MirrorMetrics, newMirrorMetrics } from "./metrics.ts";
import { managerName, planningMirror } from "./mirror.ts";

/**
 * endpointslicemirroring-controller: mirrors Endpoints managed by users to EndpointSlices, for Services without a selector.
 * Watches Endpoints (own key), Services of the same name, and its own EndpointSlices (key of their Service); writes
 * EndpointSlices.
 * Source: pkg/controller/endpointslicemirroring/
 */
export function newEndpointSliceMirroringController(base: ControllerContext): Controller {
  const { concurrency, mirroring } = base.config;
  const ctx: MirroringContext = {
    ...base,
    endpoints: base.informers.for<Endpoints>(endpoints),
    services: base.informers.for<Service>(services),
    slices: base.informers.for<EndpointSlice>(endpointSlices),
    tracker: newSliceTracker(base.clock),
    metrics: newMirrorMetrics(base.registry, mirroring.maxEndpointsPerSubset),
  };
  ctx.slices.addIndex(mirroredIndex, mirroredService);
  return defineController(ctx, {
    name: "endpoint_slice_mirroring",
    sources: [
      enqueueBy(ctx.endpoints, endpointsHandlers),
      enqueueBy(ctx.services, serviceHandlers),
      enqueueBy(ctx.slices, (queue) => sliceHandlers(ctx, queue)),
    ],
    reconcile: measured,
    workers: concurrency.endpointSliceMirroring,
    maxRetries: 15,
  });
}

interface MirroringContext extends ControllerContext {
  readonly endpoints: SharedInformer<Endpoints>;
  readonly services: SharedInformer<Service>;
  readonly slices: SharedInformer<EndpointSlice>;
  readonly tracker: SliceTracker;
  readonly metrics: MirrorMetrics;
}

/** Set on Endpoints used as a leader election lock. */
const leaderAnnotation = "control-plane.alpha.kubernetes.io/leader";
const skipLabel = "endpointslice.kubernetes.io/skip-mirror";
const mirroredIndex = "mirroredService";
/** The cache does not show this controller's writes yet. Events of this controller's writes do not enqueue the key, hence the delay. */
const staleRetryMs = 200;

function isToMirror({ metadata }: Endpoints): boolean {
  return metadata.labels?.[skipLabel] !== "true" && metadata.annotations?.[leaderAnnotation] === undefined;
}

function isMirrored({ metadata }: EndpointSlice): boolean {
  return metadata.labels?.[managedByLabel] === managerName && Boolean(metadata.labels[serviceNameLabel]);
}

function serviceKeyOf({ metadata }: EndpointSlice): ObjectKey {
  return toKey(metadata.namespace, metadata.labels?.[serviceNameLabel] ?? "");
}

function mirroredService(slice: EndpointSlice): ObjectKey[] {
  return isMirrored(slice) ? [serviceKeyOf(slice)] : [];
}

function endpointsHandlers({ enqueue }: SourceQueue) {
  const enqueueChanged = (...versions: Endpoints[]): void => {
    if (versions.some(isToMirror)) enqueue(keyOf(versions[0]!));
  };
  return { added: enqueueChanged, updated: enqueueChanged, deleted: enqueueChanged };
}

function serviceHandlers({ enqueue }: SourceQueue) {
  const hasSelector = ({ spec }: Service): boolean => spec?.selector !== undefined;
  const enqueueChanged = (service: Service): void => {
    if (!hasSelector(service)) enqueue(keyOf(service));
  };
  return {
    added: enqueueChanged,
    updated(old: Service, now: Service) {
      if (hasSelector(old) !== hasSelector(now)) enqueue(keyOf(now));
    },
    deleted: enqueueChanged,
  };
}

/** Events of slices are batched; those of Endpoints and Services are not. */
function sliceHandlers(ctx: MirroringContext, queue: SourceQueue) {
  const { tracker } = ctx;
  const enqueueChanged = (slice: EndpointSlice): void => {
    if (isMirrored(slice)) queue.enqueueAfter(serviceKeyOf(slice), ctx.config.mirroring.updatesBatchMs);
  };
  return {
    added: (slice: EndpointSlice) => {
      if (tracker.isForeignChange(slice)) enqueueChanged(slice);
    },
    updated: (old: EndpointSlice, slice: EndpointSlice) => {
      if (isMirrored(old) && (!isMirrored(slice) || serviceKeyOf(old) !== serviceKeyOf(slice))) {
        tracker.deletionObserved(old);
        enqueueChanged(old);
      }
      if (tracker.isForeignChange(slice) || !isMirrored(old)) enqueueChanged(slice);
    },
    deleted: (slice: EndpointSlice) => {
      if (!tracker.deletionObserved(slice)) enqueueChanged(slice);
    },
  };
}

async function measured(ctx: MirroringContext, key: ObjectKey, signal: AbortSignal): Promise<Result> {
  const startedAt = ctx.clock.monotonic();
  try {
    return await reconcile(ctx, key, signal);
  } finally {
    ctx.metrics.synced(ctx.clock.monotonic() - startedAt);
  }
}

async function reconcile(ctx: MirroringContext, key: ObjectKey, signal: AbortSignal): Promise<Result> {
  const { tracker, metrics } = ctx;
  const existing = ctx.slices.lister.byIndex(mirroredIndex, key);
  const source = sourceOf(ctx, key);
  if (source === undefined) {
    tracker.forget(key);
    metrics.forget(key);
    for (const slice of existing) await deleteSlice(ctx, slice, signal);
    return done;
  }
  if (tracker.isStale(key, existing)) return { requeueAfterMs: staleRetryMs };

  const { maxEndpointsPerSubset } = ctx.config.mirroring;
  const plan = await ctx.turns.run(planningMirror(source, existing, maxEndpointsPerSubset));
  metrics.planned(key, plan);
  const warn = (reason: string, message: string): void =>
    ctx.recorder.event({ ...source, apiVersion: "v1", kind: "Endpoints" }, "Warning", reason, message);
  if (plan.invalid > 0) warn("InvalidIPAddress", `Skipped ${plan.invalid} invalid IP addresses when mirroring to EndpointSlices`);
  if (plan.skipped > plan.invalid) {
    const limit = `A max of ${maxEndpointsPerSubset} addresses can be mirrored to EndpointSlices per Endpoints subset.`;
    warn("TooManyAddressesToMirror", `${limit} ${plan.skipped} addresses were skipped`);
  }
  await apply(ctx, source, plan, signal);
  return done;
}

/** The Endpoints to mirror; undefined when there are none, or when the Service has a selector. */
function sourceOf(ctx: MirroringContext, key: ObjectKey): Endpoints | undefined {
  const found = ctx.endpoints.lister.get(key);
  const service = ctx.services.lister.get(key);
  const isWanted = found !== undefined && isToMirror(found) && service !== undefined && service.spec?.selector === undefined;
  return isWanted ? found : undefined;
}

async function apply(ctx: MirroringContext, source: Endpoints, plan: SlicePlan, signal: AbortSignal): Promise<void> {
  const { tracker, metrics } = ctx;
  const { client } = ctx;
  const key = keyOf(source);
  const failed =
    (what: string) =>
    (err: unknown): never => {
      throw new Error(`failed to ${what} EndpointSlice for Endpoints ${key}`, { cause: err });
    };
  if (!source.metadata.deletionTimestamp) {
    for (const slice of plan.create) {
      const made = await client.create<EndpointSlice>(endpointSlices, slice, { signal }).catch((err) => {
        return hasCause(err, "NamespaceTerminating") ? undefined : failed("create")(err);
      });
      if (made === undefined) return;
      tracker.recordWrite(key, made);
      metrics.changed("create");
    }
  }
  for (const slice of plan.update) {
    const writing = client.update<EndpointSlice>(endpointSlices, slice, { signal });
    tracker.recordWrite(key, await writing.catch(failed(`update ${slice.metadata.name}`)));
    metrics.changed("update");
  }
  for (const slice of plan.delete) {
    await deleteSlice(ctx, slice, signal).catch(failed(`delete ${slice.metadata.name}`));
    tracker.recordDeletion(key, slice);
    metrics.changed("delete");
  }
}

async function deleteSlice({ client }: ControllerContext, { metadata }: EndpointSlice, signal: AbortSignal): Promise<void> {
  const { namespace, name = "" } = metadata;
  await client.delete(endpointSlices, { namespace, name }, { signal }).catch((err) => {
    if (!isNotFound(err)) throw err;
  });
}

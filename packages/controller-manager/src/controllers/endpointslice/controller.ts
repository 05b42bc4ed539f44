import { type Controller, done, type Result } from "@coxswain/apimachinery/controller/controller";
import { enqueueBy, enqueueMapped, needsSynced } from "@coxswain/apimachinery/controller/sources";
import type { SharedInformer } from "@coxswain/apimachinery/informers/shared-informer";
import { messageOf } from "@coxswain/apimachinery/objects/errors/message";
import { hasCause, isNotFound } from "@coxswain/apimachinery/objects/errors/predicates";
import { keyOf, type ObjectKey, toKey } from "@coxswain/apimachinery/objects/meta/object-key";
import type { Node, Pod, Service } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import type { EndpointSlice } from "@coxswain/apimachinery/objects/schema/kinds/discovery/v1";
import { endpointSlices, nodes, services } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import type { ControllerContext } from "../../controller-context.ts";
import { defineController } from "../../define-controller.ts";
import { podsOf, serviceSources } from "../../services/service-pods.ts";
import { newSliceTracker, type SliceTracker } from "../../services/slice-tracker.ts";
import { newTriggerTimes, type TriggerTimes, withTriggerTime } from "../../services/trigger-times.ts";
import { endpointsOfPodsInSteps } from "./endpoints-of-pods.ts";
import { withHints } from "./hints.ts";
import { managedByLabel, managerName, type SlicePlan, serviceNameLabel } from "./labels.ts";
import { type EndpointSliceMetrics, newEndpointSliceMetrics } from "./metrics.ts";
import { planSlicesInSteps, portsText } from "./plan.ts";
import { changesShares, wantsHints, zoneOf, zoneShares } from "./zones.ts";

/**
 * endpointslice-controller: maintains the EndpointSlices of each Service with a selector, with a limited number of endpoints
 * per slice.
 * Watches Services, Pods and its own EndpointSlices (key of their Service), and Nodes for topology hints; writes
 * EndpointSlices.
 * Source: pkg/controller/endpointslice/
 */
export function newEndpointSliceController(base: ControllerContext): Controller {
  const slices = base.informers.for<EndpointSlice>(endpointSlices);
  slices.addIndex(serviceIndex, ownService);
  const ctx: EndpointSliceContext = {
    ...base,
    services: base.informers.for<Service>(services),
    nodes: base.informers.for<Node>(nodes),
    slices,
    tracker: newSliceTracker(base.clock),
    triggers: newTriggerTimes(),
    metrics: newEndpointSliceMetrics(base.registry, base.config.maxEndpointsPerSlice),
  };
  const { tracker } = ctx;
  const hinted = (): ObjectKey[] => ctx.services.lister.list().filter(wantsHints).map(keyOf);
  return defineController(ctx, {
    name: "endpoint_slice",
    sources: [
      ...serviceSources(ctx.informers),
      ctx.featureGates.enabled("TopologyAwareHints") ? enqueueMapped(ctx.nodes, hinted, changesShares) : needsSynced(ctx.nodes),
      enqueueBy(slices, (queue) => {
        const enqueue = (slice: EndpointSlice): void => {
          for (const key of ownService(slice)) queue.enqueue(key);
        };
        return {
          added: (slice: EndpointSlice) => {
            if (tracker.isForeignChange(slice)) enqueue(slice);
          },
          updated: (old: EndpointSlice, slice: EndpointSlice) => {
            if (serviceOf(old) !== serviceOf(slice)) {
              tracker.deletionObserved(old); // relabeled to another service or manager
              enqueue(old);
            }
            if (tracker.isForeignChange(slice)) enqueue(slice);
          },
          deleted: (slice: EndpointSlice) => {
            if (!tracker.deletionObserved(slice)) enqueue(slice);
          },
        };
      }),
    ],
    reconcile,
    workers: ctx.config.concurrency.endpointSlice,
    maxRetries: 15,
    batchMs: ctx.config.endpointSliceUpdatesBatchMs,
  });
}

interface EndpointSliceContext extends ControllerContext {
  readonly services: SharedInformer<Service>;
  readonly nodes: SharedInformer<Node>;
  readonly slices: SharedInformer<EndpointSlice>;
  readonly tracker: SliceTracker;
  readonly triggers: TriggerTimes;
  readonly metrics: EndpointSliceMetrics;
}

const serviceIndex = "service";
/** Ports whose text takes a millisecond and more. */
const manyPorts = 1000;
/** The cache does not show this controller's writes yet. Events of this controller's writes do not enqueue the key, hence the delay. */
const staleRetryMs = 200;

function serviceOf({ metadata }: EndpointSlice): string | undefined {
  const labels = metadata.labels ?? {};
  return labels[managedByLabel] === managerName ? labels[serviceNameLabel] : undefined;
}

function ownService(slice: EndpointSlice): ObjectKey[] {
  const service = serviceOf(slice);
  return service === undefined ? [] : [toKey(slice.metadata.namespace, service)];
}

async function reconcile(ctx: EndpointSliceContext, key: ObjectKey, signal: AbortSignal): Promise<Result> {
  try {
    const outcome = await syncService(ctx, key, signal);
    ctx.metrics.synced(outcome);
    return outcome === "stale" ? { requeueAfterMs: staleRetryMs } : done;
  } catch (err) {
    ctx.metrics.synced("error");
    throw err;
  }
}

/** @returns `stale` when the cache does not show this controller's writes yet, so that nothing was done */
async function syncService(ctx: EndpointSliceContext, key: ObjectKey, signal: AbortSignal): Promise<"success" | "stale"> {
  const { tracker, triggers, metrics } = ctx;
  const service = ctx.services.lister.get(key);
  if (service === undefined) {
    // The slices are garbage collected with their owner.
    for (const kept of [tracker, triggers, metrics]) kept.forget(key);
    return "success";
  }
  if (service.spec?.selector === undefined || service.spec.type === "ExternalName") return "success";
  const existing = ctx.slices.lister.byIndex(serviceIndex, key).filter(({ metadata }) => !metadata.deletionTimestamp);
  if (tracker.isStale(key, existing)) return "stale";

  const selected = podsOf(ctx.informers, service);
  const time = triggers.update(service, selected);
  const existingPorts = new Map<EndpointSlice, string>();
  for (const slice of existing) {
    // Many ports of each slice take a turn of their own.
    if ((slice.ports ?? []).length >= manyPorts) await ctx.turns.next();
    existingPorts.set(slice, portsText(slice.ports));
  }
  const desired = await ctx.turns.run(endpointsOfPodsInSteps(service, selected, zonesOf(ctx)));
  const steps = planSlicesInSteps({
    service,
    existing,
    existingPorts,
    desired,
    maxPerSlice: ctx.config.maxEndpointsPerSlice,
  });
  const plan = await ctx.turns.run(steps);
  metrics.planned(key, plan);
  const hints = ctx.featureGates.enabled("TopologyAwareHints") && wantsHints(service);
  const shares = hints ? zoneShares(ctx.nodes.lister.list()) : undefined;
  const hinted = withHints(plan, existing, shares);
  metrics.written(hinted, hints);
  await apply(ctx, service, hinted, time, signal);
  return "success";
}

/** Looks up the zone of a Pod's node. */
function zonesOf(ctx: EndpointSliceContext): (pod: Pod) => string | undefined {
  const { lister } = ctx.nodes;
  return ({ spec }) => {
    const node = lister.get(spec.nodeName ?? "");
    return node && zoneOf(node);
  };
}

/** @param time value of the trigger-time annotation of written slices; undefined removes it */
async function apply(
  ctx: EndpointSliceContext,
  service: Service,
  plan: SlicePlan,
  time: string | undefined,
  signal: AbortSignal,
): Promise<void> {
  const { tracker, metrics } = ctx;
  const { namespace, name = "" } = service.metadata;
  const key = toKey(namespace, name);
  const timed = (slice: EndpointSlice): EndpointSlice => ({
    ...slice,
    metadata: { ...slice.metadata, annotations: withTriggerTime(slice.metadata.annotations, time) },
  });
  let action = "";
  try {
    if (!service.metadata.deletionTimestamp) {
      for (const slice of plan.create) {
        action = "create EndpointSlice";
        tracker.recordWrite(key, await ctx.client.create<EndpointSlice>(endpointSlices, timed(slice), { signal }));
        metrics.changed("create");
      }
    }
    for (const slice of plan.update) {
      action = `update ${slice.metadata.name} EndpointSlice`;
      tracker.recordWrite(key, await ctx.client.update<EndpointSlice>(endpointSlices, timed(slice), { signal }));
      metrics.changed("update");
    }
    for (const slice of plan.delete) {
      const { name: sliceName = "" } = slice.metadata;
      action = `delete ${sliceName} EndpointSlice`;
      await ctx.client.delete(endpointSlices, { namespace, name: sliceName }, { signal }).catch((err) => {
        if (!isNotFound(err)) throw err;
      });
      tracker.recordDeletion(key, slice);
      metrics.changed("delete");
    }
  } catch (err) {
    if (hasCause(err, "NamespaceTerminating")) return;
    const message = `Error updating Endpoint Slices for Service ${key}: failed to ${action} for Service ${key}: ${messageOf(err)}`;
    ctx.recorder.event({ ...service, apiVersion: "v1", kind: "Service" }, "Warning", "FailedToUpdateEndpointSlices", message);
    throw err;
  }
}

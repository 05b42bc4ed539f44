import { type Controller, done, newController, type Result } from "@coxswain/apimachinery/controller/controller";
import { enqueueBy, enqueueMapped, needsSynced } from "@coxswain/apimachinery/controller/sources";
import { messageOf } from "@coxswain/apimachinery/errors/message";
import { hasCause, isNotFound } from "@coxswain/apimachinery/errors/predicates";
import { keyOf, type ObjectKey, splitKey, toKey } from "@coxswain/apimachinery/meta/object-key";
import type { Node, Pod, Service } from "@coxswain/apimachinery/schema/kinds/core/v1";
import type { EndpointSlice } from "@coxswain/apimachinery/schema/kinds/discovery/v1";
import { endpointSlices, nodes, services } from "@coxswain/apimachinery/schema/kinds/resources";
import type { ControllerContext } from "../../controller-context.ts";
import { podsOf, serviceSources } from "../../services/service-pods.ts";
import { newSliceTracker, type SliceTracker } from "../../services/slice-tracker.ts";
import { endpointsOfPods } from "./endpoints-of-pods.ts";
import { withHints } from "./hints.ts";
import { managedByLabel, managerName, type SlicePlan, serviceNameLabel } from "./labels.ts";
import { planSlices } from "./plan.ts";
import { movesShares, wantsHints, zoneOf, zoneShares } from "./zones.ts";

/**
 * endpointslice-controller: the EndpointSlices of each service with a selector list its Pods, so many in each slice.
 * Watches Services, Pods and own EndpointSlices (key of their service), and Nodes for the zones that hints are given for;
 * writes EndpointSlices.
 * Source: pkg/controller/endpointslice/
 */
export function newEndpointSliceController(ctx: ControllerContext): Controller {
  const slices = ctx.informers.for<EndpointSlice>(endpointSlices);
  slices.addIndex(serviceIndex, ownService);
  const tracker = newSliceTracker(ctx.clock);
  const nodeInformer = ctx.informers.for<Node>(nodes);
  const hinted = (): ObjectKey[] => ctx.informers.for<Service>(services).lister.list().filter(wantsHints).map(keyOf);
  return newController({
    name: "endpoint_slice",
    sources: [
      ...serviceSources(ctx.informers),
      ctx.featureGates.enabled("TopologyAwareHints")
        ? enqueueMapped(nodeInformer, hinted, movesShares)
        : needsSynced(nodeInformer),
      enqueueBy(slices, (queue) => {
        const enqueue = (slice: EndpointSlice): void => {
          for (const key of ownService(slice)) queue.enqueue(key);
        };
        return {
          added: (slice: EndpointSlice) => {
            if (tracker.isNews(slice)) enqueue(slice);
          },
          updated: (old: EndpointSlice, slice: EndpointSlice) => {
            if (serviceOf(old) !== serviceOf(slice)) enqueue(old); // moved or taken from us
            if (tracker.isNews(slice)) enqueue(slice);
          },
          deleted: (slice: EndpointSlice) => {
            if (!tracker.sawDeletion(slice)) enqueue(slice);
          },
        };
      }),
    ],
    reconcile: (key, signal) => reconcile(ctx, tracker, key, signal),
    workers: ctx.config.concurrency.endpointSlice,
    maxRetries: 15,
    batchMs: ctx.config.endpointSliceUpdatesBatchMs,
    log: ctx.log,
    clock: ctx.clock,
    metrics: ctx.metrics,
  });
}

const serviceIndex = "service";
/** The cache is behind our own writes; their echo wakes nobody. */
const staleRetryMs = 200;

function serviceOf({ metadata }: EndpointSlice): string | undefined {
  const labels = metadata.labels ?? {};
  return labels[managedByLabel] === managerName ? labels[serviceNameLabel] : undefined;
}

function ownService(slice: EndpointSlice): ObjectKey[] {
  const service = serviceOf(slice);
  return service === undefined ? [] : [toKey(slice.metadata.namespace, service)];
}

async function reconcile(ctx: ControllerContext, tracker: SliceTracker, key: ObjectKey, signal: AbortSignal): Promise<Result> {
  const service = ctx.informers.for<Service>(services).lister.get(key);
  if (service === undefined) {
    tracker.forget(key); // the slices go with their owner
    return done;
  }
  if (service.spec?.selector === undefined || service.spec.type === "ExternalName") return done;
  const existing = ctx.informers
    .for<EndpointSlice>(endpointSlices)
    .lister.byIndex(serviceIndex, key)
    .filter(({ metadata }) => !metadata.deletionTimestamp);
  if (tracker.isStale(key, existing)) return { requeueAfterMs: staleRetryMs };

  const plan = planSlices({
    service,
    existing,
    desired: endpointsOfPods(service, podsOf(ctx.informers, service), zonesOf(ctx)),
    maxPerSlice: ctx.config.maxEndpointsPerSlice,
  });
  const hints = ctx.featureGates.enabled("TopologyAwareHints") && wantsHints(service);
  const shares = hints ? zoneShares(ctx.informers.for<Node>(nodes).lister.list()) : undefined;
  await apply(ctx, tracker, service, withHints(plan, existing, shares), signal);
  return done;
}

/** The zone of a node by its name. */
function zonesOf(ctx: ControllerContext): (pod: Pod) => string | undefined {
  const { lister } = ctx.informers.for<Node>(nodes);
  return ({ spec }) => {
    const node = lister.get(spec.nodeName ?? "");
    return node && zoneOf(node);
  };
}

async function apply(
  ctx: ControllerContext,
  tracker: SliceTracker,
  service: Service,
  plan: SlicePlan,
  signal: AbortSignal,
): Promise<void> {
  const { namespace, name = "" } = service.metadata;
  const key = toKey(namespace, name);
  try {
    if (!service.metadata.deletionTimestamp) {
      for (const slice of plan.create)
        tracker.wrote(key, await ctx.client.create<EndpointSlice>(endpointSlices, slice, { signal }));
    }
    for (const slice of plan.update)
      tracker.wrote(key, await ctx.client.update<EndpointSlice>(endpointSlices, slice, { signal }));
    for (const slice of plan.delete) {
      const { name: sliceName = "" } = slice.metadata;
      await ctx.client.delete(endpointSlices, { namespace, name: sliceName }, { signal }).catch((err) => {
        if (!isNotFound(err)) throw err;
      });
      tracker.deleted(key, slice);
    }
  } catch (err) {
    if (hasCause(err, "NamespaceTerminating")) return;
    const message = `Error updating Endpoint Slices for Service ${splitKey(key).namespace}/${name}: ${messageOf(err)}`;
    ctx.recorder.event({ ...service, apiVersion: "v1", kind: "Service" }, "Warning", "FailedToUpdateEndpointSlices", message);
    throw err;
  }
}

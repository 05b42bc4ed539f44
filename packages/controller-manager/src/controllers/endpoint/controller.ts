import { type Controller, done, type Result } from "@coxswain/apimachinery/controller/controller";
import type { Source, SourceQueue } from "@coxswain/apimachinery/controller/sources";
import type { SharedInformer } from "@coxswain/apimachinery/informers/shared-informer";
import { messageOf } from "@coxswain/apimachinery/objects/errors/message";
import { hasCause, isAlreadyExists, isNotFound } from "@coxswain/apimachinery/objects/errors/predicates";
import { deepEqual } from "@coxswain/apimachinery/objects/meta/deep-equal";
import { keyOf, type ObjectKey, splitKey } from "@coxswain/apimachinery/objects/meta/object-key";
import type { Endpoints, Service } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { endpoints, services } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import type { ControllerContext } from "../../controller-context.ts";
import { defineController } from "../../define-controller.ts";
import { isHeadless, podsOf, serviceSources } from "../../services/service-pods.ts";
import { newTriggerTimes, type TriggerTimes, withTriggerTime } from "../../services/trigger-times.ts";
import { endpointsOfPodsInSteps } from "./endpoints-of-pods.ts";
import { missingAddresses } from "./missing-addresses.ts";
import { canonicalSubsets, canonicalSubsetsInSteps, limitAddresses } from "./subsets.ts";

/**
 * endpoint-controller: maintains the Endpoints of each Service with a selector.
 * Watches Services, Pods (keys of the Services that select them) and deletions of Endpoints (own key); writes Endpoints.
 * Source: pkg/controller/endpoint/endpoints_controller.go
 */
export function newEndpointController(base: ControllerContext): Controller {
  const ctx: EndpointContext = {
    ...base,
    services: base.informers.for<Service>(services),
    endpoints: base.informers.for<Endpoints>(endpoints),
    triggers: newTriggerTimes(),
  };
  return defineController(ctx, {
    name: "endpoint",
    sources: [...serviceSources(ctx.informers), existingAndDeleted(ctx)],
    reconcile,
    workers: ctx.config.concurrency.endpoint,
    maxRetries: 15,
    batchMs: ctx.config.endpointUpdatesBatchMs,
  });
}

interface EndpointContext extends ControllerContext {
  readonly services: SharedInformer<Service>;
  readonly endpoints: SharedInformer<Endpoints>;
  readonly triggers: TriggerTimes;
}

/**
 * Enqueues Endpoints that exist at startup, whose Service may have been deleted in the meantime, and deleted
 * Endpoints. Endpoints created or changed by users are not reconciled until the Service or its Pods change.
 * Source: checkLeftoverEndpoints, onEndpointsDelete
 */
function existingAndDeleted({ services, endpoints: informer }: EndpointContext): Source {
  let enqueue: SourceQueue["enqueue"] = () => {};
  return {
    start(queue) {
      enqueue = queue.enqueue;
      // Without a Service nothing is to be made again, and what a user makes next of that name must stay.
      informer.addHandler({
        deleted(last) {
          if (services.lister.get(keyOf(last)) !== undefined) enqueue(keyOf(last));
        },
      });
    },
    async waitForSync(signal) {
      await informer.waitForSync(signal);
      for (const left of informer.lister.list()) enqueue(keyOf(left));
    },
  };
}

const headlessLabel = "service.kubernetes.io/headless";
const overCapacityAnnotation = "endpoints.kubernetes.io/over-capacity";
/** Set on Endpoints used as a leader election lock, which must not be changed. */
const leaderAnnotation = "control-plane.alpha.kubernetes.io/leader";

async function reconcile(ctx: EndpointContext, key: ObjectKey, signal: AbortSignal): Promise<Result> {
  const { triggers } = ctx;
  const service = ctx.services.lister.get(key);
  const current = ctx.endpoints.lister.get(key);
  if (service === undefined) {
    triggers.forget(key);
    return deleteLeftover(ctx, key, current, signal);
  }
  // Endpoints of a Service without a selector are managed by users; an ExternalName Service has no Pods.
  if (service.spec?.selector === undefined || service.spec.type === "ExternalName") return done;
  const selected = podsOf(ctx.informers, service);
  const time = triggers.update(service, selected);
  const { turns } = ctx;
  const found = await turns.run(endpointsOfPodsInSteps(service, selected));
  const { subsets, truncated } = limitAddresses(await turns.run(canonicalSubsetsInSteps(found)));
  const desired = desiredEndpoints(service, current, subsets, truncated);
  await turns.next();
  const result: Result = { decision: missingAddresses(service, selected) };
  if (current !== undefined && isSame(current, desired)) return result;
  desired.metadata.annotations = withTriggerTime(desired.metadata.annotations, time);
  try {
    if (current === undefined) await ctx.client.create<Endpoints>(endpoints, desired, { signal });
    else await ctx.client.update<Endpoints>(endpoints, desired, { signal });
  } catch (err) {
    if (hasCause(err, "NamespaceTerminating")) return done;
    // Created by an earlier reconciliation, which has recorded the result; retry until the cache shows it.
    if (isAlreadyExists(err)) throw new Error("the cache does not show the endpoints yet", { cause: err });
    const [reason, what] =
      current === undefined
        ? ["FailedToCreateEndpoint", "Failed to create endpoint for service"]
        : ["FailedToUpdateEndpoint", "Failed to update endpoint"];
    ctx.recorder.event(desired, "Warning", reason, `${what} ${key}: ${messageOf(err)}`);
    throw err;
  }
  return result;
}

/**
 * Deletes the Endpoints of a deleted Service, unless they are a leader election lock. Also when the cache has none: an earlier
 * reconciliation may have created them, and their creation enqueues nothing.
 */
async function deleteLeftover(
  ctx: ControllerContext,
  key: ObjectKey,
  current: Endpoints | undefined,
  signal: AbortSignal,
): Promise<Result> {
  if (current?.metadata.annotations?.[leaderAnnotation] !== undefined) return done;
  const uid = current?.metadata.uid;
  try {
    await ctx.client.delete(endpoints, splitKey(key), { ...(uid === undefined ? {} : { preconditions: { uid } }), signal });
  } catch (err) {
    if (!isNotFound(err)) throw err;
  }
  return done;
}

/** Pure: builds the Endpoints with the Service's labels; other metadata is kept. */
function desiredEndpoints(
  service: Service,
  current: Endpoints | undefined,
  subsets: NonNullable<Endpoints["subsets"]>,
  truncated: boolean,
): Endpoints {
  const { namespace, name, labels: serviceLabels } = service.metadata;
  const { [headlessLabel]: _, ...labels } = { ...serviceLabels };
  if (isHeadless(service)) labels[headlessLabel] = "";
  const { [overCapacityAnnotation]: __, ...annotations } = { ...current?.metadata.annotations };
  if (truncated) annotations[overCapacityAnnotation] = "truncated";
  return {
    apiVersion: "v1",
    kind: "Endpoints",
    metadata: {
      ...current?.metadata,
      ...(namespace === undefined ? {} : { namespace }),
      ...(name === undefined ? {} : { name }),
      labels,
      ...(Object.keys(annotations).length === 0 && current?.metadata.annotations === undefined ? {} : { annotations }),
    },
    subsets,
  };
}

function isSame(current: Endpoints, desired: Endpoints): boolean {
  const annotations = ({ metadata }: Endpoints): object => withTriggerTime(metadata.annotations, undefined);
  return (
    deepEqual(canonicalSubsets(current.subsets ?? []), desired.subsets ?? []) &&
    deepEqual(current.metadata.labels ?? {}, desired.metadata.labels ?? {}) &&
    deepEqual(annotations(current), annotations(desired))
  );
}

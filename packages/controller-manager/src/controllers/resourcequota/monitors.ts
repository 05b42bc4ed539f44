/**
 * Watches the resources restricted by quotas, among those the API server serves, and reports when usage may have decreased.
 * Resources without a quota are not watched.
 * Source: pkg/controller/resourcequota/resource_quota_monitor.go, pkg/quota/v1/install/update_filter.go
 */

import type { DiscoveredResource } from "@coxswain/apimachinery/client/discovery";
import { newSharedInformer, type SharedInformer } from "@coxswain/apimachinery/informers/shared-informer";
import { parseGroupVersion } from "@coxswain/apimachinery/objects/meta/group-version";
import type { KubeObject } from "@coxswain/apimachinery/objects/meta/types";
import type { Turns } from "@coxswain/apimachinery/process/event-loop/turns";
import type { ResourceList } from "@coxswain/apimachinery/quota/resource-list";
import { type QuotaEvaluator, quotaEvaluator } from "@coxswain/apimachinery/quota/usage";
import type { ControllerContext } from "../../controller-context.ts";
import type { CountedResource } from "./usage.ts";

interface Monitor {
  readonly resource: DiscoveredResource;
  readonly evaluator: QuotaEvaluator;
  informer?: SharedInformer<KubeObject>;
  readonly stop: AbortController;
}

const neededVerbs = ["create", "delete", "list", "watch"];
/** Events are too numerous to watch and not worth a quota. */
const ignored = new Set(["events.", "events.events.k8s.io"]);
/**
 * Resources counted from the shared informers, because their usage depends on their contents; a separate watch could lag behind the shared
 * one, so that a new quota would not count itself. For all others only the number of objects matters.
 */
const shared = new Set(["pods.", "services.", "persistentvolumeclaims.", "resourcequotas."]);

const syncTimeoutMs = 10_000;

export class QuotaMonitors {
  readonly #ctx: ControllerContext;
  readonly #monitors = new Map<string, Monitor>();
  #onReplenished: (evaluator: QuotaEvaluator, namespace: string) => void = () => {};

  constructor(ctx: ControllerContext) {
    this.#ctx = ctx;
  }

  /** Sets the listener called with the evaluator and namespace when usage may have decreased. */
  onReplenished(listener: (evaluator: QuotaEvaluator, namespace: string) => void): void {
    this.#onReplenished = listener;
  }

  /**
   * Repeats discovery.
   * @returns whether resources were added; usage of those that are no longer served keeps its value
   * @throws when discovery fails completely
   */
  async refresh(signal: AbortSignal): Promise<boolean> {
    const { discovery, log } = this.#ctx;
    const { resources, failed } = await discovery.resources(signal);
    for (const { groupVersion, error } of failed) {
      log.warn("failed to discover some groups", { groupVersion, err: String(error) });
    }
    const failedGroups = new Set(failed.map(({ groupVersion }) => parseGroupVersion(groupVersion)?.group));
    const served = new Map(resources.filter(isQuotable).map((resource) => [idOf(resource), resource]));
    this.#removeUnserved(served, failedGroups);
    return this.#addServed(served);
  }

  /** Objects of one namespace that count against the given resource names; starts their informers and waits for them to sync. */
  async counted(names: readonly string[], namespace: string, signal: AbortSignal): Promise<CountedResource[]> {
    const matching = [...this.#monitors.values()].filter(({ evaluator }) => evaluator.matching(names).length > 0);
    const informers = matching.map((monitor) => monitor.informer ?? this.#start(monitor, signal));
    await this.#waitForInformers(informers, signal);
    const counted = (): CountedResource[] =>
      matching.map(({ evaluator }, i) => ({
        evaluator,
        objects: informers[i]!.lister.inNamespace(namespace),
      }));
    for (const { evaluator, objects } of counted()) await precompute(evaluator, objects, this.#ctx.turns);
    return counted(); // read again, because the caches may have changed while yielding
  }

  #removeUnserved(served: ReadonlyMap<string, DiscoveredResource>, failedGroups: ReadonlySet<string | undefined>): void {
    for (const [id, { resource, stop }] of this.#monitors) {
      // Resources of a group whose discovery failed are kept.
      if (served.get(id)?.version === resource.version || failedGroups.has(resource.group)) continue;
      this.#monitors.delete(id);
      stop.abort(new Error("the resource is no longer served"));
    }
  }

  #addServed(served: ReadonlyMap<string, DiscoveredResource>): boolean {
    const { clock, featureGates } = this.#ctx;
    let changed = false;
    for (const [id, resource] of served) {
      if (this.#monitors.has(id)) continue;
      const evaluator = memoized(quotaEvaluator(resource, clock, featureGates.enabled));
      this.#monitors.set(id, { resource, evaluator, stop: new AbortController() });
      changed = true;
    }
    return changed;
  }

  #start(monitor: Monitor, signal: AbortSignal): SharedInformer<KubeObject> {
    const { resource, evaluator } = monitor;
    const isShared = shared.has(idOf(resource));
    const { informers, clock, log, turns } = this.#ctx;
    const informer = isShared
      ? informers.for<KubeObject>(resource)
      : newSharedInformer<KubeObject>({
          client: informers.client,
          clock,
          log,
          turns: turns.ahead,
          ref: resource,
          metadataOnly: true,
          transform: ({ metadata: { namespace, name, uid, resourceVersion } }) => ({
            metadata: { namespace, name, uid, resourceVersion },
          }),
        });
    const replenished = ({ metadata }: KubeObject): void => this.#onReplenished(evaluator, metadata.namespace ?? "");
    informer.addHandler({
      updated(old, now) {
        if (isShared && evaluator.replenishes(old, now)) replenished(now);
      },
      deleted: replenished,
    });
    // Shared informers are running already.
    if (!isShared) void informer.run(AbortSignal.any([signal, monitor.stop.signal]));
    monitor.informer = informer;
    return informer;
  }

  /**
   * Waits for the informers to sync, for a limited time, because the waiting worker blocks other quotas.
   * @throws Error when an informer has not synced in time
   */
  async #waitForInformers(informers: readonly SharedInformer<KubeObject>[], signal: AbortSignal): Promise<void> {
    if (informers.every(({ synced }) => synced)) return;
    const timeout = new AbortController();
    const timer = this.#ctx.clock.after(syncTimeoutMs, () =>
      timeout.abort(new Error("timed out waiting for the caches of the quota's resources to sync")),
    );
    const either = AbortSignal.any([signal, timeout.signal]);
    try {
      await Promise.all(informers.map((informer) => informer.waitForSync(either)));
    } finally {
      timer.cancel();
    }
  }
}

/**
 * Caches the usage per object, since cached objects are immutable. Objects being deleted are evaluated each time
 * because their usage decreases over time.
 */
function memoized(evaluator: QuotaEvaluator): QuotaEvaluator {
  const usages = new WeakMap<KubeObject, ResourceList>();
  return {
    ...evaluator,
    usage(object) {
      if (object.metadata.deletionTimestamp) return evaluator.usage(object);
      const usage = usages.get(object) ?? evaluator.usage(object);
      usages.set(object, usage);
      return usage;
    },
  };
}

/** Evaluates objects in turns: 100,000 Pods in one turn would block the event loop for seconds. */
async function precompute(evaluator: QuotaEvaluator, objects: readonly KubeObject[], turns: Turns): Promise<void> {
  for (const object of objects) {
    const turn = turns.next();
    if (turn !== undefined) await turn;
    evaluator.usage(object);
  }
}

function isQuotable(resource: DiscoveredResource): boolean {
  return resource.namespaced && !ignored.has(idOf(resource)) && neededVerbs.every((verb) => resource.verbs.includes(verb));
}

function idOf({ group, resource }: { readonly group: string; readonly resource: string }): string {
  return `${resource}.${group}`;
}

import { type Controller, done, type Result } from "@coxswain/apimachinery/controller/controller";
import { insist } from "@coxswain/apimachinery/controller/periodic";
import { enqueueBy, needsSynced, type Source } from "@coxswain/apimachinery/controller/sources";
import type { SharedInformer } from "@coxswain/apimachinery/informers/shared-informer";
import { keyOf, type ObjectKey } from "@coxswain/apimachinery/objects/meta/object-key";
import type { KubeObject } from "@coxswain/apimachinery/objects/meta/types";
import type { ResourceQuota } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { resourceQuotas } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { canonicalResources, maskResources, sameResources } from "@coxswain/apimachinery/quota/resource-list";
import type { ControllerContext, Runnable } from "../../controller-context.ts";
import { defineController, definePeriodic } from "../../define-controller.ts";
import { QuotaMonitors } from "./monitors.ts";
import { usageOf } from "./usage.ts";

type Quota = ResourceQuota & KubeObject;

/**
 * resourcequota: copies `spec.hard` to `status.hard` and maintains `status.used`.
 * Admission charges creations; this controller recomputes usage when a quota is created or changed, when objects are deleted
 * or finish, and periodically. A quota without computed usage rejects everything it restricts, so such quotas have a queue
 * of their own with priority.
 * Watches ResourceQuotas (own key) and the restricted resources (keys of the namespace's quotas); writes
 * resourcequotas/status.
 * Source: pkg/controller/resourcequota/resource_quota_controller.go
 */
export function newResourceQuotaController(base: ControllerContext): Runnable {
  const informer = base.informers.for<Quota>(resourceQuotas);
  const ctx: QuotaContext = { ...base, quotas: informer, monitors: new QuotaMonitors(base) };
  const { config, monitors } = ctx;
  const queue = (name: string, sources: readonly Source[]): Controller =>
    defineController(ctx, { name, resource: resourceQuotas, sources, reconcile, workers: config.concurrency.resourceQuota });
  const priority = queue("resourcequota_priority", [needsSynced(informer)]);
  const primary = queue("resourcequota_primary", [
    enqueueBy(informer, ({ enqueue }) => {
      const enqueueByPriority = (quota: Quota): void =>
        isComputed(quota) ? enqueue(keyOf(quota)) : priority.enqueue(keyOf(quota));
      return {
        added: enqueueByPriority,
        // Status updates by admission and by this controller do not require a recomputation.
        updated: (old, now) => {
          if (!sameResources(old.spec?.hard ?? {}, now.spec?.hard ?? {})) enqueueByPriority(now);
        },
      };
    }),
  ]);
  monitors.onReplenished((evaluator, namespace) => {
    for (const quota of informer.lister.inNamespace(namespace)) {
      if (evaluator.matching(Object.keys(quota.status?.hard ?? {})).length > 0) primary.enqueue(keyOf(quota));
    }
  });
  const enqueueAll = (): void => {
    for (const quota of informer.lister.list()) primary.enqueue(keyOf(quota));
  };
  const resync = definePeriodic(ctx, {
    name: "resourcequota",
    periodMs: config.resourceQuotaSyncPeriodMs,
    synced: [informer],
    work: async () => enqueueAll(),
  });
  const discovery = definePeriodic(ctx, {
    name: "resourcequota-discovery",
    periodMs: 30_000,
    startsLate: true,
    async work(_ctx, signal) {
      if (await monitors.refresh(signal)) enqueueAll();
    },
  });
  return {
    async run(signal) {
      // Counting needs discovery, so it is retried until it succeeds.
      await insist({
        work: (stop) => monitors.refresh(stop),
        failure: "cannot discover the server's resources",
        signal,
        log: ctx.log,
        clock: ctx.clock,
      });
      await Promise.all([priority, primary, resync, discovery].map((part) => part.run(signal)));
    },
  };
}

interface QuotaContext extends ControllerContext {
  readonly quotas: SharedInformer<Quota>;
  readonly monitors: QuotaMonitors;
}

/** Whether the status has the limits of the spec and a usage for each of them. */
function isComputed({ spec, status }: Quota): boolean {
  const hard = status?.hard;
  if (hard === undefined || !sameResources(spec?.hard ?? {}, hard)) return false;
  return Object.keys(hard).every((name) => Object.hasOwn(status?.used ?? {}, name));
}

async function reconcile(ctx: QuotaContext, key: ObjectKey, signal: AbortSignal): Promise<Result> {
  const { quotas, monitors } = ctx;
  const before = quotas.lister.get(key);
  if (before === undefined) return done;
  const names = Object.keys(before.spec?.hard ?? {});
  const counted = await monitors.counted(names, before.metadata.namespace ?? "", signal);
  // Waiting for informers to sync takes time; the quota may have changed.
  const quota = quotas.lister.get(key);
  if (quota === undefined || quota !== before) return quota === undefined ? done : reconcile(ctx, key, signal);
  const hard = canonicalResources(quota.spec?.hard ?? {});
  // Usage that cannot be computed now keeps its previous value.
  const used = maskResources({ ...quota.status?.used, ...usageOf(quota.spec, counted) }, names);
  if (isWritten(quota, hard, used)) return done;
  await ctx.client.update<Quota>(
    resourceQuotas,
    { ...quota, status: { hard, used } },
    {
      subresource: "status",
      signal,
    },
  );
  return done;
}

function isWritten({ status }: Quota, hard: Record<string, string>, used: Readonly<Record<string, string>>): boolean {
  if (status?.hard === undefined || status.used === undefined) return false;
  return sameResources(status.hard, hard) && sameResources(status.used, used);
}

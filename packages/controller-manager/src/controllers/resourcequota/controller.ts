import { type Controller, done, newController, type Result } from "@coxswain/apimachinery/controller/controller";
import { insist, newPeriodic } from "@coxswain/apimachinery/controller/periodic";
import { enqueueBy, needsSynced } from "@coxswain/apimachinery/controller/sources";
import { keyOf } from "@coxswain/apimachinery/meta/object-key";
import type { KubeObject } from "@coxswain/apimachinery/meta/types";
import { canonicalResources, maskResources, sameResources } from "@coxswain/apimachinery/quota/resource-list";
import type { ResourceQuota } from "@coxswain/apimachinery/schema/kinds/core/v1";
import { resourceQuotas } from "@coxswain/apimachinery/schema/kinds/resources";
import type { ControllerContext, Runnable } from "../../controller-context.ts";
import { newQuotaMonitors, type QuotaMonitors } from "./monitors.ts";
import { usageOf } from "./usage-of.ts";

type Quota = ResourceQuota & KubeObject;

/**
 * resourcequota: keeps `status.hard` what `spec.hard` asks for and `status.used` what the namespace really uses.
 * Admission charges what is created; this counts everything anew when a quota is new or changed, when something was
 * deleted or ended, and now and then. Quotas that nobody has counted yet refuse all that they bound, so they go first, in
 * a queue of their own.
 * Watches ResourceQuotas (own key) and what they bound (keys of the namespace's quotas); writes resourcequotas/status.
 * Source: pkg/controller/resourcequota/resource_quota_controller.go
 */
export function newResourceQuotaController(ctx: ControllerContext): Runnable {
  const { log, clock, metrics, config } = ctx;
  const informer = ctx.informers.for<Quota>(resourceQuotas);
  const monitors = newQuotaMonitors(ctx);
  const queue = (name: string, sources: Parameters<typeof newController>[0]["sources"]): Controller =>
    newController({
      name,
      sources,
      reconcile: (key, signal) => reconcile(ctx, monitors, key, signal),
      workers: config.concurrency.resourceQuota,
      log,
      clock,
      metrics,
    });
  const priority = queue("resourcequota_priority", [needsSynced(informer)]);
  const primary = queue("resourcequota_primary", [
    enqueueBy(informer, ({ enqueue }) => {
      const sort = (quota: Quota): void => (isCounted(quota) ? enqueue(keyOf(quota)) : priority.enqueue(keyOf(quota)));
      return {
        added: sort,
        // Its status is written by admission and by us: no reason to count again.
        updated: (old, now) => {
          if (!sameResources(old.spec?.hard ?? {}, now.spec?.hard ?? {})) sort(now);
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
  const resync = newPeriodic({
    name: "resourcequota",
    periodMs: config.resourceQuotaSyncPeriodMs,
    synced: [informer],
    work: async () => enqueueAll(),
    log,
    clock,
  });
  const discovery = newPeriodic({
    name: "resourcequota-discovery",
    periodMs: 30_000,
    async work(signal) {
      if (await monitors.refresh(signal)) enqueueAll();
    },
    log,
    clock,
  });
  return {
    async run(signal) {
      // Without discovery nothing can be counted.
      await insist({
        work: monitors.refresh,
        failure: "cannot discover the server's resources",
        signal,
        log: ctx.log,
        clock: ctx.clock,
      });
      await Promise.all([priority, primary, resync, discovery].map((part) => part.run(signal)));
    },
  };
}

/** What it bounds stands in its status, with a count of each. */
function isCounted({ spec, status }: Quota): boolean {
  const hard = status?.hard;
  if (hard === undefined || !sameResources(spec?.hard ?? {}, hard)) return false;
  return Object.keys(hard).every((name) => Object.hasOwn(status?.used ?? {}, name));
}

async function reconcile(ctx: ControllerContext, monitors: QuotaMonitors, key: string, signal: AbortSignal): Promise<Result> {
  const informer = ctx.informers.for<Quota>(resourceQuotas);
  const before = informer.lister.get(key);
  if (before === undefined) return done;
  const names = Object.keys(before.spec?.hard ?? {});
  const counted = await monitors.counted(names, before.metadata.namespace ?? "", signal);
  // Waiting for a first list takes time: the quota may be another one by now.
  const quota = informer.lister.get(key);
  if (quota === undefined || quota !== before) return quota === undefined ? done : reconcile(ctx, monitors, key, signal);
  const hard = canonicalResources(quota.spec?.hard ?? {});
  // What cannot be counted now keeps the count it had.
  const used = maskResources({ ...quota.status?.used, ...usageOf(quota.spec, counted) }, names);
  if (isWritten(quota, hard, used)) return done;
  await ctx.client.update<Quota>(resourceQuotas, { ...quota, status: { hard, used } } as Quota, {
    subresource: "status",
    signal,
  });
  return done;
}

function isWritten({ status }: Quota, hard: Record<string, string>, used: Readonly<Record<string, string>>): boolean {
  if (status?.hard === undefined || status.used === undefined) return false;
  return sameResources(status.hard, hard) && sameResources(status.used, used);
}

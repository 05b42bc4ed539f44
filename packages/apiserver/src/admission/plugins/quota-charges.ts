/**
 * Charges writes to the namespace's quotas by updating the quotas' status before the write is executed. Requests that arrive
 * while an update is in flight are batched into the next one. On a conflict with another writer (another apiserver, the quota
 * controller) the charge is recomputed from the live quota.
 * Source: k8s.io/apiserver pkg/admission/plugin/resourcequota/{controller,resource_access}.go
 */
import { isConflict, isNotFound } from "@coxswain/apimachinery/objects/errors/predicates";
import { internalError } from "@coxswain/apimachinery/objects/errors/status-error";
import { keyOf } from "@coxswain/apimachinery/objects/meta/object-key";
import { resourceQuotas } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import type { QuotaEvaluator } from "@coxswain/apimachinery/quota/usage";
import type { AdmissionAttributes } from "../plugin.ts";
import type { PluginContext } from "../plugin-context.ts";
import { chargedQuotas, type QuotaObject } from "./quota-cost.ts";

/** Resolves when the write is charged; rejects with the error for the client. */
type Charge = (attributes: AdmissionAttributes, evaluator: QuotaEvaluator, quotas: readonly QuotaObject[]) => Promise<void>;

interface Waiter {
  readonly attributes: AdmissionAttributes;
  readonly evaluator: QuotaEvaluator;
  readonly quotas: readonly QuotaObject[];
  charged(): void;
  refused(reason: unknown): void;
}

const retries = 10;

/** Batches charges per namespace: one update of the quotas is in flight at a time. */
export function newCharges(ctx: PluginContext): Charge {
  /** Quotas as last written here, by uid, until the informer catches up. */
  const written = new Map<string, QuotaObject>();
  const informer = ctx.informers.for<QuotaObject>(resourceQuotas);
  informer.addHandler({
    updated(_old, now) {
      const own = written.get(uidOf(now));
      if (own !== undefined && revisionOf(own) <= revisionOf(now)) written.delete(uidOf(now));
    },
    deleted: (last) => written.delete(uidOf(last)),
  });
  /** While a request waited, others may have written its quotas: charging the state it came with would be a conflict. */
  const newest = (quota: QuotaObject): QuotaObject => {
    let newestSeen = quota;
    for (const other of [written.get(uidOf(quota)), informer.lister.get(keyOf(quota))]) {
      if (other === undefined || uidOf(other) !== uidOf(quota)) continue;
      if (revisionOf(other) > revisionOf(newestSeen)) newestSeen = other;
    }
    return newestSeen;
  };

  const fresh = async (quotas: readonly QuotaObject[]): Promise<QuotaObject[]> => {
    const live = quotas.map(({ metadata: { namespace, name = "" } }) =>
      ctx.client.get<QuotaObject>(resourceQuotas, { namespace, name }).catch((err: unknown) => {
        if (isNotFound(err)) return undefined;
        throw err;
      }),
    );
    return (await Promise.all(live)).filter((quota) => quota !== undefined);
  };

  /** @returns the quotas whose update failed with Conflict or NotFound. */
  const write = async (charged: readonly QuotaObject[]): Promise<QuotaObject[]> => {
    const lost: QuotaObject[] = [];
    for (const quota of charged) {
      try {
        written.set(uidOf(quota), await ctx.client.update<QuotaObject>(resourceQuotas, quota, { subresource: "status" }));
      } catch (err) {
        if (!isConflict(err) && !isNotFound(err)) throw err;
        written.delete(uidOf(quota));
        lost.push(quota);
      }
    }
    return lost;
  };

  const chargeAll = async (waiters: readonly Waiter[]): Promise<void> => {
    let quotas = (waiters.at(-1)?.quotas ?? []).map(newest);
    let open = waiters;
    for (let attempt = 0; attempt <= retries; attempt++) {
      const { charged, changed } = chargeInTurn(quotas, open);
      const lost = await write(changed);
      if (lost.length === 0) {
        for (const waiter of charged) waiter.charged();
        return;
      }
      // The other quotas are already charged: only the conflicting ones are retried.
      quotas = await fresh(lost);
      open = charged;
    }
    for (const waiter of open) waiter.refused(internalError(new Error("resource quota evaluation timed out")));
  };

  const waiting = new Map<string, Waiter[]>();
  const work = async (namespace: string, queue: Waiter[]): Promise<void> => {
    while (queue.length > 0) {
      const batch = queue.splice(0);
      await chargeAll(batch).catch((err: unknown) => {
        for (const waiter of batch) waiter.refused(err);
      });
    }
    waiting.delete(namespace);
  };
  return (attributes, evaluator, quotas) =>
    new Promise((charged, refused) => {
      const waiter = { attributes, evaluator, quotas, charged, refused };
      const queue = waiting.get(attributes.namespace);
      if (queue !== undefined) return void queue.push(waiter);
      const own = [waiter];
      waiting.set(attributes.namespace, own);
      void work(attributes.namespace, own);
    });
}

/** Charges the requests sequentially, each on the state left by the previous ones; rejects those that exceed a quota. */
function chargeInTurn(quotas: readonly QuotaObject[], waiters: readonly Waiter[]): { charged: Waiter[]; changed: QuotaObject[] } {
  const state = new Map(quotas.map((quota) => [uidOf(quota), quota]));
  const charged: Waiter[] = [];
  for (const waiter of waiters) {
    try {
      const next = chargedQuotas(waiter.attributes, waiter.evaluator, [...state.values()]);
      // A dry run is checked but does not consume quota.
      if (!waiter.attributes.dryRun) for (const quota of next) state.set(uidOf(quota), quota);
      charged.push(waiter);
    } catch (err) {
      waiter.refused(err);
    }
  }
  return {
    charged,
    changed: quotas.map((quota) => state.get(uidOf(quota)) as QuotaObject).filter((quota, i) => quota !== quotas[i]),
  };
}

function uidOf({ metadata }: QuotaObject): string {
  return metadata.uid ?? "";
}

function revisionOf({ metadata }: QuotaObject): number {
  return Number(metadata.resourceVersion ?? 0);
}

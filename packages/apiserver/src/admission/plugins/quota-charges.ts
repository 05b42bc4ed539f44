/**
 * Charges writes to the namespace's quotas by updating the quotas' status before the write is executed. Requests that arrive
 * while an update is in flight are batched into the next one. On a conflict with another writer (another apiserver, the quota
 * controller) the charge is recomputed from the live quota.
 * Source: k8s.io/apiserver pkg/admission/plugin/resourcequota/{controller,resource_access}.go
 */
import type { Client } from "@coxswain/apimachinery/client/client";
import type { SharedInformer } from "@coxswain/apimachinery/informers/shared-informer";
import { isConflict, isNotFound } from "@coxswain/apimachinery/objects/errors/predicates";
import { internalError } from "@coxswain/apimachinery/objects/errors/status-error";
import { keyOf } from "@coxswain/apimachinery/objects/meta/object-key";
import { resourceQuotas } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import type { QuotaEvaluator } from "@coxswain/apimachinery/quota/usage";
import type { AdmissionAttributes } from "../plugin.ts";
import type { PluginContext } from "../plugin-context.ts";
import { chargedQuotas, type QuotaObject } from "./quota-cost.ts";

interface Waiter {
  readonly attributes: AdmissionAttributes;
  readonly evaluator: QuotaEvaluator;
  readonly quotas: readonly QuotaObject[];
  charged(): void;
  refused(reason: unknown): void;
}

const retries = 10;

/** Batches charges per namespace: one update of the quotas is in flight at a time. */
export class Charges {
  readonly #client: Client;
  readonly #informer: SharedInformer<QuotaObject>;
  /** Quotas as last written here, by uid, until the informer catches up. */
  readonly #written = new Map<string, QuotaObject>();
  /** Waiting requests by namespace, while one of its updates is in flight. */
  readonly #waiting = new Map<string, Waiter[]>();

  constructor({ informers, client }: PluginContext) {
    this.#client = client;
    this.#informer = informers.for<QuotaObject>(resourceQuotas);
    this.#informer.addHandler({
      updated: (_old, now) => {
        const own = this.#written.get(uidOf(now));
        if (own !== undefined && revisionOf(own) <= revisionOf(now)) this.#written.delete(uidOf(now));
      },
      deleted: (last) => this.#written.delete(uidOf(last)),
    });
  }

  /** Resolves when the write is charged; rejects with the error for the client. */
  charge(attributes: AdmissionAttributes, evaluator: QuotaEvaluator, quotas: readonly QuotaObject[]): Promise<void> {
    return new Promise((charged, refused) => {
      const waiter = { attributes, evaluator, quotas, charged, refused };
      const queue = this.#waiting.get(attributes.namespace);
      if (queue !== undefined) return void queue.push(waiter);
      const own = [waiter];
      this.#waiting.set(attributes.namespace, own);
      void this.#work(attributes.namespace, own);
    });
  }

  async #work(namespace: string, queue: Waiter[]): Promise<void> {
    while (queue.length > 0) {
      const batch = queue.splice(0);
      await this.#chargeAll(batch).catch((err: unknown) => {
        for (const waiter of batch) waiter.refused(err);
      });
    }
    this.#waiting.delete(namespace);
  }

  async #chargeAll(waiters: readonly Waiter[]): Promise<void> {
    let quotas = (waiters.at(-1)?.quotas ?? []).map((quota) => this.#newest(quota));
    let open = waiters;
    for (let attempt = 0; attempt <= retries; attempt++) {
      const { charged, changed } = chargeInTurn(quotas, open);
      const lost = await this.#write(changed);
      if (lost.length === 0) {
        for (const waiter of charged) waiter.charged();
        return;
      }
      // The other quotas are already charged: only the conflicting ones are retried.
      quotas = await this.#live(lost);
      open = charged;
    }
    for (const waiter of open) waiter.refused(internalError(new Error("resource quota evaluation timed out")));
  }

  /** While a request waited, others may have written its quotas: charging the state it came with would be a conflict. */
  #newest(quota: QuotaObject): QuotaObject {
    let newest = quota;
    for (const other of [this.#written.get(uidOf(quota)), this.#informer.lister.get(keyOf(quota))]) {
      if (other !== undefined && revisionOf(other) > revisionOf(newest)) newest = other;
    }
    return newest;
  }

  /** @returns the quotas whose update failed with Conflict or NotFound. */
  async #write(charged: readonly QuotaObject[]): Promise<QuotaObject[]> {
    const lost: QuotaObject[] = [];
    for (const quota of charged) {
      try {
        const stored = await this.#client.update<QuotaObject>(resourceQuotas, quota, { subresource: "status" });
        this.#written.set(uidOf(quota), stored);
      } catch (err) {
        if (!isConflict(err) && !isNotFound(err)) throw err;
        this.#written.delete(uidOf(quota));
        lost.push(quota);
      }
    }
    return lost;
  }

  /** The quotas as the API server has them now, without those that are gone. */
  async #live(quotas: readonly QuotaObject[]): Promise<QuotaObject[]> {
    const live = quotas.map(({ metadata: { namespace, name = "" } }) =>
      this.#client.get<QuotaObject>(resourceQuotas, { namespace, name }).catch((err: unknown) => {
        if (isNotFound(err)) return undefined;
        throw err;
      }),
    );
    return (await Promise.all(live)).filter((quota) => quota !== undefined);
  }
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
    changed: quotas.map((quota) => state.get(uidOf(quota))!).filter((quota, i) => quota !== quotas[i]),
  };
}

function uidOf({ metadata }: QuotaObject): string {
  return metadata.uid ?? "";
}

function revisionOf({ metadata }: QuotaObject): number {
  return Number(metadata.resourceVersion ?? 0);
}

import type { Client } from "@coxswain/apimachinery/client/client";
import type { InformerFactory } from "@coxswain/apimachinery/informers/factory";
import type { ResourceRef } from "@coxswain/apimachinery/objects/meta/group-version";
import type { KubeObject } from "@coxswain/apimachinery/objects/meta/types";
import { LRUCache } from "lru-cache";

interface NamespacedLookup<T> {
  readonly synced: boolean;
  /**
   * From the informer cache; when it has none for the namespace, from the API, because the first one may have just been
   * created. An empty result is cached for 30 s.
   */
  in(namespace: string): Promise<readonly T[]>;
}

/** Not larger, because the cache allocates memory for all entries at once. */
const mostNamespaces = 1_000;
const emptyForMs = 30_000;

/**
 * Objects of a namespaced resource that admission evaluates, such as LimitRanges and ResourceQuotas.
 * Source: plugin/pkg/admission/limitranger/admission.go, k8s.io/apiserver pkg/admission/plugin/resourcequota/resource_access.go
 */
export function namespacedLookup<T extends KubeObject>(
  informers: InformerFactory,
  client: Client,
  ref: ResourceRef,
): NamespacedLookup<T> {
  const informer = informers.for<T>(ref);
  /** Namespaces without objects; made when there is one. */
  let empty: LRUCache<string, true> | undefined;
  return {
    get synced() {
      return informer.synced;
    },
    async in(namespace) {
      const known = informer.lister.inNamespace(namespace);
      if (known.length > 0 || empty?.has(namespace)) return known;
      const { items } = await client.list<T>(ref, { namespace });
      if (items.length > 0) return items;
      // Without `ttlResolution` each look starts a timer of 1 ms.
      empty ??= new LRUCache({ max: mostNamespaces, ttl: emptyForMs, ttlResolution: 0 });
      empty.set(namespace, true);
      return items;
    },
  };
}

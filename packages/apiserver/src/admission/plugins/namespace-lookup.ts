import type { Client } from "@coxswain/apimachinery/client/client";
import type { InformerFactory } from "@coxswain/apimachinery/informers/factory";
import { isNotFound } from "@coxswain/apimachinery/objects/errors/predicates";
import type { KubeObject } from "@coxswain/apimachinery/objects/meta/types";
import { namespaces } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import type { AdmissionAttributes } from "../plugin.ts";

export interface NamespaceObject extends KubeObject {
  status?: { phase?: string };
}

export interface NamespaceLookup {
  readonly synced: boolean;
  /** From the informer cache, then from the API when the cache does not have it. */
  get(name: string): Promise<NamespaceObject | undefined>;
}

/**
 * Whether the object of a write is a namespace itself: its admission attributes name it as their namespace. Plugins that every create
 * runs contain the condition, because a call would come back to this file (tools/request-path).
 */
export function isNamespace({ kind }: Pick<AdmissionAttributes, "kind">): boolean {
  return kind.group === "" && kind.kind === "Namespace";
}

/** Falls back to a live lookup, because a namespace that was just created may be missing in the cache. */
export function namespaceLookup(informers: InformerFactory, client: Client): NamespaceLookup {
  const informer = informers.for<NamespaceObject>(namespaces);
  return {
    get synced() {
      return informer.synced;
    },
    async get(name) {
      const known = informer.lister.get(name);
      if (known !== undefined) return known;
      return client.get<NamespaceObject>(namespaces, { name }).catch((err: unknown) => {
        if (isNotFound(err)) return undefined;
        throw err;
      });
    },
  };
}

import type { Client } from "@coxswain/apimachinery/client/client";
import type { InformerFactory } from "@coxswain/apimachinery/informers/factory";
import type { ResourceRef } from "@coxswain/apimachinery/objects/meta/group-version";
import { keyOf } from "@coxswain/apimachinery/objects/meta/object-key";
import { parseResourceVersion } from "@coxswain/apimachinery/objects/meta/resource-version";
import type { KubeObject } from "@coxswain/apimachinery/objects/meta/types";
import type { Clock } from "@coxswain/apimachinery/process/clock/clock";

const pollMs = 20;

/**
 * Resolves when the informers hold every object of these resources at the store's revision or a later one: the default roles and other
 * objects written at startup take effect only then.
 */
export async function untilCaughtUp(
  client: Client,
  informers: InformerFactory,
  refs: readonly ResourceRef[],
  clock: Clock,
  signal: AbortSignal,
): Promise<void> {
  for (const ref of refs) {
    const { lister } = informers.for<KubeObject>(ref);
    const isShown = (object: KubeObject): boolean => {
      const shown = lister.get(keyOf(object));
      return shown !== undefined && revisionOf(shown) >= revisionOf(object);
    };
    // Listed on each attempt, since an object deleted meanwhile never appears in the informer.
    while (!(await client.list<KubeObject>(ref, {}, { signal })).items.every(isShown)) await clock.sleep(pollMs, signal);
  }
}

function revisionOf({ metadata }: KubeObject): number {
  return parseResourceVersion(metadata.resourceVersion ?? "0");
}

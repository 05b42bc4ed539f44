import type { Client } from "@coxswain/apimachinery/client/client";
import { isConflict, isNotFound } from "@coxswain/apimachinery/objects/errors/predicates";
import type { ResourceRef } from "@coxswain/apimachinery/objects/meta/group-version";
import type { KubeObject } from "@coxswain/apimachinery/objects/meta/types";

/**
 * Writes an owner's status; after a conflict retries once on the stored object. A deleted or recreated owner is ignored, and so
 * is a status of an older generation than the stored one: the newer object has been reconciled, and the cache will show it.
 * @throws Conflict when the retry fails as well
 */
export async function writeStatus<T extends KubeObject & { status?: Observed }>(
  client: Client,
  ref: ResourceRef,
  owner: T,
  status: NonNullable<T["status"]>,
  signal: AbortSignal,
): Promise<void> {
  const { namespace, name = "", uid } = owner.metadata;
  const write = (base: T): Promise<T> =>
    client.update<T>(ref, { ...base, status }, { subresource: "status", readsMetadataOnly: true, signal });
  try {
    try {
      await write(owner);
    } catch (err) {
      if (!isConflict(err)) throw err;
      const fresh = await client.get<T>(ref, { namespace, name }, { signal });
      if (fresh.metadata.uid === uid && !isOlder(status, fresh.status)) await write(fresh);
    }
  } catch (err) {
    if (!isNotFound(err)) throw err;
  }
}

interface Observed {
  observedGeneration?: number;
}

function isOlder(status: Observed, stored: Observed = {}): boolean {
  return (status.observedGeneration ?? 0) < (stored.observedGeneration ?? 0);
}

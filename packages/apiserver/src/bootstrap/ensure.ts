import type { Client } from "@coxswain/apimachinery/client/client";
import { isAlreadyExists, isConflict, isNotFound } from "@coxswain/apimachinery/objects/errors/predicates";
import type { ResourceRef } from "@coxswain/apimachinery/objects/meta/group-version";
import type { KubeObject } from "@coxswain/apimachinery/objects/meta/types";

/** Upper bound of attempts at one object. */
export const attempts = 5;

/**
 * Creates an object, or updates an existing one. Retries on conflicts with other API servers.
 * @param bring returns the changed object, or undefined when it is up to date; must not modify its argument
 */
export async function ensure<T extends KubeObject>(
  client: Client,
  ref: ResourceRef,
  wanted: T,
  bring: (existing: T) => T | undefined = () => undefined,
  signal?: AbortSignal,
): Promise<void> {
  const target = { namespace: wanted.metadata.namespace, name: wanted.metadata.name! };
  for (let attempt = 1; ; attempt++) {
    try {
      const existing = await client.get<T>(ref, target, { signal });
      const next = bring(existing);
      if (next !== undefined) await client.update<T>(ref, next, { signal });
      return;
    } catch (err) {
      if (isNotFound(err)) {
        try {
          await client.create<T>(ref, wanted, { signal });
          return;
        } catch (second) {
          if (!isAlreadyExists(second) || attempt === attempts) throw second;
        }
      } else if (!isConflict(err) || attempt === attempts) {
        throw err;
      }
    }
  }
}

import type { Client } from "@coxswain/apimachinery/client/client";
import type { Clock } from "@coxswain/apimachinery/process/clock/clock";
import type { IdentityLeaseOptions } from "../bootstrap/identity-lease.ts";
import { keepStorageVersions, newStorageVersions, type StorageVersions } from "../bootstrap/storage-versions.ts";
import { storageVersionPrecondition } from "../filters/storage-version-precondition.ts";
import type { Router } from "../handlers/router.ts";
import type { ServedResources } from "../handlers/served-resources.ts";
import type { PostStartHook } from "./post-start-hooks.ts";

/**
 * With the gates StorageVersionAPI and APIServerIdentity: the storage versions of the served resources, and a router that
 * delays writes until they are published. Without: the router unchanged.
 */
export function withStorageVersionBarrier(
  route: Router,
  options: {
    readonly resources: ServedResources;
    readonly client: Client;
    readonly clock: Clock;
    readonly signal: AbortSignal;
    readonly featureEnabled: (gate: string) => boolean;
  },
): { readonly handle: Router; readonly storageVersions: StorageVersions | undefined } {
  if (!["StorageVersionAPI", "APIServerIdentity"].every(options.featureEnabled))
    return { handle: route, storageVersions: undefined };
  const stored = options.resources.all().filter(({ store }) => store !== undefined);
  const definitions = [...new Set(stored.map(({ definition }) => definition))];
  const storageVersions = newStorageVersions(definitions, options.client, options.clock, options.signal);
  const precondition = storageVersionPrecondition(storageVersions);
  return { handle: (request) => precondition(request).then(() => route(request)), storageVersions };
}

/** The hook that publishes them; the server is not ready until it has finished. */
export function storageVersionHooks(
  storageVersions: StorageVersions | undefined,
  identity: IdentityLeaseOptions | undefined,
): PostStartHook[] {
  if (storageVersions === undefined || identity === undefined) return [];
  const name = "built-in-resources-storage-version-updater";
  return [{ name, run: (signal) => keepStorageVersions(storageVersions, identity, signal) }];
}

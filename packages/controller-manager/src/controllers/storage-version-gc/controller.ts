import { done, type Result } from "@coxswain/apimachinery/controller/controller";
import { enqueueBy, enqueueMapped, needsSynced } from "@coxswain/apimachinery/controller/sources";
import type { SharedInformer } from "@coxswain/apimachinery/informers/shared-informer";
import { isNotFound } from "@coxswain/apimachinery/objects/errors/predicates";
import type { ObjectKey } from "@coxswain/apimachinery/objects/meta/object-key";
import type { Lease } from "@coxswain/apimachinery/objects/schema/kinds/coordination/v1";
import type { ServerStorageVersion, StorageVersion } from "@coxswain/apimachinery/objects/schema/kinds/internal/v1alpha1";
import { leases, storageVersions } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { statusWith } from "@coxswain/apimachinery/storage-versions/agree";
import type { ControllerContext, Runnable } from "../../controller-context.ts";
import { defineController, runTogether } from "../../define-controller.ts";

const namespace = "kube-system";

/**
 * storage-version-garbage-collector: removes API servers whose identity Lease was deleted from StorageVersions, and deletes
 * StorageVersions without servers. Watches Leases (deleted identities) and StorageVersions (servers without identity);
 * writes storageversions/status, deletes StorageVersions.
 * Source: pkg/controller/storageversiongc/gc_controller.go
 */
export function newStorageVersionGarbageCollector(base: ControllerContext): Runnable {
  const ctx: StorageVersionContext = {
    ...base,
    leases: base.informers.for<Lease>(leases),
    storageVersions: base.informers.for<StorageVersion>(storageVersions),
  };
  const leaseQueue = defineController(ctx, {
    name: "storage_version_garbage_collector_leases",
    sources: [
      enqueueBy(ctx.leases, ({ enqueue }) => ({
        deleted(lease) {
          if (lease.metadata.namespace === namespace && isIdentity(lease)) enqueue(lease.metadata.name ?? "");
        },
      })),
      needsSynced(ctx.storageVersions),
    ],
    reconcile: reconcileIdentity,
  });
  const storageVersionQueue = defineController(ctx, {
    name: "storage_version_garbage_collector_storageversions",
    sources: [
      enqueueMapped(ctx.storageVersions, ({ metadata, status }) => {
        const known = (status?.storageVersions ?? []).every(({ apiServerID }) =>
          isIdentity(ctx.leases.lister.get(`${namespace}/${apiServerID}`)),
        );
        return known ? [] : [metadata.name ?? ""];
      }),
      needsSynced(ctx.leases),
    ],
    reconcile: reconcileStorageVersion,
  });
  return runTogether(leaseQueue, storageVersionQueue);
}

interface StorageVersionContext extends ControllerContext {
  readonly leases: SharedInformer<Lease>;
  readonly storageVersions: SharedInformer<StorageVersion>;
}

/** Reads the API server: the cache may not contain the Lease of a new server yet. */
async function hasIdentity(
  ctx: StorageVersionContext,
  { apiServerID: name = "" }: ServerStorageVersion,
  signal: AbortSignal,
): Promise<boolean> {
  try {
    return isIdentity(await ctx.client.get<Lease>(leases, { namespace, name }, { signal }));
  } catch (err) {
    if (isNotFound(err)) return false;
    throw err;
  }
}

async function keepOnly(
  ctx: StorageVersionContext,
  version: StorageVersion,
  servers: readonly ServerStorageVersion[],
  signal: AbortSignal,
): Promise<void> {
  const { name = "", uid } = version.metadata;
  if (servers.length > 0) {
    const next = { ...version, status: statusWith(version, servers, ctx.clock.now()) };
    await ctx.client.update(storageVersions, next, { subresource: "status", signal });
    return;
  }
  const preconditions = uid === undefined ? {} : { preconditions: { uid } };
  await ctx.client.delete(storageVersions, { name }, { ...preconditions, signal });
}

/** Removes a server without identity from all StorageVersions. */
async function reconcileIdentity(ctx: StorageVersionContext, identity: ObjectKey, signal: AbortSignal): Promise<Result> {
  if (await hasIdentity(ctx, { apiServerID: identity }, signal)) return done;
  const { items } = await ctx.client.list<StorageVersion>(storageVersions, {}, { signal });
  const failures: unknown[] = [];
  for (const version of items) {
    const servers = version.status?.storageVersions ?? [];
    const remaining = servers.filter(({ apiServerID }) => apiServerID !== identity);
    if (remaining.length < servers.length) await keepOnly(ctx, version, remaining, signal).catch((err) => failures.push(err));
  }
  if (failures.length > 0) throw failures[0];
  return done;
}

/** Removes the servers without identity from one StorageVersion. */
async function reconcileStorageVersion(ctx: StorageVersionContext, name: ObjectKey, signal: AbortSignal): Promise<Result> {
  let version: StorageVersion;
  try {
    version = await ctx.client.get<StorageVersion>(storageVersions, { name }, { signal });
  } catch (err) {
    if (isNotFound(err)) return done;
    throw err;
  }
  const servers = version.status?.storageVersions ?? [];
  const remaining: ServerStorageVersion[] = [];
  for (const server of servers) if (await hasIdentity(ctx, server, signal)) remaining.push(server);
  if (remaining.length < servers.length) await keepOnly(ctx, version, remaining, signal);
  return done;
}

function isIdentity(lease: Lease | undefined): boolean {
  return lease?.metadata.labels?.["k8s.io/component"] === "kube-apiserver";
}

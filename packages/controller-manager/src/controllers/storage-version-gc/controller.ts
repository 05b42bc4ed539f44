import { type Controller, done, newController, type Result } from "@coxswain/apimachinery/controller/controller";
import { enqueueBy, enqueueMapped, needsSynced } from "@coxswain/apimachinery/controller/sources";
import { isNotFound } from "@coxswain/apimachinery/errors/predicates";
import type { Lease } from "@coxswain/apimachinery/schema/kinds/coordination/v1";
import type { ServerStorageVersion, StorageVersion } from "@coxswain/apimachinery/schema/kinds/internal/v1alpha1";
import { leases, storageVersions } from "@coxswain/apimachinery/schema/kinds/resources";
import { statusWith } from "@coxswain/apimachinery/storage-versions/agree";
import type { ControllerContext, Runnable } from "../../controller-context.ts";

const namespace = "kube-system";

/**
 * storage-version-garbage-collector: removes API servers whose identity Lease was deleted from StorageVersions, and deletes
 * StorageVersions without servers. Watches Leases (deleted identities) and StorageVersions (servers without identity);
 * writes storageversions/status, deletes StorageVersions.
 * Source: pkg/controller/storageversiongc/gc_controller.go
 */
export function newStorageVersionGarbageCollector(ctx: ControllerContext): Runnable {
  const { client, log, clock, queueMetrics: metrics } = ctx;
  const identities = ctx.informers.for<Lease>(leases);
  const versions = ctx.informers.for<StorageVersion>(storageVersions);

  /** Reads the API server: the cache may not contain the Lease of a new server yet. */
  async function hasIdentity({ apiServerID: name = "" }: ServerStorageVersion, signal: AbortSignal): Promise<boolean> {
    try {
      return isIdentity(await client.get<Lease>(leases, { namespace, name }, { signal }));
    } catch (err) {
      if (isNotFound(err)) return false;
      throw err;
    }
  }

  async function keepOnly(version: StorageVersion, servers: readonly ServerStorageVersion[], signal: AbortSignal): Promise<void> {
    const { name = "", uid } = version.metadata;
    if (servers.length > 0) {
      const next = { ...version, status: statusWith(version, servers, clock.now()) };
      await client.update(storageVersions, next, { subresource: "status", signal });
      return;
    }
    const preconditions = uid === undefined ? {} : { preconditions: { uid } };
    await client.delete(storageVersions, { name }, { ...preconditions, signal });
  }

  async function forget(identity: string, signal: AbortSignal): Promise<Result> {
    if (await hasIdentity({ apiServerID: identity }, signal)) return done;
    const { items } = await client.list<StorageVersion>(storageVersions, {}, { signal });
    const failures: unknown[] = [];
    for (const version of items) {
      const servers = version.status?.storageVersions ?? [];
      const left = servers.filter(({ apiServerID }) => apiServerID !== identity);
      if (left.length < servers.length) await keepOnly(version, left, signal).catch((err) => failures.push(err));
    }
    if (failures.length > 0) throw failures[0];
    return done;
  }

  async function check(name: string, signal: AbortSignal): Promise<Result> {
    let version: StorageVersion;
    try {
      version = await client.get<StorageVersion>(storageVersions, { name }, { signal });
    } catch (err) {
      if (isNotFound(err)) return done;
      throw err;
    }
    const servers = version.status?.storageVersions ?? [];
    const left: ServerStorageVersion[] = [];
    for (const server of servers) if (await hasIdentity(server, signal)) left.push(server);
    if (left.length < servers.length) await keepOnly(version, left, signal);
    return done;
  }

  const common = { log, clock, metrics };
  const ofLeases: Controller = newController({
    ...common,
    name: "storage_version_garbage_collector_leases",
    sources: [
      enqueueBy(identities, ({ enqueue }) => ({
        deleted(lease) {
          if (lease.metadata.namespace === namespace && isIdentity(lease)) enqueue(lease.metadata.name ?? "");
        },
      })),
      needsSynced(versions),
    ],
    reconcile: forget,
  });
  const ofVersions: Controller = newController({
    ...common,
    name: "storage_version_garbage_collector_storageversions",
    sources: [
      enqueueMapped(versions, ({ metadata, status }) => {
        const known = (status?.storageVersions ?? []).every(({ apiServerID }) =>
          isIdentity(identities.lister.get(`${namespace}/${apiServerID}`)),
        );
        return known ? [] : [metadata.name ?? ""];
      }),
      needsSynced(identities),
    ],
    reconcile: check,
  });
  return { run: async (signal) => void (await Promise.all([ofLeases.run(signal), ofVersions.run(signal)])) };
}

function isIdentity(lease: Lease | undefined): boolean {
  return lease?.metadata.labels?.["k8s.io/component"] === "kube-apiserver";
}

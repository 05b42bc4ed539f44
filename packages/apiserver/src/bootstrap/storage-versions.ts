/**
 * With the gates StorageVersionAPI and APIServerIdentity an API server publishes, in StorageVersion objects, the version in
 * which it stores each built-in resource and those it can decode, before it writes any. Storage migration uses them to
 * determine when no server writes an older version any more.
 * Source: k8s.io/apiserver pkg/storageversion/{manager,updater}.go, kube-aggregator pkg/apiserver/apiserver.go
 */
import type { Client } from "@coxswain/apimachinery/client/client";
import { isAlreadyExists, isConflict, isNotFound } from "@coxswain/apimachinery/objects/errors/predicates";
import { formatGroupResource, formatGroupVersion, type GroupResource } from "@coxswain/apimachinery/objects/meta/group-version";
import type { ServerStorageVersion, StorageVersion } from "@coxswain/apimachinery/objects/schema/kinds/internal/v1alpha1";
import { leases, storageVersions as storageVersionRef } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import type { Clock } from "@coxswain/apimachinery/process/clock/clock";
import type { Logger } from "@coxswain/apimachinery/process/logging/logger";
import { statusWith } from "@coxswain/apimachinery/storage-versions/agree";
import type { ResourceDefinition } from "../registry/generic/resource.ts";

export interface StorageVersions {
  /** Whether everything was published once, so that no request has to wait. */
  readonly completed: boolean;
  /** Resolves when `completed` becomes true; rejects when the server stops before. */
  readonly whenCompleted: Promise<void>;
  /** @returns undefined for a resource that does not have to wait; otherwise the last error of publishing it, if any */
  pending(resource: GroupResource): { readonly lastError: Error | undefined } | undefined;
  /** Publishes all resources under the identity of this server. @throws Error when some could not be published */
  update(identity: string, signal: AbortSignal): Promise<void>;
}

/** A stored resource; several API resources may share it (events of two groups). */
interface StoredResource {
  readonly names: readonly GroupResource[];
  readonly encodingVersion: string;
  readonly decodableVersions: readonly string[];
}

const attempts = 5;

/**
 * @param definitions the built-in resources that are served and stored
 * @param stopping aborted when the server stops
 */
export function newStorageVersions(
  definitions: readonly ResourceDefinition[],
  client: Client,
  clock: Clock,
  stopping: AbortSignal,
): StorageVersions {
  const stored = storedResources(definitions);
  const waiting = new Map(
    stored.flatMap(
      ({ names }) => names.map((name) => [formatGroupResource(name), { lastError: undefined as Error | undefined }]), // cast: set later
    ),
  );
  let completed = false;
  const { promise: whenCompleted, resolve, reject } = Promise.withResolvers<void>();
  whenCompleted.catch(() => {}); // avoids an unhandled rejection when nothing waits
  stopping.addEventListener("abort", () => reject(stopping.reason));

  async function updateOne(one: StoredResource, identity: string, signal: AbortSignal): Promise<Error | undefined> {
    const { encodingVersion, decodableVersions } = one;
    const server = { apiServerID: identity, encodingVersion, decodableVersions: [...decodableVersions] };
    const name = nameOf(one.names[0]!);
    const failure = await say(client, name, server, clock, signal).then(() => undefined, asError);
    for (const key of one.names.map(formatGroupResource)) {
      if (failure === undefined) waiting.delete(key);
      else if (waiting.has(key)) waiting.set(key, { lastError: failure });
    }
    return failure && new Error(`failed to update storage version for ${name}`, { cause: failure });
  }

  return {
    get completed() {
      return completed;
    },
    whenCompleted,
    pending: (resource) => waiting.get(formatGroupResource(resource)),
    async update(identity, signal) {
      const failures: Error[] = [];
      for (const one of stored) {
        signal.throwIfAborted();
        const failure = await updateOne(one, identity, signal);
        if (failure !== undefined) failures.push(failure);
      }
      if (failures.length > 0) throw failures[0];
      completed = true;
      resolve();
    },
  };
}

/**
 * Waits for the identity lease, without which the entries would be treated as those of a dead server. Then publishes the
 * versions, and repeats it periodically in case they were changed or deleted.
 */
export async function keepStorageVersions(
  versions: StorageVersions,
  { client, identity, clock, log }: { client: Client; identity: string; clock: Clock; log: Logger },
  signal: AbortSignal,
): Promise<void> {
  for (;;) {
    try {
      await client.get(leases, { namespace: "kube-system", name: identity }, { signal });
      break;
    } catch (err) {
      if (!isNotFound(err)) throw err;
      await clock.sleep(identityPollMs, signal);
    }
  }
  await versions.update(identity, signal);
  const timer = clock.every(repeatMs, () => {
    versions.update(identity, signal).catch((err: unknown) => {
      if (!signal.aborted) log.warn("cannot update the storage versions", { err: String(err) });
    });
  });
  signal.addEventListener("abort", () => timer.cancel());
}

const identityPollMs = 100;
const repeatMs = 600_000;

/** Sorted, so that all servers choose the same name for a shared resource. */
function storedResources(definitions: readonly ResourceDefinition[]): StoredResource[] {
  const byPlace = Map.groupBy(
    definitions.toSorted((a, b) => compare(a.group, b.group) || compare(a.resource, b.resource)),
    (definition) => definition.storageFolder ?? definition.resource,
  );
  return [...byPlace.values()].map((same) => {
    const [{ storage, hubGroup, group, hub }] = same as [ResourceDefinition]; // cast: groups are not empty
    return {
      names: same.map((definition) => ({ group: definition.group, resource: definition.resource })),
      encodingVersion: formatGroupVersion(storage ?? { group: hubGroup ?? group, version: hub }),
      decodableVersions: [...new Set(same.flatMap(versionsOf))],
    };
  });
}

function versionsOf({ group, versions, formerVersions = [] }: ResourceDefinition): string[] {
  return [...versions.map(({ version }) => ({ group, version })), ...formerVersions.map((former) => ({ group, ...former }))].map(
    formatGroupVersion,
  );
}

function compare(a: string, b: string): number {
  return a < b ? -1 : Number(a > b);
}

/** StorageVersion names contain the group; the core group is `core`. */
function nameOf({ group, resource }: GroupResource): string {
  return `${group === "" ? "core" : group}.${resource}`;
}

async function say(client: Client, name: string, server: ServerStorageVersion, clock: Clock, signal: AbortSignal): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    try {
      const current = await getOrCreate(client, name, signal);
      const servers = [...(current.status?.storageVersions ?? [])];
      const own = servers.findIndex(({ apiServerID }) => apiServerID === server.apiServerID);
      servers.splice(own < 0 ? servers.length : own, own < 0 ? 0 : 1, server);
      const next = { ...current, status: statusWith(current, servers, clock.now()) };
      await client.update(storageVersionRef, next, { subresource: "status", signal });
      return;
    } catch (err) {
      // Other servers update the same objects concurrently.
      if ((!isConflict(err) && !isAlreadyExists(err)) || attempt === attempts) throw err;
    }
  }
}

async function getOrCreate(client: Client, name: string, signal: AbortSignal): Promise<StorageVersion> {
  try {
    return await client.get<StorageVersion>(storageVersionRef, { name }, { signal });
  } catch (err) {
    if (!isNotFound(err)) throw err;
    return client.create<StorageVersion>(storageVersionRef, { metadata: { name }, spec: {}, status: {} }, { signal });
  }
}

const asError = (err: unknown): Error => (err instanceof Error ? err : new Error(String(err)));

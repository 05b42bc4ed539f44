import type { Client } from "../client/client.ts";
import { isAlreadyExists, isNotFound } from "../objects/errors/predicates.ts";
import { formatGroupVersion, type ResourceRef } from "../objects/meta/group-version.ts";
import type { KubeObject, ObjectMeta } from "../objects/meta/types.ts";

/** The leader election record. Times are in MicroTime format. */
export interface LeaderRecord {
  /** `""`: released. */
  holderIdentity: string;
  leaseDurationSeconds: number;
  acquireTime: string;
  renewTime: string;
  leaderTransitions: number;
}

/** Storage of the record: one object that candidates update with optimistic concurrency. */
export interface ResourceLock {
  /** @throws NotFound when the object does not exist */
  get(client: Client, signal: AbortSignal): Promise<LeaderRecord>;
  create(client: Client, record: LeaderRecord, signal: AbortSignal): Promise<void>;
  /** Updates the object returned by the last `get`. @throws Conflict when it has changed since */
  update(client: Client, record: LeaderRecord, signal: AbortSignal): Promise<void>;
  /** The objects last read or written, which events refer to. */
  objects(): readonly KubeObject[];
  /** `kube-system/kube-scheduler` */
  describe(): string;
}

/** The kinds of `--leader-elect-resource-lock`. */
export const resourceLockKinds = ["leases", "endpointsleases", "configmapsleases", "endpoints", "configmaps"] as const;

/**
 * Creates a lock of one of {@link resourceLockKinds}.
 * @throws Error for an unknown kind
 * Source: k8s.io/client-go tools/leaderelection/resourcelock
 */
export function newResourceLock(kind: string, namespace: string, name: string): ResourceLock {
  const lease = (): ResourceLock => newLeaseLock(namespace, name);
  switch (kind) {
    case "leases":
      return lease();
    case "endpoints":
      return newAnnotationLock(endpoints, namespace, name);
    case "configmaps":
      return newAnnotationLock(configMaps, namespace, name);
    case "endpointsleases":
      return newMultiLock(newAnnotationLock(endpoints, namespace, name), lease());
    case "configmapsleases":
      return newMultiLock(newAnnotationLock(configMaps, namespace, name), lease());
    default:
      throw new Error(`Invalid lock-type ${kind}`);
  }
}

const leases: ResourceRef = { group: "coordination.k8s.io", version: "v1", resource: "leases", kind: "Lease", namespaced: true };
const endpoints: ResourceRef = { group: "", version: "v1", resource: "endpoints", kind: "Endpoints", namespaced: true };
const configMaps: ResourceRef = { group: "", version: "v1", resource: "configmaps", kind: "ConfigMap", namespaced: true };

interface LeaseObject extends KubeObject {
  spec?: Partial<LeaderRecord> & { leaseTransitions?: number };
}

function newLeaseLock(namespace: string, name: string): ResourceLock {
  let last: LeaseObject | undefined;
  return {
    async get(client, signal) {
      last = await client.get<LeaseObject>(leases, { namespace, name }, { signal });
      const { spec = {} } = last;
      return {
        holderIdentity: spec.holderIdentity ?? "",
        leaseDurationSeconds: spec.leaseDurationSeconds ?? 0,
        acquireTime: spec.acquireTime ?? "",
        renewTime: spec.renewTime ?? "",
        leaderTransitions: spec.leaseTransitions ?? 0,
      };
    },
    async create(client, record, signal) {
      last = await client.create<LeaseObject>(leases, { metadata: { namespace, name }, spec: leaseSpec(record) }, { signal });
    },
    async update(client, record, signal) {
      if (last === undefined) throw new Error("lease not initialized, call get or create first");
      last = await client.update<LeaseObject>(leases, { ...last, spec: { ...last.spec, ...leaseSpec(record) } }, { signal });
    },
    objects: () => seen(last, leases),
    describe: () => `${namespace}/${name}`,
  };
}

function seen(last: KubeObject | undefined, ref: ResourceRef): KubeObject[] {
  return last === undefined ? [] : [{ ...last, apiVersion: formatGroupVersion(ref), kind: ref.kind }];
}

function leaseSpec({ leaderTransitions, ...record }: LeaderRecord): NonNullable<LeaseObject["spec"]> {
  return { ...record, leaseTransitions: leaderTransitions };
}

const recordAnnotation = "control-plane.alpha.kubernetes.io/leader";

function newAnnotationLock(ref: ResourceRef, namespace: string, name: string): ResourceLock {
  let last: KubeObject | undefined;
  const annotated = (metadata: ObjectMeta, record: LeaderRecord): ObjectMeta => ({
    ...metadata,
    annotations: { ...metadata.annotations, [recordAnnotation]: JSON.stringify(record) },
  });
  return {
    async get(client, signal) {
      last = await client.get<KubeObject & object>(ref, { namespace, name }, { signal });
      const text = last.metadata.annotations?.[recordAnnotation];
      const record: Partial<LeaderRecord> = text === undefined ? {} : JSON.parse(text);
      return { ...nobody, ...record };
    },
    async create(client, record, signal) {
      last = await client.create<KubeObject>(ref, { metadata: annotated({ namespace, name }, record) }, { signal });
    },
    async update(client, record, signal) {
      if (last === undefined) throw new Error(`${ref.kind.toLowerCase()} not initialized, call get or create first`);
      last = await client.update<KubeObject>(ref, { ...last, metadata: annotated(last.metadata, record) }, { signal });
    },
    objects: () => seen(last, ref),
    describe: () => `${namespace}/${name}`,
  };
}

const nobody: LeaderRecord = {
  holderIdentity: "",
  leaseDurationSeconds: 0,
  acquireTime: "",
  renewTime: "",
  leaderTransitions: 0,
};

/** Holds two locks, for migrating from one kind to the other. Source: resourcelock/multilock.go */
function newMultiLock(primary: ResourceLock, secondary: ResourceLock): ResourceLock {
  return {
    async get(client, signal) {
      const first = await primary.get(client, signal);
      try {
        const second = await secondary.get(client, signal);
        return second.holderIdentity === first.holderIdentity ? second : { ...first, holderIdentity: unknownLeader };
      } catch (err) {
        if (isNotFound(err)) return first; // the primary is held by a version without the secondary lock
        throw err;
      }
    },
    async create(client, record, signal) {
      try {
        await primary.create(client, record, signal);
      } catch (err) {
        if (!isAlreadyExists(err)) throw err;
      }
      await secondary.create(client, record, signal);
    },
    async update(client, record, signal) {
      await primary.update(client, record, signal);
      try {
        await secondary.get(client, signal);
      } catch (err) {
        if (!isNotFound(err)) throw err;
        return secondary.create(client, record, signal);
      }
      await secondary.update(client, record, signal);
    },
    objects: () => [...primary.objects(), ...secondary.objects()],
    describe: () => primary.describe(),
  };
}

/** Holder when the two locks disagree: it has to expire before the lock can be acquired. */
const unknownLeader = "leaderelection.k8s.io/unknown";

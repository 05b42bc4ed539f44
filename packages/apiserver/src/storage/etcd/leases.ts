import type { Clock } from "@coxswain/apimachinery/process/clock/clock";
import type { StorageMetrics } from "../metrics.ts";
import type { EtcdClient } from "./client.ts";

/**
 * Leases for objects with a TTL (events). One lease is shared by many objects, so that 1,000 events need one grant: it is
 * granted for longer than requested and reused while the remaining time covers the TTL.
 * Source: k8s.io/apiserver pkg/storage/etcd3/lease_manager.go
 */
export interface Leases {
  /** @returns the id of a lease that lives at least `ttlSeconds` */
  forTtl(ttlSeconds: number): Promise<bigint>;
}

interface LeaseOptions {
  client: EtcdClient;
  clock: Clock;
  /** --lease-reuse-duration-seconds: upper bound of the reuse time; default 60. */
  reuseSeconds?: number | undefined;
  metrics?: StorageMetrics | undefined;
}

const defaultReuseSeconds = 60;
const reuseShare = 0.05;
const objectsPerLease = 1_000;

/** Leases are shared within this object only: one for each etcd client. */
export function newLeases({ client, clock, metrics, reuseSeconds: longest = defaultReuseSeconds }: LeaseOptions): Leases {
  const current = new Map<number, { id: Promise<bigint>; reuseUntil: number; objects: number }>();
  return {
    forTtl(ttlSeconds) {
      const now = clock.monotonic();
      const lease = current.get(ttlSeconds);
      if (lease !== undefined && now < lease.reuseUntil && lease.objects < objectsPerLease) {
        lease.objects++;
        return lease.id;
      }
      if (lease !== undefined) metrics?.leaseObjects(lease.objects);
      const reuseSeconds = Math.min(longest, Math.floor(ttlSeconds * reuseShare));
      const id = client.grantLease(ttlSeconds + reuseSeconds);
      const granted = { id, reuseUntil: now + reuseSeconds * 1000, objects: 1 };
      current.set(ttlSeconds, granted);
      id.catch(() => {
        if (current.get(ttlSeconds) === granted) current.delete(ttlSeconds);
      });
      return id;
    },
  };
}

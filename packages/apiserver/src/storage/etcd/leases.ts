import type { Clock } from "@coxswain/apimachinery/clock/clock";
import type { StorageMetrics } from "../metrics.ts";
import type { EtcdClient } from "./client.ts";

/**
 * Leases for objects that etcd forgets (events). One lease serves many objects, so that 1,000 events are one grant:
 * it is granted for somewhat longer than asked and reused while what is left still covers the ttl.
 * Source: k8s.io/apiserver pkg/storage/etcd3/lease_manager.go
 */
export interface Leases {
  /** @returns a lease that lives at least `ttlSeconds`. */
  forTtl(ttlSeconds: number): Promise<bigint>;
}

export interface LeaseOptions {
  client: EtcdClient;
  clock: Clock;
  /** --lease-reuse-duration-seconds: reused no longer than this; 60 unless given. */
  reuseSeconds?: number | undefined;
  metrics?: StorageMetrics | undefined;
}

const defaultReuseSeconds = 60;
const reuseShare = 0.05;
const objectsPerLease = 1_000;

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

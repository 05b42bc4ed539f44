/** Tracks the number of nodes and the resulting TTL, with hysteresis between size classes. */
export interface ClusterSize {
  added(): void;
  removed(): void;
  /** Time for which kubelets may cache Secrets and ConfigMaps. */
  readonly ttlSeconds: number;
}

/**
 * Size classes overlap, so that a single added or removed node does not repeatedly change the annotation of all nodes.
 * Source: pkg/controller/ttl/ttl_controller.go
 */
const steps = [
  { least: 0, most: 100, ttlSeconds: 0 },
  { least: 90, most: 500, ttlSeconds: 15 },
  { least: 450, most: 1000, ttlSeconds: 30 },
  { least: 900, most: 2000, ttlSeconds: 60 },
  { least: 1800, most: Number.POSITIVE_INFINITY, ttlSeconds: 300 },
] as const;

export function newClusterSize(): ClusterSize {
  let count = 0;
  let step = 0;
  const now = () => steps[step]!;
  return {
    added() {
      if (++count > now().most) step++;
    },
    removed() {
      if (--count < now().least) step--;
    },
    get ttlSeconds() {
      return now().ttlSeconds;
    },
  };
}

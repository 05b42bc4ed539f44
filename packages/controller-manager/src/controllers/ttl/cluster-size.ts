/** Keeps how large the cluster is, and what that means for nodes; asks for nothing twice at the border of two sizes. */
export interface ClusterSize {
  added(): void;
  removed(): void;
  /** How long nodes may use what they read of secrets and config maps before they read it again. */
  readonly ttlSeconds: number;
}

/** Sizes overlap, so that one node more or less does not change all nodes each time. Source: pkg/controller/ttl/ttl_controller.go */
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
  const now = () => steps[step] as (typeof steps)[number];
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

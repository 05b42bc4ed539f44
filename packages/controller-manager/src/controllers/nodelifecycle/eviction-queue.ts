/**
 * Nodes of one zone that wait for their turn to be evicted from, no faster than the zone's rate allows.
 * Source: pkg/controller/nodelifecycle/scheduler/rate_limited_queue.go
 */
export interface EvictionQueue {
  add(node: string): void;
  remove(node: string): void;
  /** @param perSecond 0: nobody's turn comes */
  setRate(perSecond: number): void;
  /** The nodes whose turn it is; they are no longer waiting. @param now ms of a clock that only grows */
  take(now: number): string[];
  has(node: string): boolean;
}

export function newEvictionQueue(perSecond: number): EvictionQueue {
  const waiting = new Set<string>();
  let rate = perSecond;
  let nextAt = Number.NEGATIVE_INFINITY;
  return {
    add: (node) => void waiting.add(node),
    remove: (node) => void waiting.delete(node),
    setRate(wanted) {
      rate = wanted;
    },
    take(now) {
      const taken: string[] = [];
      for (const node of waiting) {
        if (rate <= 0 || now < nextAt) break;
        nextAt = now + 1000 / rate;
        waiting.delete(node);
        taken.push(node);
      }
      return taken;
    },
    has: (node) => waiting.has(node),
  };
}

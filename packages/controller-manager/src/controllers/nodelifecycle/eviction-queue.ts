/**
 * Rate-limited queue of the nodes of one zone that are to be evicted from.
 * Source: pkg/controller/nodelifecycle/scheduler/rate_limited_queue.go
 */
export interface EvictionQueue {
  add(node: string): void;
  remove(node: string): void;
  /** @param perSecond nodes per second; 0 stops the queue */
  setRate(perSecond: number): void;
  /**
   * Removes and returns the first node if the rate allows one now.
   * @param now ms of the monotonic clock
   */
  take(now: number): string | undefined;
  has(node: string): boolean;
  readonly isEmpty: boolean;
}

/** @param perSecond nodes per second until `setRate`; 0: none. The first node is not delayed. */
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
      const [node] = waiting;
      if (node === undefined || rate <= 0 || now < nextAt) return undefined;
      nextAt = now + 1000 / rate;
      waiting.delete(node);
      return node;
    },
    has: (node) => waiting.has(node),
    get isEmpty() {
      return waiting.size === 0;
    },
  };
}

/**
 * A queue between a writer that must not wait and one reader that may be slow: `push` says no when `limit` values are
 * waiting, and the writer decides what a too slow reader gets (a watch is ended, never thinned).
 *
 * Values come out in the order they went in. After `close()` the reader gets what is left, then the end; after
 * `close(error)` it gets what is left, then the error. A reader that leaves its loop closes the queue.
 */
export interface BoundedQueue<T> extends AsyncIterable<T> {
  /** @returns false, and keeps the queue as it was, when it is full or closed. */
  push(value: T): boolean;
  /** Idempotent; only the first call's error counts. */
  close(error?: unknown): void;
  /** Everything that waits, at once; empty when nothing does. For readers that write several values with one call. */
  drain(): T[];
  readonly size: number;
  readonly full: boolean;
  readonly closed: boolean;
}

export function newBoundedQueue<T>(limit: number): BoundedQueue<T> {
  let waiting: T[] = [];
  let head = 0;
  let closed = false;
  let failure: unknown;
  let wake: (() => void) | undefined;

  const size = (): number => waiting.length - head;
  const wakeReader = (): void => {
    wake?.();
    wake = undefined;
  };
  const take = (): T => {
    const value = waiting[head] as T;
    waiting[head] = undefined as T; // let go of it: a long queue must not keep what was read
    head++;
    if (head === waiting.length || head > 1024) {
      waiting = waiting.slice(head);
      head = 0;
    }
    return value;
  };

  const queue: BoundedQueue<T> = {
    push(value) {
      if (closed || size() >= limit) return false;
      waiting.push(value);
      wakeReader();
      return true;
    },
    close(error) {
      if (closed) return;
      closed = true;
      failure = error;
      wakeReader();
    },
    drain() {
      const values = waiting.slice(head);
      waiting = [];
      head = 0;
      return values;
    },
    get size() {
      return size();
    },
    get full() {
      return size() >= limit;
    },
    get closed() {
      return closed;
    },
    async *[Symbol.asyncIterator]() {
      try {
        for (;;) {
          while (size() > 0) yield take();
          if (closed) break;
          await new Promise<void>((resolve) => {
            wake = resolve;
          });
        }
      } finally {
        closed = true;
        waiting = [];
        head = 0;
      }
      if (failure !== undefined) throw failure;
    },
  };
  return queue;
}

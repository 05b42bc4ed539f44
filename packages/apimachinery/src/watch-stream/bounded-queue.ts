/**
 * A queue between a writer that must not block and a single reader that may be slow. `push` returns false when `limit`
 * values are queued; the writer decides how to handle the slow reader (watches are closed, events never dropped).
 *
 * Values are delivered in FIFO order. After `close()` the reader gets the remaining values, then the end; after
 * `close(error)` the remaining values, then the error. A reader that leaves its loop closes the queue.
 */
interface BoundedQueue<T> extends AsyncIterable<T> {
  /** @returns false, without adding the value, when the queue is full or closed */
  push(value: T): boolean;
  /** Idempotent; only the first call's error counts. */
  close(error?: unknown): void;
  /** Removes and returns all queued values. For readers that process several values at once. */
  drain(): T[];
  readonly size: number;
  readonly full: boolean;
  readonly closed: boolean;
}

/** @param limit maximum number of queued values */
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
    const value = waiting[head]!;
    waiting[head] = undefined!; // release the reference, so that consumed values can be collected
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

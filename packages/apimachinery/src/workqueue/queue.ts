/**
 * A FIFO queue of keys to process. A key is queued at most once. A key added while it is being processed is queued again after
 * `done`, so no key is processed concurrently.
 * Source: k8s.io/client-go util/workqueue/queue.go
 */
export interface WorkQueue<K> {
  add(key: K): void;
  /** Takes the next key, to be released with `done(key)`. Resolves with undefined when the queue is shut down and empty. */
  get(): Promise<K | undefined>;
  done(key: K): void;
  /** Number of queued keys, without those being processed. */
  readonly length: number;
  /** Rejects further keys; queued ones are still delivered. */
  shutDown(): void;
  readonly shuttingDown: boolean;
}

/** Receives queue events, for metrics. */
export interface QueueObserver<K> {
  added(key: K, depth: number): void;
  got(key: K, depth: number): void;
  done(key: K): void;
}

/** @param observer called synchronously, before the key is delivered */
export function newWorkQueue<K>(observer?: QueueObserver<K>): WorkQueue<K> {
  let order: K[] = [];
  let head = 0;
  /** Keys that are queued, or to be queued again after `done`. */
  const dirty = new Set<K>();
  const processing = new Set<K>();
  const workers: ((key: K | undefined) => void)[] = [];
  let shuttingDown = false;

  const length = (): number => order.length - head;
  const shift = (): K => {
    const key = order[head++]!;
    if (head === order.length || head > 4096) {
      order = order.slice(head);
      head = 0;
    }
    return key;
  };
  const take = (key: K): K => {
    processing.add(key);
    dirty.delete(key);
    observer?.got(key, length());
    return key;
  };
  const offer = (key: K): void => {
    order.push(key);
    const worker = workers.shift();
    if (worker !== undefined) worker(take(shift()));
  };

  return {
    add(key) {
      if (shuttingDown || dirty.has(key)) return;
      dirty.add(key);
      observer?.added(key, length() + 1);
      if (!processing.has(key)) offer(key);
    },
    get() {
      if (length() > 0) return Promise.resolve(take(shift()));
      if (shuttingDown) return Promise.resolve(undefined);
      return new Promise((resolve) => workers.push(resolve));
    },
    done(key) {
      processing.delete(key);
      observer?.done(key);
      if (dirty.has(key)) offer(key);
    },
    get length() {
      return length();
    },
    shutDown() {
      shuttingDown = true;
      for (const worker of workers.splice(0)) worker(undefined);
    },
    get shuttingDown() {
      return shuttingDown;
    },
  };
}

/**
 * Keys that wait for work. A key waits once however often it is added; a key that is added while a worker has it waits
 * again when the worker is done, so no key is ever worked on twice at once. First come, first served.
 * Source: k8s.io/client-go util/workqueue/queue.go
 */
export interface WorkQueue<K> {
  add(key: K): void;
  /** The next key, now the caller's until `done(key)`; undefined when the queue is shut down and empty. */
  get(): Promise<K | undefined>;
  done(key: K): void;
  /** Keys that wait; those that workers have are not counted. */
  readonly length: number;
  /** Takes no more keys; those that wait are still handed out. */
  shutDown(): void;
  readonly shuttingDown: boolean;
}

/** Told of what happens in a queue, for metrics. */
export interface QueueObserver<K> {
  added(key: K, depth: number): void;
  got(key: K, depth: number): void;
  done(key: K): void;
}

export function newWorkQueue<K>(observer?: QueueObserver<K>): WorkQueue<K> {
  let order: K[] = [];
  let head = 0;
  /** Waiting, or to wait again once done. */
  const dirty = new Set<K>();
  const processing = new Set<K>();
  const workers: ((key: K | undefined) => void)[] = [];
  let shuttingDown = false;

  const length = (): number => order.length - head;
  const shift = (): K => {
    const key = order[head++] as K;
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

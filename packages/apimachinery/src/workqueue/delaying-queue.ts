import type { Clock, Timer } from "../process/clock/clock.ts";
import { newWorkQueue, type QueueObserver, type WorkQueue } from "./queue.ts";

/**
 * A work queue with delayed additions. Of several delays of one key only the earliest is kept.
 * Source: k8s.io/client-go util/workqueue/delaying_queue.go
 */
export interface DelayingQueue<K> extends WorkQueue<K> {
  /** @throws RangeError for NaN, with which a timer would fire immediately and forever */
  addAfter(key: K, delayMs: number): void;
}

/** @param options.observer learns of keys when they become due, not when they are added */
export function newDelayingQueue<K>(options: { clock: Clock; observer?: QueueObserver<K> | undefined }): DelayingQueue<K> {
  const { clock } = options;
  const queue = newWorkQueue<K>(options.observer);
  const waiting = new Map<K, { dueAt: number; timer: Timer }>();

  const addAfter = (key: K, delayMs: number): void => {
    if (queue.shuttingDown) return;
    if (Number.isNaN(delayMs)) throw new RangeError("the delay of a key is not a number");
    if (delayMs <= 0) {
      queue.add(key);
      return;
    }
    const dueAt = clock.monotonic() + delayMs;
    const known = waiting.get(key);
    if (known !== undefined) {
      if (known.dueAt <= dueAt) return;
      known.timer.cancel();
    }
    const timer = clock.after(delayMs, () => {
      waiting.delete(key);
      // Timers have a maximum delay; wait on when the due time is much later.
      const leftMs = dueAt - clock.monotonic();
      if (leftMs > 1000) addAfter(key, leftMs);
      else queue.add(key);
    });
    waiting.set(key, { dueAt, timer });
  };

  return {
    add: queue.add,
    get: queue.get,
    done: queue.done,
    get length() {
      return queue.length;
    },
    shutDown() {
      for (const { timer } of waiting.values()) timer.cancel();
      queue.shutDown();
    },
    get shuttingDown() {
      return queue.shuttingDown;
    },
    addAfter,
  };
}

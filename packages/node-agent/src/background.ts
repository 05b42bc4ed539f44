import type { Clock } from "@coxswain/apimachinery/process/clock/clock";
import type { Logger } from "@coxswain/apimachinery/process/logging/logger";

/** Tasks that run until the agent stops. */
export interface Background {
  readonly signal: AbortSignal;
  /** Runs `work` now and again `ms` after each completion. Failures are logged and do not end the loop. */
  every(ms: number, task: string, work: () => Promise<void> | void): void;
  /** Tracks a task that ends on its own when the signal aborts. */
  add(running: Promise<unknown>): void;
  /** Aborts the signal and resolves when all tasks have ended. */
  stop(): Promise<void>;
}

/** Creates a set of background tasks that share one abort signal. */
export function newBackground({ clock, log }: { clock: Clock; log: Logger }): Background {
  const stopping = new AbortController();
  const { signal } = stopping;
  const running: Promise<unknown>[] = [];

  async function loop(ms: number, task: string, work: () => Promise<void> | void): Promise<void> {
    while (!signal.aborted) {
      try {
        await work();
      } catch (err) {
        if (!signal.aborted) log.error("a periodic task failed", err, { task });
      }
      await clock.sleep(ms, signal).catch(() => undefined);
    }
  }

  return {
    signal,
    every: (ms, task, work) => void running.push(loop(ms, task, work)),
    add: (one) => {
      const ending = one.catch((err: unknown) => {
        if (!signal.aborted) log.error("a loop of the agent ended", err);
      });
      running.push(ending);
    },
    async stop() {
      stopping.abort(new Error("the agent stops"));
      await Promise.all(running);
    },
  };
}

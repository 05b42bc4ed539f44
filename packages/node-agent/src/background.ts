import type { Clock } from "@coxswain/apimachinery/clock/clock";
import type { Logger } from "@coxswain/apimachinery/logging/logger";

/** What runs until the agent stops. */
export interface Background {
  readonly signal: AbortSignal;
  /** Does it now, and again that long after each end. A failure is logged and does not end the loop. */
  every(ms: number, task: string, work: () => Promise<void> | void): void;
  /** A loop of somebody else, which ends by the signal. */
  add(running: Promise<unknown>): void;
  /** Resolves when all of it has ended. */
  stop(): Promise<void>;
}

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

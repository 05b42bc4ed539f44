import type { Clock } from "../clock/clock.ts";
import type { Logger } from "../logging/logger.ts";

export interface PeriodicOptions {
  readonly name: string;
  /** Between the end of one run and the start of the next. */
  readonly periodMs: number;
  /** What has to be in the caches first. */
  readonly synced?: readonly { waitForSync(signal: AbortSignal): Promise<void> }[];
  /** A throw is logged; the next run comes all the same. */
  readonly work: (signal: AbortSignal) => Promise<void>;
  readonly log: Logger;
  readonly clock: Clock;
}

/** A loop that looks at everything now and then, for what no event tells. */
export interface Periodic {
  /** Resolves when `signal` is aborted and the run at hand is over. */
  run(signal: AbortSignal): Promise<void>;
}

export function newPeriodic({ name, periodMs, synced = [], work, log, clock }: PeriodicOptions): Periodic {
  return {
    async run(signal) {
      try {
        await Promise.all(synced.map((informer) => informer.waitForSync(signal)));
      } catch (err) {
        if (signal.aborted) return;
        throw err;
      }
      while (!signal.aborted) {
        try {
          await work(signal);
        } catch (err) {
          if (!signal.aborted) log.error("periodic work failed", err, { controller: name });
        }
        await clock.sleep(periodMs, signal).catch(() => {});
      }
    },
  };
}

/** Tries once a second until it succeeds, or `signal` is aborted: for what nothing can begin without. A throw is logged. */
export async function insist(options: {
  readonly work: (signal: AbortSignal) => Promise<unknown>;
  /** What to say of a failure. */
  readonly failure: string;
  readonly signal: AbortSignal;
  readonly log: Logger;
  readonly clock: Clock;
}): Promise<void> {
  const { work, failure, signal, log, clock } = options;
  while (!signal.aborted) {
    try {
      await work(signal);
      return;
    } catch (err) {
      if (!signal.aborted) log.error(failure, err);
    }
    await clock.sleep(1000, signal).catch(() => {});
  }
}

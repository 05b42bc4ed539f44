import { setTimeout as delay } from "node:timers/promises";
import { Failure, type Progress } from "./failure.ts";
import { certificateProblem } from "./pki.ts";
import { logFile, tailOf } from "./processes.ts";
import type { Settings } from "./settings.ts";
import { readState } from "./supervisor-state.ts";

/** Waits for a starting cluster and reports exits of its processes. */
export interface Watch {
  /**
   * Polls until a condition holds.
   * @param ask returns undefined when the condition holds, else the reason why not
   * @throws Failure when a process exits repeatedly, or on timeout
   */
  until(what: string, ask: () => Promise<string | undefined>): Promise<void>;
}

/** Consecutive quick exits after which waiting fails. */
const endsBeforeFailure = 3;
const longestMs = 180_000;
const pollMs = 50;
const logLines = 15;

/** Where a watch gets its time from; tests replace it. */
interface WatchTime {
  /** In ms since the epoch, as in the supervisor's records. */
  wallClock(): number;
  /** In ms, never set back. */
  elapsed(): number;
  /** Between two questions. */
  pause(ms: number): Promise<unknown>;
}

const realTime: WatchTime = { wallClock: Date.now, elapsed: () => performance.now(), pause: (ms) => delay(ms) };

/** Reports every exit of a process once, as a step. */
export function newWatch(settings: Settings, progress: Progress, time = realTime): Watch {
  const since = time.wallClock();
  const reported = new Map<string, number>();
  const endBy = time.elapsed() + longestMs;

  const look = (): void => {
    for (const [name, { state }] of Object.entries(readState(settings)?.processes ?? {})) {
      const end = state.lastEnd;
      if (end === undefined || end.at < since || reported.get(name) === end.at) continue;
      reported.set(name, end.at);
      progress.step(`${name} ended: ${end.reason}`);
      if (state.quickEnds >= endsBeforeFailure) throw failed(`${name} ended ${state.quickEnds} times: ${end.reason}`, name);
    }
  };
  const failed = (reason: string, name: string): Failure =>
    new Failure(
      certificateProblem(settings) ?? `${reason}\nthe end of ${logFile(settings, name)}:\n${tailOf(settings, name, logLines)}`,
    );

  let failure: unknown;
  return {
    async until(what, ask) {
      for (;;) {
        if (failure !== undefined) throw failure; // of a concurrent wait
        try {
          progress.signal.throwIfAborted();
          const reason = await ask();
          if (reason === undefined) return;
          look();
          if (time.elapsed() > endBy) {
            throw new Failure(certificateProblem(settings) ?? `${what}: not within ${longestMs / 1000} s: ${reason}`);
          }
        } catch (err) {
          failure ??= err;
          throw failure;
        }
        await time.pause(pollMs);
      }
    },
  };
}

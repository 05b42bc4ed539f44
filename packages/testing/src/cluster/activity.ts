import { nextIteration } from "@coxswain/apimachinery/process/event-loop/iterations";

/** Operations in progress in a cluster, so that tests can wait until there are none. */
export class Activity {
  readonly #open = new Map<object, string>();
  #count = 0;

  /** Number of requests that have started so far. */
  get count(): number {
    return this.#count;
  }

  /** Records the start of a request. @param what its name @returns a function to call at its end; further calls do nothing */
  begin(what: string): () => void {
    const key = {};
    this.#count++;
    this.#open.set(key, what);
    return () => void this.#open.delete(key);
  }

  /** Operations in progress, oldest first. */
  get open(): readonly string[] {
    return [...this.#open.values()];
  }
}

const pause = (): Promise<void> => new Promise((resolve) => void setTimeout(resolve, 1));

/** Number of event-loop turns without a new operation before the cluster counts as idle: sliced work yields a few times between two requests. */
const quietTurns = 4;
/** Time limit for work outside the event loop (signatures, files, sockets), in ms. */
const mostForeignMs = 5_000;
/** A request in progress without activity for this long, in ms, is assumed to wait for a timer. */
const mostOpenMs = 25;

/** Resolves when the cluster is idle, that is, waits only for its own timers or for external events. */
export async function untilIdle(activity: Activity, happened: () => number): Promise<void> {
  let before = activity.count + happened();
  let changedAt = performance.now();
  for (let quiet = 0; quiet < quietTurns; quiet++) {
    await nextIteration();
    const now = activity.count + happened();
    if (now !== before) {
      before = now;
      changedAt = performance.now();
      quiet = -1;
    } else if (quiet === quietTurns - 1) {
      const sinceMs = performance.now() - changedAt;
      if (activity.open.length > 0 ? sinceMs >= mostOpenMs : !hasForeignWork() || sinceMs >= mostForeignMs) return;
      quiet = -1;
      if (activity.open.length > 0) await pause();
    }
  }
}

/** True while the thread pool works for this process, because the result will trigger further work. */
function hasForeignWork(): boolean {
  return process.getActiveResourcesInfo().some((name) => /^FSReq|Job$|Request$/.test(name));
}

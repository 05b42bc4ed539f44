/** Operations in progress in a cluster, so that tests can wait until there are none. */
export class Activity {
  readonly #open = new Map<object, string>();
  #count = 0;

  /** Requests that began so far. */
  get count(): number {
    return this.#count;
  }

  /** A request begins. @param what names it. @returns to be called when it has ended; may be called again */
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

const turn = (): Promise<void> => new Promise((resolve) => void setImmediate(resolve));
const pause = (): Promise<void> => new Promise((resolve) => void setTimeout(resolve, 1));

/** Turns of the event loop in which nothing may begin: work in slices yields a few times between two requests. */
const quietTurns = 4;
/** How long one waits for what runs outside the event loop (signatures, files, sockets), in ms. */
const mostForeignMs = 5_000;
/** A request under way that does nothing for so long waits for a time to come. */
const mostOpenMs = 25;

/** Resolves when the cluster is idle: all that remains waits for a timer of the cluster, or for external events. */
export async function untilIdle(activity: Activity, happened: () => number): Promise<void> {
  let before = activity.count + happened();
  let changedAt = performance.now();
  for (let quiet = 0; quiet < quietTurns; quiet++) {
    await turn();
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

/** Whether a thread of the pool works for this process: its result starts something new. */
function hasForeignWork(): boolean {
  return process.getActiveResourcesInfo().some((name) => /^FSReq|Job$|Request$/.test(name));
}

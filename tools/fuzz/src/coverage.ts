import inspector from "node:inspector";

/**
 * What has run so far, by V8's counters of blocks, of this thread. Begun before the code is loaded that is looked at: functions
 * that are compiled have no counters of blocks.
 */
export class Coverage {
  readonly #session = new inspector.Session();
  /** Of each function, by its place: which of its characters have run. A function in another one is its own. */
  readonly #seen = new Map<string, Uint8Array>();
  #characters = 0;

  constructor() {
    this.#session.connect();
    this.#send("Profiler.enable");
    this.#send("Profiler.startPreciseCoverage", { callCount: true, detailed: true });
  }

  /** Characters of source that have run. */
  get characters(): number {
    return this.#characters;
  }

  /** Forgets what has run since the last call, and all before with `everything`. */
  reset(everything = false): void {
    this.#take();
    if (!everything) return;
    this.#seen.clear();
    this.#characters = 0;
  }

  /** Whether something has run since the last call that had never before, and, with `keep`, from now on has. */
  isNew(keep: boolean): boolean {
    let found = false;
    for (const { url, scriptId, functions } of this.#take()) {
      if (!isLookedAt(url)) continue;
      for (const { ranges } of functions) {
        const whole = ranges[0];
        if (whole === undefined || whole.count === 0) continue;
        const added = this.#addedBy(`${scriptId}:${whole.startOffset}:${whole.endOffset}`, ranges, keep);
        if (added === 0) continue;
        if (!keep) return true;
        found = true;
        this.#characters += added;
      }
    }
    return found;
  }

  close(): void {
    this.#session.disconnect();
  }

  #addedBy(key: string, ranges: readonly inspector.Profiler.CoverageRange[], keep: boolean): number {
    const { startOffset, endOffset } = ranges[0] as inspector.Profiler.CoverageRange;
    const ran = new Uint8Array(endOffset - startOffset);
    // An inner range comes after the one around it.
    for (const range of ranges) ran.fill(range.count > 0 ? 1 : 0, range.startOffset - startOffset, range.endOffset - startOffset);
    const seen = this.#seen.get(key);
    if (seen === undefined) {
      if (keep) this.#seen.set(key, ran);
      return ran.reduce((sum, one) => sum + one, 0);
    }
    let added = 0;
    for (let at = 0; at < ran.length; at++) {
      if (ran[at] === 0 || seen[at] === 1) continue;
      added++;
      if (!keep) return added;
      seen[at] = 1;
    }
    return added;
  }

  #take(): inspector.Profiler.ScriptCoverage[] {
    return this.#send("Profiler.takePreciseCoverage")["result"] as inspector.Profiler.ScriptCoverage[];
  }

  /** A session within its own thread answers before `post` returns. */
  #send(method: string, params: object = {}): Record<string, unknown> {
    let answer: Record<string, unknown> = {};
    this.#session.post(method, params, (err: Error | null, result?: object) => {
      if (err) throw err;
      answer = (result ?? {}) as Record<string, unknown>;
    });
    return answer;
  }
}

const isLookedAt = (url: string): boolean => url.startsWith("file:") && !url.includes("/tools/fuzz/");

import inspector from "node:inspector";

/**
 * Code executed so far by this thread, from V8's block coverage. Must be started before the code under test is loaded: functions
 * that are already compiled have no block counters.
 */
export class Coverage {
  readonly #session = new inspector.Session();
  /** For each function, by its position: which of its characters were executed. Nested functions are counted separately. */
  readonly #seen = new Map<string, Uint8Array>();
  #characters = 0;

  constructor() {
    this.#session.connect();
    this.#send("Profiler.enable");
    this.#send("Profiler.startPreciseCoverage", { callCount: true, detailed: true });
  }

  /** Number of executed characters of source. */
  get characters(): number {
    return this.#characters;
  }

  /** Drops the coverage since the last call; with `everything`, also all coverage before. */
  reset(everything = false): void {
    this.#take();
    if (!everything) return;
    this.#seen.clear();
    this.#characters = 0;
  }

  /** True when code was executed since the last call for the first time. With `keep`, that code counts as executed from now on. */
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
    const { startOffset, endOffset } = ranges[0]!;
    const ran = new Uint8Array(endOffset - startOffset);
    // Nested ranges follow the range that contains them.
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
    return this.#send("Profiler.takePreciseCoverage")["result"] as inspector.Profiler.ScriptCoverage[]; // cast: the inspector's protocol
  }

  /** Sends a command; a session within its own thread answers before `post` returns. */
  #send(method: string, params: object = {}): Record<string, unknown> {
    let answer: Record<string, unknown> = {};
    this.#session.post(method, params, (err: Error | null, result?: object) => {
      if (err) throw err;
      answer = (result ?? {}) as Record<string, unknown>; // cast: the inspector's protocol
    });
    return answer;
  }
}

const isLookedAt = (url: string): boolean => url.startsWith("file:") && !url.includes("/tools/fuzz/");

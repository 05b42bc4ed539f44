import { LRUCache } from "lru-cache";
import type { Clock } from "../../process/clock/clock.ts";

interface AnswerCache<T> {
  /** Returns the cached value or the result of `make`. @param ttlMs lifetime of this value */
  get(key: string, ttlMs: (value: T) => number, make: () => Promise<T>): Promise<T>;
}

const mostAnswers = 8192;

/** Caches responses of another server, each with its own lifetime. Failures are not cached. */
export function newAnswerCache<T>(clock: Clock): AnswerCache<T> {
  const answers = new LRUCache<string, { value: T; untilMs: number }>({ max: mostAnswers });
  return {
    async get(key, ttlMs, make) {
      const known = answers.get(key);
      if (known !== undefined && clock.monotonic() < known.untilMs) return known.value;
      const value = await make();
      answers.set(key, { value, untilMs: clock.monotonic() + ttlMs(value) });
      return value;
    },
  };
}

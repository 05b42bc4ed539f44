import type { Recording } from "../../framework/history/records.ts";
import { tagOf } from "../../framework/history/records.ts";

export interface RequestFigures {
  /** The longest time from the fault on in which no client's write was acknowledged, and in which one client's were not. */
  readonly writesMs: number;
  readonly clientWritesMs: number;
  /** The longest time from a write's acknowledgement until a watcher had its event. */
  readonly watchesMs: number;
}

/** Pure. @param from when the fault began, in the recording's time */
export function figuresOf({ writes, watches }: Recording, from: number): RequestFigures {
  const done = writes.filter(({ code, end }) => code !== undefined && code < 300 && end !== undefined);
  const ends = Map.groupBy(done, ({ client }) => client)
    .values()
    .map((own) => own.map(({ end }) => end as number))
    .toArray();
  const acknowledged = new Map(done.map(({ tag, end }) => [tag, end as number]));
  const lags = watches
    .flatMap(({ events }) => events)
    // A deletion shows what was written last.
    .filter(({ type }) => type !== "DELETED")
    // What was written before the fault is not delayed by it.
    .map(({ at, object }) => ({ at, end: acknowledged.get(tagOf(object)) ?? 0 }))
    .filter(({ end }) => end >= from)
    .map(({ at, end }) => at - end);
  return {
    writesMs: longestGap(ends.flat(), from),
    clientWritesMs: Math.max(0, ...ends.map((own) => longestGap(own, from))),
    watchesMs: lags.reduce((longest, lag) => Math.max(longest, lag), 0),
  };
}

/** The longest time between two moments, of which the second is after `from`. */
function longestGap(moments: readonly number[], from: number): number {
  const sorted = moments.toSorted((a, b) => a - b);
  return sorted.reduce((longest, moment, i) => {
    const before = sorted[i - 1];
    return moment < from || before === undefined ? longest : Math.max(longest, moment - before);
  }, 0);
}

/**
 * The indexes that an indexed Job has completed, as ascending intervals that neither touch nor overlap: a Job of 100,000
 * indexes has few of them. Source: pkg/controller/job/indexed_job_utils.go
 */
export type Intervals = readonly Interval[];
export interface Interval {
  readonly first: number;
  readonly last: number;
}

/** As in `status.completedIndexes`: `1,3-5,7` (two neighbours are written apart: `1,2`). */
export function formatIndexes(intervals: Intervals): string {
  return intervals
    .map(({ first, last }) => (last === first ? `${first}` : `${first}${last === first + 1 ? "," : "-"}${last}`))
    .join(",");
}

/** What is no interval is passed over, and so is what lies beyond `completions`. */
export function parseIndexes(text: string, completions: number): Intervals {
  const intervals: Interval[] = [];
  for (const part of text === "" ? [] : text.split(",")) {
    const ends = part.split("-", 2).map(toIndex);
    const [first, last] = [ends[0], ends.at(-1)];
    if (first === undefined || last === undefined) continue;
    if (first >= completions) break;
    append(intervals, { first, last: Math.min(last, completions - 1) });
  }
  return intervals;
}

/** @param indexes ascending */
export function withIndexes(intervals: Intervals, indexes: readonly number[]): Intervals {
  const all: Interval[] = [];
  let next = 0;
  for (const index of indexes) {
    for (let known = intervals[next]; known !== undefined && known.first < index; known = intervals[++next]) append(all, known);
    append(all, { first: index, last: index });
  }
  for (const known of intervals.slice(next)) append(all, known);
  return all;
}

function append(intervals: Interval[], { first, last }: Interval): void {
  const end = intervals.at(-1);
  if (end === undefined || first > end.last + 1) intervals.push({ first, last });
  else if (end.last < last) intervals[intervals.length - 1] = { first: end.first, last };
}

export function countIndexes(intervals: Intervals): number {
  return intervals.reduce((count, { first, last }) => count + last - first + 1, 0);
}

/** Asked for each Pod of a Job that may have tens of thousands of intervals. */
export function hasIndex(intervals: Intervals, index: number): boolean {
  let [low, high] = [0, intervals.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((intervals[middle] as Interval).last < index) low = middle + 1;
    else high = middle;
  }
  const found = intervals[low];
  return found !== undefined && found.first <= index;
}

/** The lowest `count` indexes below `completions` that are in no interval. */
export function firstMissing(intervals: Intervals, count: number, completions: number): number[] {
  const missing: number[] = [];
  let candidate = 0;
  for (const { first, last } of [...intervals, { first: completions, last: completions }]) {
    for (; candidate < Math.min(first, completions) && missing.length < count; candidate++) missing.push(candidate);
    candidate = Math.max(candidate, last + 1);
  }
  return missing;
}

/** A number as Go's Atoi reads one, not negative; undefined for any other text. */
export function toIndex(text: string): number | undefined {
  return /^\+?\d{1,10}$/.test(text) ? Number(text) : undefined;
}

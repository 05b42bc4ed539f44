/**
 * Completed indexes of an indexed Job as ascending intervals that neither overlap nor touch. Intervals keep the
 * representation small for Jobs with up to 100,000 indexes. Source: pkg/controller/job/indexed_job_utils.go
 */
export type Intervals = readonly Interval[];
interface Interval {
  readonly first: number;
  readonly last: number;
}

/** Formats the value of `status.completedIndexes`, e.g. `1,3-5,7`. An interval of two indexes is written as `1,2`. */
export function formatIndexes(intervals: Intervals): string {
  return intervals
    .map(({ first, last }) => (last === first ? `${first}` : `${first}${last === first + 1 ? "," : "-"}${last}`))
    .join(",");
}

/** Parses `status.completedIndexes`. Malformed intervals and indexes from `completions` upwards are ignored. */
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

/**
 * Returns `intervals` with `indexes` merged in.
 * @param indexes in ascending order
 */
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

/** Number of indexes, not of intervals. */
export function countIndexes(intervals: Intervals): number {
  return intervals.reduce((count, { first, last }) => count + last - first + 1, 0);
}

/** Binary search: called for each Pod of a Job that may have tens of thousands of intervals. */
export function hasIndex(intervals: Intervals, index: number): boolean {
  let [low, high] = [0, intervals.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (intervals[middle]!.last < index) low = middle + 1;
    else high = middle;
  }
  const found = intervals[low];
  return found !== undefined && found.first <= index;
}

/** The lowest `count` indexes below `completions` that are not covered by `intervals`. */
export function firstMissing(intervals: Intervals, count: number, completions: number): number[] {
  const missing: number[] = [];
  let candidate = 0;
  for (const { first, last } of [...intervals, { first: completions, last: completions }]) {
    for (; candidate < Math.min(first, completions) && missing.length < count; candidate++) missing.push(candidate);
    candidate = Math.max(candidate, last + 1);
  }
  return missing;
}

/** Parses a non-negative number as Go's `strconv.Atoi` does; undefined for any other text. */
export function toIndex(text: string): number | undefined {
  return /^\+?\d{1,10}$/.test(text) ? Number(text) : undefined;
}

/** Work that can be interrupted at its yields, which are at most a few milliseconds apart. */
export type Steps<T> = Generator<void, T, void>;

/** Runs all steps synchronously. */
export function atOnce<T>(steps: Steps<T>): T {
  for (;;) {
    const step = steps.next();
    if (step.done) return step.value;
  }
}

/** Decides where work on many values yields. */
export class Pace {
  readonly #most: number;
  #count = 0;

  /** @param most values between two yields */
  constructor(most: number) {
    this.#most = most;
  }

  /** Must be called for each value; true when the work should yield now. */
  isDue(): boolean {
    if (++this.#count < this.#most) return false;
    this.#count = 0;
    return true;
  }
}

/** Slices of `size` items each, the last with the rest; none of no items. */
export function* chunksOf<T>(items: readonly T[], size: number): Generator<readonly T[]> {
  for (let at = 0; at < items.length; at += size) yield items.slice(at, at + size);
}

/** Items that are sorted or merged between two yields. */
const sortedPerStep = 1024;

/** As `toSorted`, in steps for many items. */
export function* sortedInSteps<T>(items: readonly T[], compare: (a: T, b: T) => number): Steps<T[]> {
  let runs: T[][] = [];
  for (let at = 0; at < items.length; at += sortedPerStep) {
    runs.push(items.slice(at, at + sortedPerStep).sort(compare));
    if (items.length > sortedPerStep) yield;
  }
  while (runs.length > 1) {
    const merged: T[][] = [];
    for (let i = 0; i < runs.length; i += 2) merged.push(yield* mergedInSteps(runs[i]!, runs[i + 1] ?? [], compare));
    runs = merged;
  }
  return runs[0] ?? [];
}

function* mergedInSteps<T>(left: readonly T[], right: readonly T[], compare: (a: T, b: T) => number): Steps<T[]> {
  const merged: T[] = [];
  let [i, j] = [0, 0];
  while (i < left.length || j < right.length) {
    const takesLeft = j >= right.length || (i < left.length && compare(left[i]!, right[j]!) <= 0);
    merged.push((takesLeft ? left[i++] : right[j++])!);
    if (merged.length % sortedPerStep === 0) yield;
  }
  return merged;
}

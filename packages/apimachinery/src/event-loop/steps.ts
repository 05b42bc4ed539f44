/** Work that can be interrupted at its yields, which are at most a few milliseconds apart. */
export type Steps<T> = Generator<void, T, void>;

/** Runs all steps synchronously. */
export function atOnce<T>(steps: Steps<T>): T {
  for (;;) {
    const step = steps.next();
    if (step.done) return step.value;
  }
}

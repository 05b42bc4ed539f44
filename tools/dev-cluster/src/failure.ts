/** Something the user can put right; printed as one line, without a stack. */
export class Failure extends Error {}

/** Prints what is being done with the time since the start. */
export interface Progress {
  step(text: string): void;
}

export function newProgress(): Progress {
  const start = performance.now();
  return {
    step(text) {
      const seconds = ((performance.now() - start) / 1000).toFixed(1).padStart(6);
      process.stdout.write(`${seconds}s  ${text}\n`);
    },
  };
}

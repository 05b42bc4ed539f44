/** Something the user can put right; printed as one line, without a stack. */
export class Failure extends Error {
  readonly exitCode: number = 1;
}

/** A command line that cannot be used. */
export class UsageFailure extends Failure {
  override readonly exitCode = 2;
}

/** The user pressed Ctrl-C, or the terminal was closed. */
export class Interrupted extends Failure {
  override readonly exitCode: number;
  constructor(signal: "SIGINT" | "SIGTERM" | "SIGHUP") {
    super(`stopped by ${signal}`);
    this.exitCode = 128 + { SIGHUP: 1, SIGINT: 2, SIGTERM: 15 }[signal];
  }
}

/** Prints what is being done with the time since the start, and says when to stop doing it. */
export interface Progress {
  /** @throws Interrupted once `signal` is aborted, so that nothing more is started. */
  step(text: string): void;
  /** Aborted by Ctrl-C with `Interrupted` as its reason; whoever waits for something ends with that reason. */
  readonly signal: AbortSignal;
}

/** @param signal without one the work cannot be interrupted */
export function newProgress(signal: AbortSignal = new AbortController().signal): Progress {
  const start = performance.now();
  return {
    signal,
    step(text) {
      signal.throwIfAborted();
      const seconds = ((performance.now() - start) / 1000).toFixed(1).padStart(6);
      process.stdout.write(`${seconds}s  ${text}\n`);
    },
  };
}

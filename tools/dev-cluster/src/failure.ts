import { constants } from "node:os";

/** An error that the user can fix; printed as one line, without stack. */
export class Failure extends Error {
  readonly exitCode: number;
  constructor(message: string, exitCode = 1) {
    super(message);
    this.exitCode = exitCode;
  }
}

/** An invalid command line. */
export class UsageFailure extends Failure {
  constructor(message: string) {
    super(message, 2);
  }
}

/** Ctrl-C, or the terminal was closed. */
export class Interrupted extends Failure {
  constructor(signal: "SIGINT" | "SIGTERM" | "SIGHUP") {
    super(`stopped by ${signal}`, 128 + constants.signals[signal]);
  }
}

/** Prints progress with elapsed time, and carries the abort signal. */
export interface Progress {
  /** Prints a step. @throws Interrupted when `signal` is aborted, so that no further step starts. */
  step(text: string): void;
  /** Aborted by Ctrl-C with `Interrupted` as its reason, which pending waits reject with. */
  readonly signal: AbortSignal;
}

/** @param signal default: not interruptible */
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

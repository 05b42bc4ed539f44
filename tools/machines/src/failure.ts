/** Errors that the user can fix, one line each, with the remedy. */
export class Failure extends Error {
  readonly exitCode: number;

  constructor(lines: string | readonly string[], exitCode = 1) {
    super(typeof lines === "string" ? lines : lines.join("\n"));
    this.exitCode = exitCode;
  }
}

/** A wrong command line or configuration file. */
export class UsageFailure extends Failure {
  constructor(lines: string | readonly string[]) {
    super(lines, 2);
  }
}

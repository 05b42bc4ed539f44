/** Message to worker.ts: run a test file once. */
export interface RunRequest {
  /** Absolute path. */
  readonly test: string;
  /** Absolute paths of the modules to load anew: all that import the mutated one, directly or not, and itself. */
  readonly reload: readonly string[];
  /** Absent for a run without mutation. */
  readonly overlay?: Overlay | undefined;
}

/** The only source that differs from the working tree. */
export interface Overlay {
  /** Absolute path of the replaced module. */
  readonly file: string;
  /** Absolute path of the file with the replacement. */
  readonly source: string;
}

/** Answer of worker.ts. */
export interface RunReply {
  /** The first failure: test and error; "uncaught: …" for an error outside of a test. Undefined when all tests passed. */
  readonly failure: string | undefined;
  readonly residentBytes: number;
}

/**
 * Error texts in the node's `status.config`; details are only logged.
 * Source: pkg/kubelet/kubeletconfig/status/status.go
 */
export const problems = {
  load: "failed to load config, see Kubelet log for details",
  validate: "failed to validate config, see Kubelet log for details",
  download: "failed to download config, see Kubelet log for details",
  /** The source is of an unknown kind. */
  nothingNamed: "invalid NodeConfigSource, exactly one subfield must be non-nil, but all were nil",
  internal: "internal failure, see Kubelet log for details",
} as const;

/** The wanted configuration could not be applied. */
export class SyncProblem extends Error {
  /** Text for the node's status. */
  readonly shown: string;
  constructor(problem: string, cause: unknown) {
    super(`failed to sync: ${problem}`, { cause });
    this.shown = this.message;
  }
}

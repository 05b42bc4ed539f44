/** What a node's status says is wrong with its configuration; details are for the log. Source: pkg/kubelet/kubeletconfig/status/status.go */
export const problems = {
  load: "failed to load config, see Kubelet log for details",
  validate: "failed to validate config, see Kubelet log for details",
  download: "failed to download config, see Kubelet log for details",
  /** A source of a kind that this agent does not know. */
  nothingNamed: "invalid NodeConfigSource, exactly one subfield must be non-nil, but all were nil",
  internal: "internal failure, see Kubelet log for details",
} as const;

/** Why the configuration that the cluster wants could not be taken over. */
export class SyncProblem extends Error {
  /** For the node's status. */
  readonly shown: string;
  constructor(problem: string, cause: unknown) {
    super(`failed to sync: ${problem}`, { cause });
    this.shown = this.message;
  }
}

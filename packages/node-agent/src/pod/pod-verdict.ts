/** Why the node ends a Pod; becomes reason and message of its status. */
export interface PodVerdict {
  reason: string;
  message: string;
  /** Annotations of the event about the Pod's termination. */
  annotations?: Readonly<Record<string, string>>;
}

/** How a Pod is terminated. */
export interface TerminateOptions {
  /** The Pod is known to the runtime only: it has no spec and no API object. */
  runtimeOnly: boolean;
  graceSecondsOverride?: number | undefined;
  /** Reason and message for the status of a Pod that the node ends: evicted, deadline exceeded. */
  verdict?: PodVerdict | undefined;
}

/** Why the node does not admit a Pod; becomes reason and message of its status. */
export interface Rejection {
  reason: string;
  message: string;
}

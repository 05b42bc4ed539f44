export type ProbeResult = "success" | "failure" | "unknown";

/** Results of probes by container ID. */
export interface ProbeResults {
  /** Undefined when there is no such probe, or no result yet. */
  liveness(containerId: string): ProbeResult | undefined;
  startup(containerId: string): ProbeResult | undefined;
  readiness(containerId: string): ProbeResult | undefined;
  /** Whether a probe of that kind is configured for the container, with a result or not. */
  isProbed(kind: "liveness" | "readiness" | "startup", podUid: string, containerName: string): boolean;
}

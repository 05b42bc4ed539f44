export type ProbeResult = "success" | "failure" | "unknown";

/** What the probes of containers have found; by the container's id in the runtime. */
export interface ProbeResults {
  /** Undefined when there is no such probe or it has said nothing yet. */
  liveness(containerId: string): ProbeResult | undefined;
  startup(containerId: string): ProbeResult | undefined;
  readiness(containerId: string): ProbeResult | undefined;
  /** Whether a probe of that kind runs for the container, with a result or not. */
  isProbed(kind: "liveness" | "readiness" | "startup", podUid: string, containerName: string): boolean;
}

export const noProbes: ProbeResults = {
  liveness: () => undefined,
  startup: () => undefined,
  readiness: () => undefined,
  isProbed: () => false,
};

import type { Container, PodSpec } from "@coxswain/apimachinery/schema/kinds/core/v1";

/**
 * Takes out what a gate that is off governs, unless the stored object uses it already.
 * Source: pkg/api/pod/util.go DropDisabledPodFields
 */
export function dropDisabledFields(spec: PodSpec, old: PodSpec | undefined, featureEnabled: (gate: string) => boolean): void {
  const containers = (of: PodSpec | undefined): Container[] =>
    of ? [...(of.containers ?? []), ...(of.initContainers ?? []), ...((of.ephemeralContainers ?? []) as Container[])] : [];
  if (!featureEnabled("IdentifyPodOS") && old?.os === undefined) delete spec.os;
  if (
    !featureEnabled("ProcMountType") &&
    !containers(old).some((c) => (c.securityContext?.procMount ?? "Default") !== "Default")
  ) {
    // Not taken out: 1.12 filled it, and what it stored must not look changed.
    for (const { securityContext } of containers(spec))
      if (securityContext?.procMount !== undefined) securityContext.procMount = "Default";
  }
  const probes = (of: PodSpec | undefined) =>
    containers(of).flatMap((c) =>
      [c.livenessProbe, c.readinessProbe, c.startupProbe].filter((probe) => probe !== undefined && probe !== null),
    );
  if (!featureEnabled("GRPCContainerProbe") && !probes(old).some((probe) => probe.grpc)) {
    for (const probe of probes(spec)) delete probe.grpc;
  }
  if (
    !featureEnabled("ProbeTerminationGracePeriod") &&
    !probes(old).some((probe) => probe.terminationGracePeriodSeconds !== undefined)
  ) {
    for (const probe of probes(spec)) delete probe.terminationGracePeriodSeconds;
  }
}

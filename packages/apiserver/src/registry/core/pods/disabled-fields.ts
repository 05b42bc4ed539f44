import { appArmorContainer } from "@coxswain/apimachinery/objects/meta/pod-security-names";
import type { Container, PodSpec, PodTemplateSpec } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";

/** A pod or a pod template. */
type Carrier = Pick<PodTemplateSpec, "metadata" | "spec">;

/**
 * Drops fields and annotations of disabled feature gates, unless the stored pod or template uses them.
 * Source: pkg/api/pod/util.go DropDisabledPodFields, DropDisabledTemplateFields
 */
export function dropDisabledFields(next: Carrier, old: Carrier | undefined, featureEnabled: (gate: string) => boolean): void {
  if (next.spec) dropSpecFields(next.spec, old?.spec, featureEnabled);
  const profilesOf = (of: Carrier | undefined): string[] =>
    Object.keys(of?.metadata?.annotations ?? {}).filter((key) => key.startsWith(appArmorContainer));
  if (featureEnabled("AppArmor") || profilesOf(old).length > 0) return;
  for (const key of profilesOf(next)) delete next.metadata?.annotations?.[key];
}

function dropSpecFields(spec: PodSpec, old: PodSpec | undefined, featureEnabled: (gate: string) => boolean): void {
  const containers = (of: PodSpec | undefined): Container[] =>
    of ? [...(of.containers ?? []), ...(of.initContainers ?? []), ...(of.ephemeralContainers ?? [])] : [];
  if (!featureEnabled("IdentifyPodOS") && old?.os === undefined) delete spec.os;
  if (
    !featureEnabled("ProcMountType") &&
    !containers(old).some((c) => (c.securityContext?.procMount ?? "Default") !== "Default")
  ) {
    // Reset instead of dropped: 1.12 set a default, and objects stored by it must not appear changed.
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

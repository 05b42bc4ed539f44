/** Source: k8s.io/pod-security-admission metrics/metrics.go */
import type { MetricsRegistry } from "@coxswain/apimachinery/process/metrics/registry";
import definitions from "../../metrics.json" with { type: "json" };
import type { AdmissionAttributes } from "../plugin.ts";
import { type LevelVersion, latestMinor } from "./policy.ts";

interface PodSecurityMetrics {
  evaluated(
    decision: "allow" | "deny",
    policy: LevelVersion,
    mode: "enforce" | "audit" | "warn",
    attributes: AdmissionAttributes,
  ): void;
  exempted(attributes: AdmissionAttributes): void;
  /** @param fatal whether the evaluation error rejected the request */
  failed(fatal: boolean, attributes: AdmissionAttributes): void;
}

export function newPodSecurityMetrics(registry: MetricsRegistry): PodSecurityMetrics {
  const evaluations = registry.counter(definitions.pod_security_evaluations_total);
  const exemptions = registry.counter(definitions.pod_security_exemptions_total);
  const errors = registry.counter(definitions.pod_security_errors_total);
  return {
    evaluated: (decision, { level, version }, mode, attributes) =>
      evaluations.labels(decision, level, versionLabel(version), mode, ...labelsOf(attributes)).inc(),
    exempted: (attributes) => exemptions.labels(...labelsOf(attributes)).inc(),
    failed: (fatal, attributes) => errors.labels(String(fatal), ...labelsOf(attributes)).inc(),
  };
}

/** Versions in labels are user input; unknown ones share one metric series to bound cardinality. */
function versionLabel(version: string): string {
  return version !== "latest" && Number(version.slice("v1.".length)) > latestMinor ? "future" : version;
}

function labelsOf({ operation, resource, subresource }: AdmissionAttributes): [string, string, string] {
  const isPod = resource.group === "" && resource.resource === "pods";
  return [operation.toLowerCase(), isPod ? "pod" : "controller", subresource];
}

/** Source: k8s.io/pod-security-admission metrics/metrics.go */
import type { MetricsRegistry } from "@coxswain/apimachinery/process/metrics/registry";
import type { AdmissionAttributes } from "../plugin.ts";
import { type LevelVersion, latestMinor } from "./policy.ts";

export interface PodSecurityMetrics {
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
  const of = ["request_operation", "resource", "subresource"];
  const evaluations = registry.counter({
    name: "pod_security_evaluations_total",
    help: "Number of policy evaluations that occurred, not counting ignored or exempt requests.",
    labels: ["decision", "policy_level", "policy_version", "mode", ...of],
  });
  const exemptions = registry.counter({
    name: "pod_security_exemptions_total",
    help: "Number of exempt requests, not counting ignored or out of scope requests.",
    labels: of,
  });
  const errors = registry.counter({
    name: "pod_security_errors_total",
    help: "Number of errors preventing normal evaluation. Non-fatal errors may result in the latest restricted profile being used for evaluation.",
    labels: ["fatal", ...of],
  });
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

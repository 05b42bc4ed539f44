import { objectRef } from "@coxswain/apimachinery/decisions/decision";
import type { Outcome } from "@coxswain/apimachinery/decisions/decision-log";
import type { Pod, Service } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { pods } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { isFinished, isReady } from "../../pods/pod-state.ts";
import { addressesOf, familiesOf, ipFamilyOf, missingPort, publishesNotReady } from "../../services/service-pods.ts";

const maxPodsReported = 50;

/** Pure: why the Service has no endpoints, or fewer than selected pods; undefined when every selected pod is an endpoint. */
export function missingAddresses(service: Service, selected: readonly Pod[]): Outcome | undefined {
  if (selected.length === 0) {
    return {
      verdict: "waiting",
      reason: "NoPodsSelected",
      description() {
        const labels = Object.entries(service.spec?.selector ?? {}).map(([key, value]) => `${key}=${value}`);
        return {
          summary: `no pod of the namespace has the labels of its selector, ${labels.join(",")}`,
          remedy: "compare the selector with the labels of the pods",
        };
      },
      // Counts only what the decision adds: the service is cached anyway.
      sizeBytes: 200,
    };
  }
  const missing = selected.filter((pod) => whyMissing(service, pod) !== undefined);
  if (missing.length === 0) return undefined;
  return {
    verdict: "waiting",
    reason: missing.length === selected.length ? "NoEndpoints" : "EndpointsMissing",
    description() {
      const reasons = new Map<string, number>();
      const byPod: [string, string][] = [];
      for (const pod of missing) {
        const why = whyMissing(service, pod) ?? "";
        reasons.set(why, (reasons.get(why) ?? 0) + 1);
        if (byPod.length < maxPodsReported) byPod.push([pod.metadata.name ?? "", why]);
      }
      const texts = Array.from(reasons, ([why, count]) => `${count} ${why}`);
      return {
        summary: `${missing.length} of ${selected.length} selected pods are not endpoints: ${texts.join(", ")}`,
        related: missing.slice(0, maxPodsReported).map((pod) => objectRef(pods, pod)),
        details: { pods: Object.fromEntries(byPod) },
      };
    },
    // Counts only what the decision adds: the pods are cached anyway.
    sizeBytes: 200 + 8 * missing.length,
  };
}

function whyMissing(service: Service, pod: Pod): string | undefined {
  if (isFinished(pod.status?.phase)) return "ended";
  if (pod.metadata.deletionTimestamp) return "being deleted";
  const addresses = addressesOf(pod);
  if (addresses.length === 0) return "without an address yet";
  const [family] = familiesOf(service);
  if (!addresses.some((address) => ipFamilyOf(address) === family)) return `without an ${family} address`;
  const unnamed = missingPort(service, pod);
  if (unnamed !== undefined) return `without a port named ${String(unnamed.targetPort)}`;
  return isReady(pod) || publishesNotReady(service) ? undefined : "not ready";
}

import { Quantity } from "@coxswain/apimachinery/objects/meta/quantity";
import type { Pod } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { type Gauge, type MetricsRegistry, newMetricsRegistry } from "@coxswain/apimachinery/process/metrics/registry";
import { podResources } from "@coxswain/apimachinery/quota/pod-resources";

/**
 * Requests and limits by pod and resource, for the endpoint `/metrics/resources`.
 * @param pods returns the pods that are not terminated
 * Source: pkg/scheduler/metrics/resources/resources.go, KEP-1748
 */
export function newResourceMetrics(pods: () => readonly Pod[]): MetricsRegistry {
  const registry = newMetricsRegistry();
  const reported =
    "This shows the resource usage the scheduler and kubelet expect per pod for resources along with the unit for the resource if any.";
  const add = (name: string, help: string, which: "requests" | "limits"): void => {
    const labels = ["namespace", "node", "pod", "priority", "resource", "scheduler", "unit"];
    const collect = (gauge: Gauge): void => {
      gauge.reset();
      for (const pod of pods()) {
        const { namespace = "", name: podName = "" } = pod.metadata;
        const { nodeName = "", schedulerName = "", priority } = pod.spec;
        for (const [resource, text] of Object.entries(podResources(pod, which))) {
          const amount = Quantity.tryParse(text);
          if (amount === undefined || amount.isZero) continue;
          gauge
            .labels(namespace, nodeName, podName, String(priority ?? ""), resource, schedulerName, unitOf(resource))
            .set(Number(amount.nanos) / 1e9);
        }
      }
    };
    registry.gauge({ name, help: `${help} ${reported}`, labels, collect });
  };
  add("kube_pod_resource_request", "Resources requested by workloads on the cluster, broken down by pod.", "requests");
  add("kube_pod_resource_limit", "Resources limit for workloads on the cluster, broken down by pod.", "limits");
  return registry;
}

const units: Readonly<Record<string, string>> = { cpu: "cores", memory: "bytes", storage: "bytes", "ephemeral-storage": "bytes" };

function unitOf(resource: string): string {
  if (Object.hasOwn(units, resource)) return units[resource]!;
  if (resource.startsWith("hugepages-")) return "bytes";
  return resource.startsWith("attachable-volumes-") ? "integer" : "";
}

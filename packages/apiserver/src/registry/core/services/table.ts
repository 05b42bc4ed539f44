import type { LoadBalancerStatus, Service } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { age, labelsText, tableOf } from "../../cells.ts";

/** kubectl get services. Source: pkg/printers/internalversion/printers.go printService */
export const serviceTable = tableOf<Service>("services", (service, ages) => [
  service.metadata.name ?? "",
  service.spec?.type ?? "",
  service.spec?.clusterIPs?.[0] || service.spec?.clusterIP || "<none>",
  externalText(service),
  portsText(service),
  age(service, ages),
  labelsText(service.spec?.selector),
]);

function externalText(service: Service): string {
  const external = service.spec?.externalIPs ?? [];
  switch (service.spec?.type) {
    case "ClusterIP":
    case "NodePort":
      return external.length > 0 ? external.join(",") : "<none>";
    case "LoadBalancer": {
      const balanced = loadBalancerText(service.status?.loadBalancer);
      if (external.length === 0) return balanced === "" ? "<pending>" : balanced;
      return [...(balanced === "" ? [] : balanced.split(",")), ...external].join(",");
    }
    case "ExternalName":
      return service.spec?.externalName ?? "";
    default:
      return "<unknown>";
  }
}

/** Distinct addresses of a load balancer. Shared with ingresses. */
export function loadBalancerText(status: LoadBalancerStatus | undefined): string {
  const found = new Set<string>();
  for (const { ip, hostname } of status?.ingress ?? []) {
    if (ip) found.add(ip);
    else if (hostname) found.add(hostname);
  }
  return [...found].sort().join(",");
}

function portsText(service: Service): string {
  const ports = service.spec?.ports ?? [];
  if (ports.length === 0) return "<none>";
  return ports
    .map((port) => (port.nodePort ? `${port.port}:${port.nodePort}/${port.protocol}` : `${port.port}/${port.protocol}`))
    .join(",");
}

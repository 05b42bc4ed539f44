import type { Service } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { emptyStruct } from "../../rules.ts";

/** Source: pkg/apis/core/v1/defaults.go SetDefaults_Service */
export function defaultService(service: Service): void {
  service.spec ??= emptyStruct();
  const { spec } = service;
  spec.sessionAffinity ||= "None";
  if (spec.sessionAffinity === "None") delete spec.sessionAffinityConfig;
  if (spec.sessionAffinity === "ClientIP") {
    spec.sessionAffinityConfig ??= {};
    spec.sessionAffinityConfig.clientIP ??= {};
    spec.sessionAffinityConfig.clientIP.timeoutSeconds ??= 10800;
  }
  spec.type ||= "ClusterIP";
  for (const port of spec.ports ?? []) {
    port.protocol ||= "TCP";
    if (port.targetPort === undefined || port.targetPort === null || port.targetPort === 0 || port.targetPort === "")
      port.targetPort = port.port;
  }
  if (spec.type === "NodePort" || spec.type === "LoadBalancer") spec.externalTrafficPolicy ||= "Cluster";
  if (spec.internalTrafficPolicy === undefined && spec.type !== "ExternalName") spec.internalTrafficPolicy = "Cluster";
  if (spec.type === "LoadBalancer") spec.allocateLoadBalancerNodePorts ??= true;
}

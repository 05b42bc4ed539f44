import { semanticEqual } from "@coxswain/apimachinery/objects/meta/deep-equal";
import type { Service } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";

/** Fields that depend on the type of a service. Source: pkg/registry/core/service/strategy.go, storage/storage.go */
export const needsClusterIp = (service: Service): boolean => service.spec.type !== "ExternalName";
export const isHeadless = (service: Pick<Service, "spec">): boolean =>
  service.spec.clusterIP === "None" || service.spec.clusterIPs?.[0] === "None";

/** Whether ports without a node port get one: type NodePort, and LoadBalancer unless allocateLoadBalancerNodePorts is false. */
export function needsNodePort(service: Service): boolean {
  const { type, allocateLoadBalancerNodePorts } = service.spec;
  return type === "NodePort" || (type === "LoadBalancer" && allocateLoadBalancerNodePorts !== false);
}

/** Whether node ports that the user names are accepted and allocated. */
export const mayHaveNodePort = (service: Service): boolean =>
  service.spec.type === "NodePort" || service.spec.type === "LoadBalancer";

/** Whether the service has a healthCheckNodePort: a load balancer with external policy Local. */
export function needsHealthCheckPort(service: Service): boolean {
  return service.spec.type === "LoadBalancer" && service.spec.externalTrafficPolicy === "Local";
}

/** Derives `clusterIPs` for clients that only know `clusterIP`. Source: normalizeClusterIPs */
export function normalizeClusterIps(next: Service, current: Service | undefined): void {
  const { spec } = next;
  if (current === undefined) {
    if (spec.clusterIP && !spec.clusterIPs?.length) spec.clusterIPs = [spec.clusterIP];
    return;
  }
  const old = current.spec;
  const sameList = semanticEqual(spec.clusterIPs, old.clusterIPs);
  if (old.clusterIP && !spec.clusterIP && sameList) delete spec.clusterIPs;
  else if (spec.clusterIP !== old.clusterIP && spec.clusterIP && sameList) spec.clusterIPs = [spec.clusterIP];
}

/** Copies allocated addresses and ports that an update leaves out. Source: patchAllocatedValues */
export function keepAllocated(next: Service, current: Service): void {
  const [spec, old] = [next.spec, current.spec];
  if (needsClusterIp(next) && needsClusterIp(current)) {
    if (!spec.clusterIP && old.clusterIP) spec.clusterIP = old.clusterIP;
    if (!spec.clusterIPs?.length && spec.clusterIP === old.clusterIP && old.clusterIPs) spec.clusterIPs = [...old.clusterIPs];
  }
  if (needsNodePort(next) && needsNodePort(current)) {
    const used = new Set((spec.ports ?? []).map((port) => port.nodePort).filter(Boolean));
    // By name, so that a port of another number keeps its node port.
    const held = new Map((old.ports ?? []).map(({ name = "", nodePort }) => [name, nodePort]));
    for (const port of spec.ports ?? []) {
      if (port.nodePort) continue;
      const before = held.get(port.name ?? "");
      if (before && !used.has(before)) port.nodePort = before;
    }
  }
  if (needsHealthCheckPort(next) && needsHealthCheckPort(current) && !spec.healthCheckNodePort && old.healthCheckNodePort) {
    spec.healthCheckNodePort = old.healthCheckNodePort;
  }
}

/** On a change of type, drops unchanged fields that only the old type has. Source: dropTypeDependentFields */
export function dropForeignFields(next: Service, current: Service): void {
  const [spec, old] = [next.spec, current.spec];
  if (needsClusterIp(current) && !needsClusterIp(next)) {
    if (spec.clusterIP === old.clusterIP && semanticEqual(spec.clusterIPs, old.clusterIPs)) {
      delete spec.clusterIP;
      delete spec.clusterIPs;
    }
    if (semanticEqual(spec.ipFamilies, old.ipFamilies)) delete spec.ipFamilies;
    if (spec.ipFamilyPolicy === old.ipFamilyPolicy) delete spec.ipFamilyPolicy;
  }
  if (mayHaveNodePort(current) && !mayHaveNodePort(next)) {
    // Node ports are dropped only when the update requests no new ones.
    const nodePortsOf = (service: Service) => (service.spec.ports ?? []).map(({ nodePort }) => nodePort ?? 0);
    const held = new Set([0, ...nodePortsOf(current)]);
    if (nodePortsOf(next).every((nodePort) => held.has(nodePort))) for (const port of spec.ports ?? []) delete port.nodePort;
    if (spec.externalTrafficPolicy === old.externalTrafficPolicy) delete spec.externalTrafficPolicy;
  }
  if (needsHealthCheckPort(current) && !needsHealthCheckPort(next) && spec.healthCheckNodePort === old.healthCheckNodePort) {
    delete spec.healthCheckNodePort;
  }
  if (old.type === "LoadBalancer" && spec.type !== "LoadBalancer") {
    if (spec.allocateLoadBalancerNodePorts === old.allocateLoadBalancerNodePorts) delete spec.allocateLoadBalancerNodePorts;
    if (spec.loadBalancerClass === old.loadBalancerClass) delete spec.loadBalancerClass;
  }
}

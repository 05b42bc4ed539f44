import { isIPv4 } from "node:net";
import type { FieldError } from "@coxswain/apimachinery/errors/field-error";
import { duplicate, forbiddenField, invalidValue, notSupported, required } from "@coxswain/apimachinery/errors/field-error";
import { child, index } from "@coxswain/apimachinery/errors/field-path";
import type { Service, ServicePort } from "@coxswain/apimachinery/schema/kinds/core/v1";
import {
  checkLabels,
  checkNonSpecialIp,
  checkPortNumOrName,
  dns1123Label,
  immutableField,
  isDns1123Subdomain,
  isValidIp,
  isValidPort,
  oneOf,
  parseCidr,
  parseIp,
  qualifiedName,
} from "../../field-checks.ts";
import { isHeadless, mayHaveNodePort, needsClusterIp, needsHealthCheckPort } from "./fields.ts";

const mostAffinitySeconds = 86_400;

/** Source: pkg/apis/core/validation ValidateService */
export function validateService(service: Service): FieldError[] {
  const errors: FieldError[] = [];
  const { spec } = service;
  const type: string = spec.type ?? "";
  const headless = isHeadless(service);
  const ports = spec.ports ?? [];
  if (ports.length === 0 && !headless && type !== "ExternalName") errors.push(required("spec.ports"));
  if (type === "LoadBalancer") {
    for (const [i, port] of ports.entries()) {
      // The kubelet's port on the nodes is not for sale.
      if (port.port === 10250)
        errors.push(
          invalidValue(
            child(index("spec.ports", i), "port"),
            port.port,
            "may not expose port 10250 externally since it is used by kubelet",
          ),
        );
    }
    if (headless)
      errors.push(
        invalidValue(
          "spec.clusterIPs[0]",
          spec.clusterIPs?.[0] ?? spec.clusterIP,
          "may not be set to 'None' for LoadBalancer services",
        ),
      );
  } else if (type === "NodePort") {
    if (headless)
      errors.push(
        invalidValue(
          "spec.clusterIPs[0]",
          spec.clusterIPs?.[0] ?? spec.clusterIP,
          "may not be set to 'None' for NodePort services",
        ),
      );
  } else if (type === "ExternalName") {
    if (spec.clusterIPs?.length) errors.push(forbiddenField("spec.clusterIPs", "may not be set for ExternalName services"));
    if (spec.ipFamilies?.length) errors.push(forbiddenField("spec.ipFamilies", "may not be set for ExternalName services"));
    if (spec.ipFamilyPolicy !== undefined)
      errors.push(forbiddenField("spec.ipFamilyPolicy", "may not be set for ExternalName services"));
    const name = (spec.externalName ?? "").replace(/\.$/, "");
    if (name === "") errors.push(required("spec.externalName", ""));
    else for (const message of isDns1123Subdomain(name)) errors.push(invalidValue("spec.externalName", name, message));
  }
  const names = new Set<string>();
  for (const [i, port] of ports.entries()) errors.push(...validatePort(port, ports.length > 1, names, index("spec.ports", i)));
  errors.push(...checkLabels(spec.selector, "spec.selector"));
  const affinity: string = spec.sessionAffinity ?? "";
  errors.push(...oneOf(affinity, ["ClientIP", "None"], "spec.sessionAffinity"));
  if (affinity === "ClientIP") {
    const seconds = spec.sessionAffinityConfig?.clientIP?.timeoutSeconds;
    if (seconds === undefined) errors.push(required("spec.sessionAffinityConfig", "when session affinity type is ClientIP"));
    else if (seconds <= 0 || seconds > mostAffinitySeconds) {
      errors.push(
        invalidValue("spec.sessionAffinityConfig.clientIP.timeoutSeconds", seconds, "must be greater than 0 and less than 86400"),
      );
    }
  } else if (affinity === "None" && spec.sessionAffinityConfig) {
    errors.push(forbiddenField("spec.sessionAffinityConfig", "must not be set when session affinity is None"));
  }
  errors.push(...validateClusterIps(service));
  for (const [i, ip] of (spec.externalIPs ?? []).entries()) {
    const at = index("spec.externalIPs", i);
    const messages = isValidIp(ip);
    if (messages.length > 0) for (const message of messages) errors.push(invalidValue(at, ip, message));
    else errors.push(...checkNonSpecialIp(ip, at));
  }
  errors.push(...oneOf(type, ["ClusterIP", "NodePort", "LoadBalancer", "ExternalName"], "spec.type"));
  errors.push(...validateDuplicates(service));
  errors.push(...validateSourceRanges(service), ...validateTrafficPolicies(service));
  if (spec.loadBalancerClass !== undefined) {
    if (type !== "LoadBalancer")
      errors.push(forbiddenField("spec.loadBalancerClass", "may only be used when `type` is 'LoadBalancer'"));
    else errors.push(...qualifiedName(spec.loadBalancerClass, "spec.loadBalancerClass"));
  }
  if (spec.allocateLoadBalancerNodePorts !== undefined && type !== "LoadBalancer") {
    errors.push(forbiddenField("spec.allocateLoadBalancerNodePorts", "may only be used when `type` is 'LoadBalancer'"));
  }
  return errors;
}

function validatePort(port: ServicePort, requireName: boolean, names: Set<string>, path: string): FieldError[] {
  const errors: FieldError[] = [];
  if (requireName && !port.name) errors.push(required(child(path, "name"), ""));
  else if (port.name) {
    errors.push(...dns1123Label(port.name, child(path, "name")));
    if (names.has(port.name)) errors.push(duplicate(child(path, "name"), port.name));
    names.add(port.name);
  }
  for (const message of isValidPort(port.port ?? 0)) errors.push(invalidValue(child(path, "port"), port.port ?? 0, message));
  errors.push(...oneOf(port.protocol, ["SCTP", "TCP", "UDP"], child(path, "protocol")));
  errors.push(...checkPortNumOrName(port.targetPort, child(path, "targetPort")));
  if (port.appProtocol !== undefined) errors.push(...qualifiedName(port.appProtocol, child(path, "appProtocol")));
  return errors;
}

function validateDuplicates(service: Service): FieldError[] {
  const errors: FieldError[] = [];
  const ports = service.spec.ports ?? [];
  const protocolPorts = new Set<string>();
  const nodePorts = new Set<string>();
  for (const [i, port] of ports.entries()) {
    const at = index("spec.ports", i);
    if (port.nodePort) {
      if (!mayHaveNodePort(service))
        errors.push(forbiddenField(child(at, "nodePort"), "may not be used when `type` is 'ClusterIP'"));
      const key = `${port.protocol}/${port.nodePort}`;
      if (nodePorts.has(key)) errors.push(duplicate(child(at, "nodePort"), port.nodePort));
      nodePorts.add(key);
    }
    const key = `${port.protocol}/${port.port}`;
    if (protocolPorts.has(key)) errors.push(duplicate(at, { protocol: port.protocol, port: port.port }));
    protocolPorts.add(key);
  }
  return errors;
}

function validateSourceRanges(service: Service): FieldError[] {
  const { spec } = service;
  const errors: FieldError[] = [];
  const ranges = spec.loadBalancerSourceRanges ?? [];
  if (ranges.length > 0 && spec.type !== "LoadBalancer") {
    errors.push(forbiddenField("spec.LoadBalancerSourceRanges", "may only be used when `type` is 'LoadBalancer'"));
  }
  for (const range of ranges) {
    if (!parseCidr(range.trim())) {
      errors.push(
        invalidValue(
          "spec.LoadBalancerSourceRanges",
          `[${ranges.join(" ")}]`,
          "must be a list of IP ranges. For example, 10.240.0.0/24,10.250.0.0/24 ",
        ),
      );
      break;
    }
  }
  return errors;
}

function validateTrafficPolicies(service: Service): FieldError[] {
  const { spec } = service;
  const errors: FieldError[] = [];
  const external: string = spec.externalTrafficPolicy ?? "";
  if (external !== "") {
    if (!mayHaveNodePort(service)) {
      errors.push(
        invalidValue(
          "spec.externalTrafficPolicy",
          external,
          "ExternalTrafficPolicy can only be set on NodePort and LoadBalancer service",
        ),
      );
    } else if (external !== "Cluster" && external !== "Local") {
      errors.push(notSupported("spec.externalTrafficPolicy", external, ["Cluster", "Local"]));
    }
  }
  const health = spec.healthCheckNodePort;
  if (health !== undefined && health < 0) {
    errors.push(invalidValue("spec.healthCheckNodePort", health, "HealthCheckNodePort has to be non-negative"));
  } else if (health && !needsHealthCheckPort(service)) {
    errors.push(
      invalidValue(
        "spec.healthCheckNodePort",
        health,
        "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'",
      ),
    );
  }
  const internal: string | undefined = spec.internalTrafficPolicy;
  if (internal === undefined || internal === null) {
    if (spec.type !== "ExternalName") errors.push(required("spec.internalTrafficPolicy"));
  } else if (internal !== "Cluster" && internal !== "Local") {
    errors.push(notSupported("spec.internalTrafficPolicy", internal, ["Cluster", "Local"]));
  }
  return errors;
}

/** Source: pkg/apis/core/validation ValidateServiceClusterIPsRelatedFields */
function validateClusterIps(service: Service): FieldError[] {
  if (!needsClusterIp(service)) return [];
  const errors: FieldError[] = [];
  const { spec } = service;
  const ips = spec.clusterIPs ?? [];
  const families: string[] = spec.ipFamilies ?? [];
  for (const [i, family] of families.entries()) {
    if (family !== "IPv4" && family !== "IPv6") errors.push(notSupported(index("spec.ipFamilies", i), family, ["IPv4", "IPv6"]));
    else if (families.indexOf(family) < i) errors.push(duplicate(index("spec.ipFamilies", i), family));
  }
  const policy: string | undefined = spec.ipFamilyPolicy;
  if (policy !== undefined && !["SingleStack", "PreferDualStack", "RequireDualStack"].includes(policy)) {
    errors.push(notSupported("spec.ipFamilyPolicy", policy, ["SingleStack", "PreferDualStack", "RequireDualStack"]));
  }
  if (ips.length > 0 && (ips[0] ?? "") !== (spec.clusterIP ?? "")) {
    errors.push(invalidValue("spec.clusterIPs", ips, "first value must match `clusterIP`"));
  }
  if (ips.length > 1 && ips.includes("None")) {
    errors.push(invalidValue("spec.clusterIPs", ips, "'None' must be the first and only value"));
  }
  if (ips.length > 2) errors.push(invalidValue("spec.clusterIPs", ips, "may only hold up to 2 values"));
  if (errors.length > 0) return errors;
  for (const [i, ip] of ips.entries()) {
    if (ip === "None") continue;
    const at = index("spec.clusterIPs", i);
    const messages = isValidIp(ip);
    if (messages.length > 0) {
      for (const message of messages) errors.push(invalidValue(at, ip, message));
      continue;
    }
    const plain = parseIp(ip) as string;
    const family = isIPv4(plain) ? "IPv4" : "IPv6";
    if (families[i] !== undefined && families[i] !== family) {
      errors.push(invalidValue(at, ip, `expected an ${families[i]} value as indicated by \`ipFamilies[${i}]\``));
    }
  }
  if (
    ips.length === 2 &&
    errors.length === 0 &&
    isIPv4(parseIp(ips[0] as string) ?? "") === isIPv4(parseIp(ips[1] as string) ?? "")
  ) {
    errors.push(invalidValue("spec.clusterIPs", ips, "may specify no more than one IP for each IP family"));
  }
  return errors;
}

/** Source: pkg/apis/core/validation ValidateServiceUpdate */
export function validateServiceUpdate(next: Service, current: Service): FieldError[] {
  const errors: FieldError[] = [];
  if (needsClusterIp(next) && needsClusterIp(current)) {
    errors.push(...immutablePrimary(next, current));
  }
  if (current.spec.type === "LoadBalancer" && next.spec.type === "LoadBalancer") {
    errors.push(...immutableField(next.spec.loadBalancerClass, current.spec.loadBalancerClass, "spec.loadBalancerClass"));
  }
  return [...errors, ...validateService(next)];
}

/** The primary address and family never change; the secondary ones may come and go. */
function immutablePrimary(next: Service, current: Service): FieldError[] {
  const errors: FieldError[] = [];
  const [was, is] = [current.spec.clusterIPs ?? [], next.spec.clusterIPs ?? []];
  if (was.length > 0 && was[0] && is[0] !== was[0]) {
    errors.push(invalidValue("spec.clusterIPs[0]", is, "may not change once set"));
  }
  if (was.length === 2 && is.length === 2 && was[1] !== is[1] && next.spec.ipFamilyPolicy !== "SingleStack") {
    errors.push(invalidValue("spec.clusterIPs[1]", is, "may not change once set"));
  }
  const [oldFamily, family] = [current.spec.ipFamilies?.[0], next.spec.ipFamilies?.[0]];
  if (oldFamily !== undefined && family !== oldFamily) {
    errors.push(invalidValue("spec.ipFamilies[0]", next.spec.ipFamilies ?? [], "may not change once set"));
  }
  return errors;
}

import {
  addErrors,
  child,
  duplicate,
  type FieldError,
  forbiddenField,
  invalidValue,
  mapKey,
  required,
} from "@coxswain/apimachinery/objects/errors/field-error";
import type { GoText } from "@coxswain/apimachinery/objects/errors/go-syntax";
import { parseCidr } from "@coxswain/apimachinery/objects/meta/ip";
import { goStruct } from "@coxswain/apimachinery/objects/schema/go/go-print";
import type { Service, ServicePort, ServiceSpec } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import type { Steps } from "@coxswain/apimachinery/process/event-loop/steps";
import {
  checkingLabels,
  checkNonSpecialIp,
  checkPort,
  checkPortNumOrName,
  dns1123Label,
  dns1123Subdomain,
  ipProblems,
  qualifiedName,
} from "../../field-checks.ts";
import { each, eachInSteps, optionalOneOf, requiredOneOf, saying } from "../../rules.ts";
import { validateClusterIps, validateClusterIpsUpdate } from "./cluster-ip-validation.ts";
import { isHeadless, mayHaveNodePort, needsHealthCheckPort } from "./fields.ts";

const kubeletPort = 10250;
const types = ["ClusterIP", "ExternalName", "LoadBalancer", "NodePort"];
const onlyLoadBalancer = "may only be used when `type` is 'LoadBalancer'";

/** Source: pkg/apis/core/validation ValidateService */
export function* validateService(service: Service): Steps<FieldError[]> {
  const { spec } = service;
  const names = new Set<string>();
  const ports = spec.ports ?? [];
  const taken = new Set<string>();
  const errors: FieldError[] = [];
  const add = (more: readonly FieldError[]): void => addErrors(errors, more);
  if (ports.length === 0 && !isHeadless(service) && spec.type !== "ExternalName") errors.push(required("spec.ports"));
  add(validateType(service));
  add(yield* eachInSteps(ports, "spec.ports", (port, at) => validatePort(port, ports.length > 1, names, at)));
  add(yield* checkingLabels(spec.selector, "spec.selector"));
  add(validateAffinity(spec));
  yield;
  add(validateClusterIps(service));
  const checkExternal = (ip: string, at: string): FieldError[] =>
    ipProblems(ip).length > 0 ? saying(ipProblems(ip), ip, at) : checkNonSpecialIp(ip, at);
  add(yield* eachInSteps(spec.externalIPs, "spec.externalIPs", checkExternal));
  add(requiredOneOf(spec.type, types, "spec.type"));
  yield;
  add(validateNodePorts(spec));
  const checkOnce = (port: ServicePort, at: string): FieldError[] =>
    taken.size < taken.add(`${port.protocol} ${port.port}`).size ? [] : [duplicate(at, goPort(port))];
  add(yield* eachInSteps(ports, "spec.ports", checkOnce));
  yield;
  add(validateSourceRanges(service));
  add(validateLoadBalancerFields(spec));
  add(validateTrafficPolicies(service));
  return errors;
}

function validateType(service: Service): FieldError[] {
  const { spec } = service;
  const noHeadless = isHeadless(service)
    ? [invalidValue("spec.clusterIPs[0]", "None", `may not be set to 'None' for ${spec.type} services`)]
    : [];
  switch (spec.type!) {
    case "LoadBalancer": {
      const text = `may not expose port ${kubeletPort} externally since it is used by kubelet`;
      const exposed = each(spec.ports, "spec.ports", ({ port }, at) =>
        port === kubeletPort ? [invalidValue(at, port, text)] : [],
      );
      return [...exposed, ...noHeadless];
    }
    case "NodePort":
      return noHeadless;
    case "ExternalName": {
      const text = "may not be set for ExternalName services";
      const errors: FieldError[] = [];
      if (spec.clusterIPs?.length) errors.push(forbiddenField("spec.clusterIPs", text));
      if (spec.ipFamilies?.length) errors.push(forbiddenField("spec.ipFamilies", text));
      if (spec.ipFamilyPolicy !== undefined) errors.push(forbiddenField("spec.ipFamilyPolicy", text));
      const name = (spec.externalName ?? "").replace(/\.$/, "");
      return [...errors, ...(name ? dns1123Subdomain(name, "spec.externalName") : [required("spec.externalName")])];
    }
    default:
      return [];
  }
}

function validatePort(port: ServicePort, requireName: boolean, names: Set<string>, path: string): FieldError[] {
  const errors: FieldError[] = [];
  if (requireName && !port.name) errors.push(required(child(path, "name")));
  else if (port.name) {
    errors.push(...dns1123Label(port.name, child(path, "name")));
    if (names.has(port.name)) errors.push(duplicate(child(path, "name"), port.name));
    names.add(port.name);
  }
  errors.push(...checkPort(port.port, child(path, "port")));
  errors.push(...requiredOneOf(port.protocol, ["SCTP", "TCP", "UDP"], child(path, "protocol")));
  errors.push(...checkPortNumOrName(port.targetPort, child(path, "targetPort")));
  if (port.appProtocol !== undefined) errors.push(...qualifiedName(port.appProtocol, child(path, "appProtocol")));
  return errors;
}

/** The duplicate port in error texts: only the fields that are compared. */
function goPort({ protocol = "TCP", port }: ServicePort): GoText {
  return goStruct("core/v1.ServicePort", { protocol, port, targetPort: 0 });
}

const mostAffinitySeconds = 86_400;

function validateAffinity(spec: ServiceSpec): FieldError[] {
  const { sessionAffinity, sessionAffinityConfig: config } = spec;
  const path = "spec.sessionAffinityConfig";
  const errors = requiredOneOf(sessionAffinity, ["ClientIP", "None"], "spec.sessionAffinity");
  if (sessionAffinity === "None" && config)
    return [...errors, forbiddenField(path, "must not be set when session affinity is None")];
  if (sessionAffinity !== "ClientIP") return errors;
  const text = "when session affinity type is ClientIP";
  const seconds = config?.clientIP?.timeoutSeconds;
  if (!config) errors.push(required(path, text));
  else if (!config.clientIP) errors.push(required(child(path, "clientIP"), text));
  else if (seconds === undefined || seconds === null) errors.push(required(child(path, "clientIP", "timeoutSeconds"), text));
  else if (seconds <= 0 || seconds > mostAffinitySeconds) {
    const bounds = `must be greater than 0 and less than ${mostAffinitySeconds}`;
    errors.push(invalidValue(child(path, "clientIP", "timeoutSeconds"), seconds, bounds));
  }
  return errors;
}

function validateNodePorts(spec: ServiceSpec): FieldError[] {
  const text = "may not be used when `type` is 'ClusterIP'";
  const misplaced = each(spec.ports, "spec.ports", ({ nodePort }, at) =>
    nodePort && spec.type === "ClusterIP" ? [forbiddenField(child(at, "nodePort"), text)] : [],
  );
  const taken = new Set<string>();
  const clashes = each(spec.ports, "spec.ports", ({ protocol, nodePort }, at) => {
    if (!nodePort) return [];
    const key = `${protocol}/${nodePort}`;
    if (taken.has(key)) return [duplicate(child(at, "nodePort"), nodePort)];
    taken.add(key);
    return [];
  });
  return [...misplaced, ...clashes];
}

const rangesKey = "service.beta.kubernetes.io/load-balancer-source-ranges";

/** The field takes precedence over the older annotation. */
function validateSourceRanges(service: Service): FieldError[] {
  const ranges = service.spec.loadBalancerSourceRanges ?? [];
  const annotations = service.metadata.annotations ?? {};
  if (ranges.length === 0 && !Object.hasOwn(annotations, rangesKey)) return [];
  const ofField = ranges.length > 0;
  const path = ofField ? "spec.LoadBalancerSourceRanges" : mapKey("metadata.annotations", rangesKey);
  const annotation = annotations[rangesKey] ?? "";
  const list = ofField ? ranges : annotation.trim() === "" ? [] : annotation.trim().split(",");
  const errors = service.spec.type === "LoadBalancer" ? [] : [forbiddenField(path, onlyLoadBalancer)];
  if (list.some((range) => !parseCidr(range.trim()))) {
    const text = "must be a list of IP ranges. For example, 10.240.0.0/24,10.250.0.0/24 ";
    errors.push(invalidValue(path, ofField ? `[${ranges.join(" ")}]` : annotation, text));
  }
  return errors;
}

function validateLoadBalancerFields(spec: ServiceSpec): FieldError[] {
  const { allocateLoadBalancerNodePorts: allocate, loadBalancerClass: of } = spec;
  const isLoadBalancer = spec.type === "LoadBalancer";
  const errors: FieldError[] = [];
  if (allocate !== undefined && !isLoadBalancer)
    errors.push(forbiddenField("spec.allocateLoadBalancerNodePorts", onlyLoadBalancer));
  if (allocate === undefined && isLoadBalancer) errors.push(required("allocateLoadBalancerNodePorts"));
  return [...errors, ...validateClass(of, isLoadBalancer)];
}

function validateClass(of: string | undefined, isLoadBalancer: boolean): FieldError[] {
  if (of === undefined || of === null) return [];
  const path = "spec.loadBalancerClass";
  return isLoadBalancer ? qualifiedName(of, path) : [forbiddenField(path, onlyLoadBalancer)];
}

function validateTrafficPolicies(service: Service): FieldError[] {
  const { externalTrafficPolicy = "", healthCheckNodePort = 0, internalTrafficPolicy, type } = service.spec;
  const errors: FieldError[] = [];
  const [policyPath, portPath] = ["spec.externalTrafficPolicy", "spec.healthCheckNodePort"];
  if (!["", "Cluster", "Local"].includes(externalTrafficPolicy))
    errors.push(invalidValue(policyPath, externalTrafficPolicy, "ExternalTrafficPolicy must be empty, Cluster or Local"));
  if (healthCheckNodePort < 0)
    errors.push(invalidValue(portPath, healthCheckNodePort, "HealthCheckNodePort must be not less than 0"));
  if (internalTrafficPolicy === undefined || internalTrafficPolicy === null) {
    if (["NodePort", "LoadBalancer", "ClusterIP"].includes(type ?? "")) errors.push(required("spec.internalTrafficPolicy"));
  } else errors.push(...optionalOneOf(internalTrafficPolicy, ["Cluster", "Local"], "spec.internalTrafficPolicy"));
  if (!mayHaveNodePort(service) && externalTrafficPolicy !== "") {
    const text = "ExternalTrafficPolicy can only be set on NodePort and LoadBalancer service";
    errors.push(invalidValue(policyPath, externalTrafficPolicy, text));
  }
  if (!needsHealthCheckPort(service) && healthCheckNodePort !== 0) {
    const text = "HealthCheckNodePort can only be set on LoadBalancer service with ExternalTrafficPolicy=Local";
    errors.push(invalidValue(portPath, healthCheckNodePort, text));
  }
  return errors;
}

/**
 * As `validateService`. Cluster IPs, the class of a load balancer and a health check port cannot be changed once set.
 * Source: pkg/apis/core/validation ValidateServiceUpdate
 */
export function* validateServiceUpdate(next: Service, current: Service): Steps<FieldError[]> {
  const errors = validateClusterIpsUpdate(next, current);
  const [of, old] = [next.spec.loadBalancerClass, current.spec.loadBalancerClass];
  const bothBalance = next.spec.type === "LoadBalancer" && current.spec.type === "LoadBalancer";
  if (bothBalance && of !== old) errors.push(invalidValue("spec.loadBalancerClass", of ?? null, "may not change once set"));
  const [port, oldPort] = [next.spec.healthCheckNodePort, current.spec.healthCheckNodePort];
  if (needsHealthCheckPort(next) && needsHealthCheckPort(current) && port !== oldPort) {
    const text = "cannot change healthCheckNodePort on loadBalancer service with externalTraffic=Local during update";
    errors.push(invalidValue("spec.healthCheckNodePort", port ?? 0, text));
  }
  addErrors(errors, yield* validateService(next));
  return errors;
}

/**
 * A load balancer has a single protocol, unless the gate allows mixed ones or the stored service already has them.
 * Source: pkg/apis/core/validation/conditional_validation.go
 */
export function validateMixedProtocols(next: Service, current: Service | undefined, allowed: boolean): FieldError[] {
  if (allowed || next.spec.type !== "LoadBalancer" || !isMixed(next) || (current !== undefined && isMixed(current))) return [];
  const ports = goStruct("[]core/v1.ServicePort", next.spec.ports);
  return [invalidValue("spec.ports", ports, "may not contain more than 1 protocol when type is 'LoadBalancer'")];
}

function isMixed({ spec }: Service): boolean {
  return new Set((spec.ports ?? []).map(({ protocol }) => protocol)).size > 1;
}

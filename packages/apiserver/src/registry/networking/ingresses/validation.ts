import {
  addErrors,
  child,
  type FieldError,
  index,
  invalidValue,
  notSupported,
  required,
} from "@coxswain/apimachinery/objects/errors/field-error";
import { GoText } from "@coxswain/apimachinery/objects/errors/go-syntax";
import { parseIp } from "@coxswain/apimachinery/objects/meta/ip";
import type {
  HTTPIngressPath,
  Ingress,
  IngressBackend,
  IngressRule,
} from "@coxswain/apimachinery/objects/schema/kinds/networking/v1";
import type { Steps } from "@coxswain/apimachinery/process/event-loop/steps";
import {
  checkPort,
  dns1035LabelProblems,
  dns1123Subdomain,
  dns1123SubdomainProblems,
  ipProblems,
  portNameProblems,
  wildcardDns1123SubdomainProblems,
} from "../../field-checks.ts";
import { pathSegmentNameProblems } from "../../rbac/names.ts";
import { each, eachInSteps, eachWithSteps, need, saying } from "../../rules.ts";

const noRules = new GoText("[]networking.IngressRule(nil)");
const classAnnotation = "kubernetes.io/ingress.class";

/**
 * As `validateIngress`; in addition the class is not given in both annotation and field.
 * Source: pkg/apis/networking/validation/validation.go
 */
export function* validateIngressCreate(ingress: Ingress): Steps<FieldError[]> {
  const errors = yield* validateIngress(ingress);
  if (ingress.metadata.annotations?.[classAnnotation] !== undefined && ingress.spec?.ingressClassName !== undefined) {
    errors.push(
      invalidValue(
        child("annotations", classAnnotation),
        ingress.metadata.annotations[classAnnotation],
        "can not be set when the class field is also set",
      ),
    );
  }
  return errors;
}

/** @param current invalid secret names and rules of wildcard hosts are tolerated when the stored object has them */
export function* validateIngress(ingress: Ingress, current?: Ingress): Steps<FieldError[]> {
  const anySecretName = (current?.spec?.tls ?? []).some(
    ({ secretName }) => secretName && dns1123SubdomainProblems(secretName).length > 0,
  );
  yield;
  const anyWildcardRule = (current?.spec?.rules ?? []).some((rule) => isWildcard(rule) && validatePaths(rule, "").length > 0);
  const errors: FieldError[] = [];
  const spec = ingress.spec ?? {};
  if (!spec.rules?.length && !spec.defaultBackend)
    errors.push(invalidValue("spec", noRules, "either `defaultBackend` or `rules` must be specified"));
  if (spec.defaultBackend) errors.push(...validateBackend(spec.defaultBackend, "spec.defaultBackend"));
  const checkRule = (rule: IngressRule, at: string): FieldError[] => [
    ...(rule.host ? validateHost(rule.host, child(at, "host")) : []),
    ...(anyWildcardRule && isWildcard(rule) ? [] : validatePaths(rule, at)),
  ];
  addErrors(errors, yield* eachInSteps(spec.rules, "spec.rules", checkRule));
  const ofTls = yield* eachWithSteps(spec.tls, "spec.tls", function* (tls, path) {
    const faults = yield* eachInSteps(tls.hosts, child(path, "hosts"), (host, at) => {
      const messages = host.includes("*") ? wildcardDns1123SubdomainProblems(host) : dns1123SubdomainProblems(host);
      return saying(messages, host, at);
    });
    if (tls.secretName && !anySecretName) faults.push(...dns1123Subdomain(tls.secretName, child(path, "secretName")));
    return faults;
  });
  addErrors(errors, ofTls);
  if (spec.ingressClassName !== undefined) errors.push(...dns1123Subdomain(spec.ingressClassName, "spec.ingressClassName"));
  return errors;
}

function isWildcard({ host }: IngressRule): boolean {
  return host?.includes("*") ?? false;
}

function validatePaths({ http }: IngressRule, at: string): FieldError[] {
  if (!http) return [];
  const path = child(at, "http", "paths");
  return [...need(http.paths, path), ...each(http.paths, path, validatePath)];
}

function validateHost(host: string, path: string): FieldError[] {
  const address = parseIp(host) === undefined ? [] : [invalidValue(path, host, "must be a DNS name, not an IP address")];
  const messages = host.includes("*") ? wildcardDns1123SubdomainProblems(host) : dns1123SubdomainProblems(host);
  return [...address, ...saying(messages, host, path)];
}

const invalidSequences = ["//", "/./", "/../", "%2f", "%2F"];
const invalidSuffixes = ["/..", "/."];

function validatePath(path: HTTPIngressPath, at: string): FieldError[] {
  const errors: FieldError[] = [];
  const type: string | undefined = path.pathType;
  const text = path.path ?? "";
  if (type === undefined) return [required(child(at, "pathType"), "pathType must be specified")];
  if (type === "Exact" || type === "Prefix") {
    if (!text.startsWith("/")) errors.push(invalidValue(child(at, "path"), text, "must be an absolute path"));
    if (text !== "") {
      for (const sequence of invalidSequences) {
        if (text.includes(sequence)) errors.push(invalidValue(child(at, "path"), text, `must not contain '${sequence}'`));
      }
      for (const suffix of invalidSuffixes) {
        if (text.endsWith(suffix)) errors.push(invalidValue(child(at, "path"), text, `cannot end with '${suffix}'`));
      }
    }
  } else if (type === "ImplementationSpecific") {
    if (text !== "" && !text.startsWith("/")) errors.push(invalidValue(child(at, "path"), text, "must be an absolute path"));
  } else {
    errors.push(notSupported(child(at, "pathType"), type, ["Exact", "ImplementationSpecific", "Prefix"]));
  }
  errors.push(...validateBackend(path.backend ?? {}, child(at, "backend")));
  return errors;
}

function validateBackend(backend: IngressBackend, path: string): FieldError[] {
  const errors: FieldError[] = [];
  const { resource, service } = backend;
  if (resource && service) return [invalidValue(path, "", "cannot set both resource and service backends")];
  if (resource) {
    return validateObjectReference(resource, child(path, "resource"));
  }
  if (!service) return [invalidValue(path, "", "resource or service backend is required")];
  if (!service.name) errors.push(required(child(path, "service.name"), ""));
  else
    for (const message of dns1035LabelProblems(service.name))
      errors.push(invalidValue(child(path, "service.name"), service.name, message));
  const { name = "", number = 0 } = service.port ?? {};
  if (name !== "" && number !== 0) {
    errors.push(invalidValue(path, "", "cannot set both port name & port number"));
  } else if (name !== "") {
    for (const message of portNameProblems(name)) errors.push(invalidValue(child(path, "service.port.name"), name, message));
  } else if (number !== 0) {
    errors.push(...checkPort(number, child(path, "service.port.number")));
  } else {
    errors.push(required(path, "port name or number is required"));
  }
  return errors;
}

/** A reference to an object of any kind. Source: validateIngressTypedLocalObjectReference */
export function validateObjectReference(
  reference: { apiGroup?: string; kind?: string; name?: string },
  path: string,
): FieldError[] {
  const { apiGroup } = reference;
  const errors = apiGroup === undefined || apiGroup === null ? [] : dns1123Subdomain(apiGroup, child(path, "apiGroup"));
  for (const field of ["kind", "name"] as const) {
    const value = reference[field];
    const at = child(path, field);
    errors.push(...(value ? saying(pathSegmentNameProblems(value), value, at) : [required(at, `${field} is required`)]));
  }
  return errors;
}

export function validateIngressStatus(ingress: Ingress): FieldError[] {
  return validateLoadBalancer(ingress.status?.loadBalancer);
}

interface LoadBalancer {
  ingress?: { ip?: string; hostname?: string }[];
}

/** Shared with services. Source: pkg/apis/core/validation ValidateLoadBalancerStatus */
export function validateLoadBalancer(status: LoadBalancer | undefined): FieldError[] {
  const errors: FieldError[] = [];
  for (const [i, { ip, hostname }] of (status?.ingress ?? []).entries()) {
    const at = index("status.loadBalancer.ingress", i);
    if (ip && ipProblems(ip).length > 0) errors.push(invalidValue(child(at, "ip"), ip, "must be a valid IP address"));
    if (hostname) {
      for (const message of dns1123SubdomainProblems(hostname))
        errors.push(invalidValue(child(at, "hostname"), hostname, message));
      if (parseIp(hostname) !== undefined)
        errors.push(invalidValue(child(at, "hostname"), hostname, "must be a DNS name, not an IP address"));
    }
  }
  return errors;
}

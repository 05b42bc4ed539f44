import type { FieldError } from "@coxswain/apimachinery/errors/field-error";
import { forbiddenField, invalidValue, notSupported, required } from "@coxswain/apimachinery/errors/field-error";
import { child, index } from "@coxswain/apimachinery/errors/field-path";
import type { Pod, PodDNSConfig, PodSpec } from "@coxswain/apimachinery/schema/kinds/core/v1";
import {
  checkLabels,
  dns1123Label,
  dns1123Subdomain,
  isDns1123Subdomain,
  isValidIp,
  oneOf,
  qualifiedName,
} from "../../../field-checks.ts";
import { validateAffinity, validateTolerations, validateTopologySpread } from "./affinity.ts";
import { validateContainers, validateEphemeralContainers, validateInitContainers } from "./containers.ts";
import type { PodValidationOptions } from "./options.ts";
import { checkQuantity, checkResourceName } from "./resources.ts";
import { validatePodSecurityContext } from "./security-context.ts";
import { validateVolumes } from "./volumes.ts";

/** Source: pkg/apis/core/validation ValidatePodCreate, ValidatePodSpec */
export function validatePod(pod: Pod, options: PodValidationOptions): FieldError[] {
  const errors = validatePodCommon(pod, options);
  if ((pod.spec.ephemeralContainers ?? []).length > 0) {
    errors.push(forbiddenField("spec.ephemeralContainers", "cannot be set on create"));
  }
  return errors;
}

export function validatePodCommon(pod: Pod, options: PodValidationOptions): FieldError[] {
  const errors = validatePodAnnotations(pod, "metadata.annotations");
  errors.push(...validatePodSpec(pod.spec, "spec", options, pod.metadata.name ?? ""));
  return errors;
}

const mirrorAnnotation = "kubernetes.io/config.mirror";

function validatePodAnnotations(pod: Pod, path: string): FieldError[] {
  const errors: FieldError[] = [];
  if (pod.metadata.annotations?.[mirrorAnnotation] !== undefined && !pod.spec.nodeName) {
    errors.push(invalidValue(child(path, mirrorAnnotation), "", "must set spec.nodeName if mirror pod annotation is set"));
  }
  return errors;
}

/** @param podName for the names of claims that ephemeral volumes make; `""` in templates. */
export function validatePodSpec(spec: PodSpec, path: string, options: PodValidationOptions, podName = ""): FieldError[] {
  const errors: FieldError[] = [];
  const volumes = validateVolumes(spec.volumes ?? [], child(path, "volumes"), podName);
  errors.push(...volumes.errors);
  errors.push(...validateContainers(spec, volumes.names, path, options));
  errors.push(...validateInitContainers(spec, volumes.names, path, options));
  errors.push(...validateEphemeralContainers(spec, volumes.names, path, options));
  errors.push(...oneOf(spec.restartPolicy, ["Always", "OnFailure", "Never"], child(path, "restartPolicy")));
  errors.push(...validateDnsPolicy(spec, path));
  errors.push(...checkLabels(spec.nodeSelector, child(path, "nodeSelector")));
  errors.push(...validatePodSecurityContext(spec.securityContext, spec, child(path, "securityContext")));
  for (const [i, secret] of (spec.imagePullSecrets ?? []).entries()) {
    if (secret.name === undefined) errors.push(required(child(index(child(path, "imagePullSecrets"), i), "name")));
  }
  errors.push(...validateAffinity(spec.affinity, child(path, "affinity")));
  errors.push(...validateDnsConfig(spec.dnsConfig, spec.dnsPolicy, child(path, "dnsConfig"), options));
  for (const [i, gate] of (spec.readinessGates ?? []).entries()) {
    errors.push(...qualifiedName(gate.conditionType ?? "", child(index(child(path, "readinessGates"), i), "conditionType")));
  }
  errors.push(...validateTopologySpread(spec.topologySpreadConstraints ?? [], child(path, "topologySpreadConstraints")));
  if (spec.serviceAccountName) errors.push(...dns1123Subdomain(spec.serviceAccountName, child(path, "serviceAccountName")));
  if (spec.nodeName)
    for (const message of isDns1123Subdomain(spec.nodeName))
      errors.push(invalidValue(child(path, "nodeName"), spec.nodeName, message));
  const deadline = spec.activeDeadlineSeconds;
  if (deadline !== undefined && deadline !== null && (deadline < 1 || deadline > 2 ** 31 - 1)) {
    errors.push(invalidValue(child(path, "activeDeadlineSeconds"), deadline, "must be between 1 and 2147483647, inclusive"));
  }
  if (spec.hostname) errors.push(...dns1123Label(spec.hostname, child(path, "hostname")));
  if (spec.subdomain) errors.push(...dns1123Label(spec.subdomain, child(path, "subdomain")));
  errors.push(...validateTolerations(spec.tolerations ?? [], child(path, "tolerations")));
  for (const [i, alias] of (spec.hostAliases ?? []).entries()) {
    const at = index(child(path, "hostAliases"), i);
    if (isValidIp(alias.ip ?? "").length > 0)
      errors.push(invalidValue(child(at, "ip"), alias.ip ?? "", "must be valid IP address"));
    for (const name of alias.hostnames ?? []) errors.push(...dns1123Subdomain(name, child(at, "hostnames")));
  }
  if (spec.priorityClassName) errors.push(...dns1123Subdomain(spec.priorityClassName, child(path, "priorityClassName")));
  if (spec.runtimeClassName !== undefined && spec.runtimeClassName !== null) {
    errors.push(...dns1123Subdomain(spec.runtimeClassName, child(path, "runtimeClassName")));
  }
  const preemption: string | undefined = spec.preemptionPolicy;
  if (preemption !== undefined && preemption !== null)
    errors.push(...oneOf(preemption, ["PreemptLowerPriority", "Never"], child(path, "preemptionPolicy")));
  for (const [name, value] of Object.entries(spec.overhead ?? {})) {
    const at = `${child(path, "overhead")}[${name}]`;
    errors.push(...checkResourceName(name, at), ...checkQuantity(name, value, at));
  }
  if (spec.os) errors.push(...validateOs(spec, path));
  return errors;
}

/** What templates and pods share besides. */
export function validateDnsPolicy(spec: PodSpec, path: string): FieldError[] {
  const policy: string = spec.dnsPolicy ?? "";
  if (policy === "") return [required(child(path, "dnsPolicy"))];
  const known = ["ClusterFirst", "ClusterFirstWithHostNet", "Default", "None"];
  return known.includes(policy) ? [] : [notSupported(child(path, "dnsPolicy"), policy, known)];
}

function validateDnsConfig(
  config: PodDNSConfig | undefined | null,
  policy: string | undefined,
  path: string,
  options: PodValidationOptions,
): FieldError[] {
  const errors: FieldError[] = [];
  if (policy === "None") {
    if (!config) return [required(path, `must provide \`dnsConfig\` when \`dnsPolicy\` is None`)];
    if (!config.nameservers?.length)
      return [required(child(path, "nameservers"), "must provide at least one DNS nameserver when `dnsPolicy` is None")];
  }
  if (!config) return errors;
  const nameservers = config.nameservers ?? [];
  if (nameservers.length > 3)
    errors.push(invalidValue(child(path, "nameservers"), nameservers, "must not have more than 3 nameservers"));
  for (const [i, server] of nameservers.entries()) {
    if (isValidIp(server).length > 0)
      errors.push(invalidValue(index(child(path, "nameservers"), i), server, "must be valid IP address"));
  }
  const expanded = options.featureEnabled("ExpandedDNSConfig");
  const [mostSearches, mostCharacters] = expanded ? [32, 2048] : [6, 256];
  const searches = config.searches ?? [];
  if (searches.length > mostSearches)
    errors.push(invalidValue(child(path, "searches"), searches, `must not have more than ${mostSearches} search paths`));
  if (searches.join(" ").length > mostCharacters) {
    errors.push(
      invalidValue(
        child(path, "searches"),
        searches,
        `must not have more than ${mostCharacters} characters (including spaces) in the search list`,
      ),
    );
  }
  for (const [i, search] of searches.entries()) {
    const plain = search.endsWith(".") ? search.slice(0, -1) : search;
    for (const message of isDns1123Subdomain(plain)) errors.push(invalidValue(index(child(path, "searches"), i), plain, message));
  }
  for (const [i, option] of (config.options ?? []).entries()) {
    if (!option.name) errors.push(required(index(child(path, "options"), i), "must not be empty"));
  }
  return errors;
}

function validateOs(spec: PodSpec, path: string): FieldError[] {
  const name: string = spec.os?.name ?? "";
  const at = child(path, "os");
  if (name === "") return [required(child(at, "name"), "cannot be empty")];
  return name === "linux" || name === "windows" ? [] : [notSupported(at, name, ["linux", "windows"])];
}

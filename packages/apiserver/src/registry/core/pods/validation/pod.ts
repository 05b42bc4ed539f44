import {
  addErrors,
  child,
  type FieldError,
  forbiddenField,
  index,
  invalidValue,
  notSupported,
  required,
} from "@coxswain/apimachinery/objects/errors/field-error";
import { parseIp } from "@coxswain/apimachinery/objects/meta/ip";
import type { HostAlias, Pod, PodDNSConfig, PodSpec } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { checkLabels, dns1123Label, dns1123Subdomain, dns1123SubdomainProblems, qualifiedName } from "../../../field-checks.ts";
import { each, requiredOneOf, within } from "../../../rules.ts";
import { validateAffinity, validateTolerations, validateTopologySpread } from "./affinity.ts";
import { seccompFieldsMatchAnnotations, validatePodAnnotations } from "./annotations.ts";
import { validateContainers, validateEphemeralContainers, validateInitContainers, withoutSpaces } from "./containers.ts";
import type { PodValidationOptions } from "./options.ts";
import { validateResourceRequirements } from "./resources.ts";
import { validatePodSecurityContext } from "./security-context.ts";
import { validateVolumes } from "./volumes.ts";
import { validateForLinux, validateForWindows, validateHostProcess } from "./windows-options.ts";

/**
 * A new pod, which must not have ephemeral containers. For updates see `validatePodUpdate`.
 * Source: pkg/apis/core/validation ValidatePodCreate
 */
export function validatePod(pod: Pod, options: PodValidationOptions): FieldError[] {
  const errors = validatePodCommon(pod, options);
  if ((pod.spec.ephemeralContainers ?? []).length > 0)
    errors.push(forbiddenField("spec.ephemeralContainers", "cannot be set on create"));
  return [...errors, ...seccompFieldsMatchAnnotations(pod.metadata.annotations, pod.spec, "spec")];
}

/** Rules for pods, on create and update, that do not apply to templates. Source: validatePodMetadataAndSpec */
export function validatePodCommon(pod: Pod, options: PodValidationOptions): FieldError[] {
  const { spec } = pod;
  const errors = validatePodAnnotations(pod.metadata.annotations, spec, "metadata.annotations", options);
  addErrors(errors, validatePodSpec(spec, "spec", options, pod.metadata.name ?? ""));
  if (!spec.serviceAccountName) {
    for (const [i, volume] of (spec.volumes ?? []).entries()) {
      for (const [j, source] of (volume.projected?.sources ?? []).entries()) {
        const at = `spec.volumes[${i}].projected.sources[${j}].serviceAccountToken`;
        const text = "must not be specified when serviceAccountName is not set";
        if (source.serviceAccountToken) errors.push(forbiddenField(at, text));
      }
    }
  }
  return [
    ...errors,
    ...withoutSpaces(spec.containers, "spec.containers"),
    ...withoutSpaces(spec.initContainers, "spec.initContainers"),
  ];
}

const restartPolicies = ["Always", "OnFailure", "Never"];
const dnsPolicies = ["ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"];
const preemptionPolicies = ["PreemptLowerPriority", "Never"];

/** @param podName for the claim names of ephemeral volumes; `""` in templates. Source: ValidatePodSpec */
export function validatePodSpec(spec: PodSpec, path: string, options: PodValidationOptions, podName = ""): FieldError[] {
  const volumes = validateVolumes(spec.volumes ?? [], child(path, "volumes"), podName, options);
  const { names } = volumes;
  return [
    ...volumes.errors,
    ...validateContainers(spec.containers ?? [], names, child(path, "containers"), options),
    ...validateInitContainers(spec, names, child(path, "initContainers"), options),
    ...validateEphemeralContainers(spec, names, child(path, "ephemeralContainers"), options),
    ...requiredOneOf(spec.restartPolicy, restartPolicies, child(path, "restartPolicy")),
    ...requiredOneOf(spec.dnsPolicy, dnsPolicies, child(path, "dnsPolicy")),
    ...checkLabels(spec.nodeSelector, child(path, "nodeSelector")),
    ...validatePodSecurityContext(spec, path),
    ...validateAffinity(spec.affinity, child(path, "affinity")),
    ...validateDnsConfig(spec.dnsConfig, spec.dnsPolicy, child(path, "dnsConfig"), options),
    ...each(spec.readinessGates, child(path, "readinessGates"), (gate, at) =>
      qualifiedName(gate.conditionType ?? "", child(at, "conditionType")),
    ),
    ...validateTopologySpread(spec.topologySpreadConstraints ?? [], child(path, "topologySpreadConstraints")),
    ...validateHostProcess(spec, path, options),
    ...optionalName(spec.serviceAccountName, child(path, "serviceAccountName")),
    ...optionalName(spec.nodeName, child(path, "nodeName")),
    ...within(spec.activeDeadlineSeconds, 1, 2 ** 31 - 1, child(path, "activeDeadlineSeconds")),
    ...(spec.hostname ? dns1123Label(spec.hostname, child(path, "hostname")) : []),
    ...(spec.subdomain ? dns1123Label(spec.subdomain, child(path, "subdomain")) : []),
    ...validateTolerations(spec.tolerations ?? [], child(path, "tolerations")),
    ...(spec.hostAliases ?? []).flatMap((alias) => validateHostAlias(alias, child(path, "hostAliases"))),
    ...optionalName(spec.priorityClassName, child(path, "priorityClassName")),
    ...(isSet(spec.runtimeClassName) ? dns1123Subdomain(spec.runtimeClassName, child(path, "runtimeClassName")) : []),
    ...(isSet(spec.preemptionPolicy)
      ? requiredOneOf(spec.preemptionPolicy, preemptionPolicies, child(path, "preemptionPolicy"))
      : []),
    ...(spec.overhead ? validateResourceRequirements({ limits: spec.overhead }, child(path, "overhead"), options) : []),
    ...(spec.os ? validateOs(spec, path, options) : []),
  ];
}

function isSet<T>(value: T | undefined | null): value is T {
  return value !== undefined && value !== null;
}

function optionalName(name: string | undefined, path: string): FieldError[] {
  return name ? dns1123Subdomain(name, path) : [];
}

/** Error paths lack the index, like upstream's. */
function validateHostAlias(alias: HostAlias, path: string): FieldError[] {
  const errors: FieldError[] = [];
  if (parseIp(alias.ip ?? "") === undefined)
    errors.push(invalidValue(child(path, "ip"), alias.ip ?? "", "must be valid IP address"));
  for (const name of alias.hostnames ?? []) errors.push(...dns1123Subdomain(name, child(path, "hostnames")));
  return errors;
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
    if (parseIp(server) === undefined)
      errors.push(invalidValue(index(child(path, "nameservers"), i), server, "must be valid IP address"));
  }
  const [mostSearches, mostCharacters] = options.longDnsConfig ? [32, 2048] : [6, 256];
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
    for (const message of dns1123SubdomainProblems(plain))
      errors.push(invalidValue(index(child(path, "searches"), i), plain, message));
  }
  for (const [i, option] of (config.options ?? []).entries()) {
    if (!option.name) errors.push(required(index(child(path, "options"), i), "must not be empty"));
  }
  return errors;
}

function validateOs(spec: PodSpec, path: string, options: PodValidationOptions): FieldError[] {
  const name: string = spec.os?.name ?? "";
  const at = child(path, "os");
  if (!options.os) return [forbiddenField(at, "cannot be set when IdentifyPodOS feature is not enabled")];
  if (name === "") return [required(child(at, "name"), "cannot be empty")];
  if (name === "linux") return validateForLinux(spec, path);
  return name === "windows" ? validateForWindows(spec, path) : [notSupported(at, name, ["linux", "windows"])];
}

import {
  addErrors,
  child,
  type FieldError,
  forbiddenField,
  invalidValue,
  notSupported,
  required,
} from "@coxswain/apimachinery/objects/errors/field-error";
import { semanticEqual } from "@coxswain/apimachinery/objects/meta/deep-equal";
import { parseIp } from "@coxswain/apimachinery/objects/meta/ip";
import type {
  HostAlias,
  Pod,
  PodDNSConfig,
  PodDNSConfigOption,
  PodReadinessGate,
  PodSpec,
  Volume,
} from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import type { Steps } from "@coxswain/apimachinery/process/event-loop/steps";
import { checkingLabels, dns1123Label, dns1123Subdomain, qualifiedName } from "../../../field-checks.ts";
import { eachInSteps, eachWithSteps, requiredOneOf, within } from "../../../rules.ts";
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
export function* validatePod(pod: Pod, options: PodValidationOptions): Steps<FieldError[]> {
  const errors = yield* validatePodCommon(pod, options);
  if ((pod.spec.ephemeralContainers ?? []).length > 0)
    errors.push(forbiddenField("spec.ephemeralContainers", "cannot be set on create"));
  addErrors(errors, seccompFieldsMatchAnnotations(pod.metadata.annotations, pod.spec, "spec"));
  return errors;
}

/** Rules for pods, on create and update, that do not apply to templates. Source: validatePodMetadataAndSpec */
export function* validatePodCommon(pod: Pod, options: PodValidationOptions): Steps<FieldError[]> {
  const { spec } = pod;
  const errors = yield* validatePodAnnotations(pod.metadata.annotations, spec, "metadata.annotations", options);
  addErrors(errors, yield* validatePodSpec(spec, "spec", options, pod.metadata.name ?? ""));
  if (!spec.serviceAccountName) addErrors(errors, yield* eachWithSteps(spec.volumes, "spec.volumes", withoutAccountTokens));
  addErrors(errors, yield* withoutSpaces(spec.containers, "spec.containers"));
  addErrors(errors, yield* withoutSpaces(spec.initContainers, "spec.initContainers"));
  return errors;
}

function withoutAccountTokens({ projected }: Volume, path: string): Steps<FieldError[]> {
  const text = "must not be specified when serviceAccountName is not set";
  return eachInSteps(projected?.sources, child(path, "projected", "sources"), ({ serviceAccountToken }, at) =>
    serviceAccountToken ? [forbiddenField(child(at, "serviceAccountToken"), text)] : [],
  );
}

const restartPolicies = ["Always", "OnFailure", "Never"];
const dnsPolicies = ["ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"];
const preemptionPolicies = ["PreemptLowerPriority", "Never"];

/** @param podName for the claim names of ephemeral volumes; `""` in templates. Source: ValidatePodSpec */
export function* validatePodSpec(spec: PodSpec, path: string, options: PodValidationOptions, podName = ""): Steps<FieldError[]> {
  const { names, errors } = yield* validateVolumes(spec.volumes ?? [], child(path, "volumes"), podName, options);
  const add = (more: readonly FieldError[]): void => addErrors(errors, more);
  add(yield* validateContainers(spec.containers ?? [], names, child(path, "containers"), options));
  add(yield* validateInitContainers(spec, names, child(path, "initContainers"), options));
  add(yield* validateEphemeralContainers(spec, names, child(path, "ephemeralContainers"), options));
  add(requiredOneOf(spec.restartPolicy, restartPolicies, child(path, "restartPolicy")));
  add(requiredOneOf(spec.dnsPolicy, dnsPolicies, child(path, "dnsPolicy")));
  yield;
  add(yield* checkingLabels(spec.nodeSelector, child(path, "nodeSelector")));
  add(yield* validatePodSecurityContext(spec, path));
  add(yield* validateAffinity(spec.affinity, child(path, "affinity")));
  add(yield* validateDnsConfig(spec.dnsConfig, spec.dnsPolicy, child(path, "dnsConfig"), options));
  const gates = child(path, "readinessGates");
  const checkGate = ({ conditionType = "" }: PodReadinessGate, at: string): FieldError[] =>
    qualifiedName(conditionType, child(at, "conditionType"));
  add(yield* eachInSteps(spec.readinessGates, gates, checkGate));
  add(yield* validateTopologySpread(spec.topologySpreadConstraints ?? [], child(path, "topologySpreadConstraints")));
  yield;
  add(validateHostProcess(spec, path, options));
  add(optionalName(spec.serviceAccountName, child(path, "serviceAccountName")));
  add(optionalName(spec.nodeName, child(path, "nodeName")));
  add(within(spec.activeDeadlineSeconds, 1, 2 ** 31 - 1, child(path, "activeDeadlineSeconds")));
  if (spec.hostname) add(dns1123Label(spec.hostname, child(path, "hostname")));
  if (spec.subdomain) add(dns1123Label(spec.subdomain, child(path, "subdomain")));
  add(yield* validateTolerations(spec.tolerations ?? [], child(path, "tolerations")));
  const aliases = child(path, "hostAliases"); // without the index, like upstream's
  add(yield* eachWithSteps(spec.hostAliases, aliases, (alias) => validateHostAlias(alias, aliases)));
  add(optionalName(spec.priorityClassName, child(path, "priorityClassName")));
  if (isSet(spec.runtimeClassName)) add(dns1123Subdomain(spec.runtimeClassName, child(path, "runtimeClassName")));
  if (isSet(spec.preemptionPolicy))
    add(requiredOneOf(spec.preemptionPolicy, preemptionPolicies, child(path, "preemptionPolicy")));
  if (spec.overhead) add(yield* validateResourceRequirements({ limits: spec.overhead }, child(path, "overhead"), options));
  if (spec.os) add(validateOs(spec, path, options));
  return errors;
}

function isSet<T>(value: T | undefined | null): value is T {
  return value !== undefined && value !== null;
}

function optionalName(name: string | undefined, path: string): FieldError[] {
  return name ? dns1123Subdomain(name, path) : [];
}

function* validateHostAlias(alias: HostAlias, path: string): Steps<FieldError[]> {
  const errors: FieldError[] = [];
  if (parseIp(alias.ip ?? "") === undefined)
    errors.push(invalidValue(child(path, "ip"), alias.ip ?? "", "must be valid IP address"));
  const at = child(path, "hostnames");
  addErrors(errors, yield* eachInSteps(alias.hostnames, at, (name) => dns1123Subdomain(name, at)));
  return errors;
}

function* validateDnsConfig(
  config: PodDNSConfig | undefined | null,
  policy: string | undefined,
  path: string,
  options: PodValidationOptions,
): Steps<FieldError[]> {
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
  const checkServer = (server: string, at: string): FieldError[] =>
    parseIp(server) === undefined ? [invalidValue(at, server, "must be valid IP address")] : [];
  addErrors(errors, yield* eachInSteps(nameservers, child(path, "nameservers"), checkServer));
  const searches = config.searches ?? [];
  const mayBeLong = options.longDnsConfig || semanticEqual(searches, options.longSearches);
  const [mostSearches, mostCharacters] = mayBeLong ? [32, 2048] : [6, 256];
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
  const checkSearch = (search: string, at: string): FieldError[] =>
    dns1123Subdomain(search.endsWith(".") ? search.slice(0, -1) : search, at);
  addErrors(errors, yield* eachInSteps(searches, child(path, "searches"), checkSearch));
  const checkOption = ({ name }: PodDNSConfigOption, at: string): FieldError[] =>
    name ? [] : [required(at, "must not be empty")];
  addErrors(errors, yield* eachInSteps(config.options, child(path, "options"), checkOption));
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

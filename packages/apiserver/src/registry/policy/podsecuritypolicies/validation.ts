import {
  child,
  duplicate,
  type FieldError,
  index,
  invalidValue,
  mapKey,
  notSupported,
  required,
} from "@coxswain/apimachinery/objects/errors/field-error";
import { GoText, goStrings } from "@coxswain/apimachinery/objects/errors/go-syntax";
import { goQuote } from "@coxswain/apimachinery/objects/meta/go-quote";
import { goStruct } from "@coxswain/apimachinery/objects/schema/go/go-print";
import type {
  AllowedHostPath,
  IDRange,
  PodSecurityPolicy,
  PodSecurityPolicySpec,
  RunAsGroupStrategyOptions,
  RuntimeClassStrategyOptions,
} from "@coxswain/apimachinery/objects/schema/kinds/policy/v1beta1";
import type { Steps } from "@coxswain/apimachinery/process/event-loop/steps";
import { checkSeccompName, isAppArmorProfile } from "../../core/pods/validation/annotations.ts";
import { checkDriverName } from "../../core/pods/validation/volume-sources.ts";
import { dns1123Subdomain } from "../../field-checks.ts";
import { each, eachInSteps, emptyStruct, optionalOneOf } from "../../rules.ts";
import { validateSysctls } from "./sysctls.ts";
import volumeTypes from "./volume-types.json" with { type: "json" };

/** Source: pkg/apis/policy/validation ValidatePodSecurityPolicy */
export function* validatePodSecurityPolicy(policy: PodSecurityPolicy): Steps<FieldError[]> {
  const annotations = policy.metadata.annotations ?? {};
  return [
    ...validateAnnotations(annotations, "metadata.annotations"),
    ...(yield* validateSpec(policy.spec ?? emptyStruct(), "spec")),
  ];
}

const appArmor = "apparmor.security.beta.kubernetes.io";
const seccomp = "seccomp.security.alpha.kubernetes.io";

/** Annotations with default and allowed AppArmor and seccomp profiles. */
function validateAnnotations(annotations: Readonly<Record<string, string>>, path: string): FieldError[] {
  const errors: FieldError[] = [];
  const listed = (key: string, one: boolean, check: (profile: string, at: string, all: string) => FieldError[]): void => {
    const value = Object.hasOwn(annotations, key) ? annotations[key] : "";
    if (!value) return;
    for (const profile of one ? [value] : value.split(",")) errors.push(...check(profile, mapKey(path, key), value));
  };
  const armor = (profile: string, at: string, all: string): FieldError[] =>
    isAppArmorProfile(profile) ? [] : [invalidValue(at, all, `invalid AppArmor profile name: ${JSON.stringify(profile)}`)];
  listed(`${appArmor}/defaultProfileName`, true, armor);
  listed(`${appArmor}/allowedProfileNames`, false, armor);
  listed(`${seccomp}/defaultProfileName`, true, checkSeccompName);
  listed(`${seccomp}/allowedProfileNames`, false, (profile, at) => (profile === "*" ? [] : checkSeccompName(profile, at)));
  return errors;
}

const groupRules = ["MayRunAs", "MustRunAs", "RunAsAny"];
/** Valid rules of each strategy, in validation order. */
const strategies = {
  runAsUser: ["MustRunAs", "MustRunAsNonRoot", "RunAsAny"],
  runAsGroup: ["MustRunAs", "RunAsAny", "MayRunAs"],
  seLinux: ["MustRunAs", "RunAsAny"],
  supplementalGroups: groupRules,
  fsGroup: groupRules,
} as const;

function* validateSpec(spec: PodSecurityPolicySpec, path: string): Steps<FieldError[]> {
  const drops: readonly string[] = spec.requiredDropCapabilities ?? [];
  const wildcard = "must be empty when all capabilities are allowed by a wildcard";
  const escalation = "Cannot set DefaultAllowPrivilegeEscalation to true without also setting AllowPrivilegeEscalation to true";
  return [
    ...validateStrategies(spec, path),
    ...(spec.volumes ?? []).flatMap((type) => optionalOneOf(type, volumeTypes, child(path, "volumes"))),
    ...(drops.length > 0 && spec.allowedCapabilities?.includes("*")
      ? [invalidValue("requiredDropCapabilities", goStrings("core.Capability", drops), wildcard)]
      : []),
    ...notDropped(spec.defaultAddCapabilities, drops, "defaultAddCapabilities"),
    ...notDropped(spec.allowedCapabilities, drops, "allowedCapabilities"),
    ...(spec.defaultAllowPrivilegeEscalation && spec.allowPrivilegeEscalation === false
      ? [invalidValue(child(path, "defaultAllowPrivilegeEscalation"), true, escalation)]
      : []),
    ...each(spec.allowedProcMountTypes, child(path, "allowedProcMountTypes"), (type, at) =>
      optionalOneOf(type, ["Default", "Unmasked"], at),
    ),
    ...validateHostPaths(spec.allowedHostPaths ?? [], child(path, "allowedHostPaths")),
    // The doubled name in the path is upstream's.
    ...each(spec.allowedFlexVolumes, child(path, "allowedFlexVolumes", "allowedFlexVolumes"), ({ driver }, at) =>
      driver ? [] : [required(child(at, "driver"), "must specify a driver")],
    ),
    ...each(spec.allowedCSIDrivers, child(path, "allowedCSIDrivers", "allowedCSIDriver"), ({ name = "" }, at) =>
      checkDriverName(name, child(at, "name")),
    ),
    ...validateSysctls(spec, path),
    ...(yield* validateRuntimeClass(spec.runtimeClass, child(path, "runtimeClass"))),
  ];
}

/** Paths after an empty one are not checked, like upstream. */
function validateHostPaths(paths: readonly AllowedHostPath[], path: string): FieldError[] {
  const end = paths.findIndex(({ pathPrefix }) => !pathPrefix);
  return [
    ...each(end < 0 ? paths : paths.slice(0, end), path, ({ pathPrefix }, at) =>
      pathPrefix?.split("/").includes("..") ? [invalidValue(at, pathPrefix, "must not contain '..'")] : [],
    ),
    ...(end < 0 ? [] : [required(index(path, end), "is required")]),
  ];
}

function validateStrategies(spec: PodSecurityPolicySpec, path: string): FieldError[] {
  return Object.entries(strategies).flatMap(([field, rules]) => {
    // Cast: `strategies` has no other fields; the strategies of the others have no ranges.
    const strategy = spec[field as keyof typeof strategies] as RunAsGroupStrategyOptions | undefined;
    if (!strategy && field === "runAsGroup") return [];
    const at = child(path, field);
    const rule: string = strategy?.rule ?? "";
    // Cast: `includes` takes only members of the list.
    const errors = rules.includes(rule as never) ? [] : [notSupported(child(at, "rule"), rule, rules)];
    const ranges = strategy?.ranges ?? [];
    if (field === "runAsGroup") {
      if (rule === "RunAsAny" && ranges.length > 0)
        errors.push(invalidValue(child(at, "ranges"), goStruct("[]policy/v1beta1.IDRange", ranges), "Ranges must be empty"));
      if ((rule === "MustRunAs" || rule === "MayRunAs") && ranges.length === 0)
        errors.push(invalidValue(child(at, "ranges"), new GoText("[]policy.IDRange(nil)"), "must provide at least one range"));
    }
    return [...errors, ...each(ranges, child(at, "ranges"), validateRange)];
  });
}

function validateRange({ min = 0, max = 0 }: IDRange, path: string): FieldError[] {
  return [
    ...(min < 0 ? [invalidValue(child(path, "min"), min, "min cannot be negative")] : []),
    ...(max < 0 ? [invalidValue(child(path, "max"), max, "max cannot be negative")] : []),
    ...(min > max ? [invalidValue(child(path, "min"), min, "min cannot be greater than max")] : []),
  ];
}

function notDropped(capabilities: readonly string[] | undefined, drops: readonly string[], field: string): FieldError[] {
  const text = `capability is listed in ${field} and requiredDropCapabilities`;
  const dropped = new Set(drops);
  return (capabilities ?? []).filter((name) => dropped.has(name)).map((name) => invalidValue(field, name, text));
}

function* validateRuntimeClass(options: RuntimeClassStrategyOptions | undefined, path: string): Steps<FieldError[]> {
  if (!options) return [];
  const at = child(path, "allowedRuntimeClassNames");
  const names = options.allowedRuntimeClassNames ?? [];
  const seen = new Set<string>();
  const errors = yield* eachInSteps(names, at, (name, own) => {
    const faults = name === "*" ? [] : dns1123Subdomain(name, own);
    if (seen.has(name)) faults.push(duplicate(own, name));
    seen.add(name);
    return faults;
  });
  const normal = options.defaultRuntimeClassName;
  if (normal !== undefined) {
    errors.push(...dns1123Subdomain(normal, child(path, "defaultRuntimeClassName")));
    if (!names.includes(normal) && !names.includes("*")) errors.push(required(at, `default ${goQuote(normal)} must be allowed`));
  }
  if (names.includes("*") && names.length > 1)
    errors.push(invalidValue(at, names, "if '*' is present, must not specify other RuntimeClass names"));
  return errors;
}

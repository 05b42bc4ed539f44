/**
 * Is a pod within a policy? All that is wrong, in upstream's words and order.
 * Source: pkg/security/podsecuritypolicy/provider.go ValidatePod, and the Validate of each strategy
 */
import { type FieldError, forbiddenField, invalidValue, required } from "@coxswain/apimachinery/errors/field-error";
import { child, index } from "@coxswain/apimachinery/errors/field-path";
import { GoText } from "@coxswain/apimachinery/errors/go-syntax";
import { goQuote } from "@coxswain/apimachinery/meta/go-quote";
import { safeSysctls } from "@coxswain/apimachinery/meta/pod-security-names";
import type { SELinuxOptions } from "@coxswain/apimachinery/schema/kinds/core/v1";
import type { IDRange } from "@coxswain/apimachinery/schema/kinds/policy/v1beta1";
import { allContainers } from "../plugins/pod-containers.ts";
import type { PodObject } from "../plugins/pod-of.ts";
import type { Policy } from "./mutate.ts";
import { seccompErrorsOfPod } from "./profiles.ts";
import { containerErrors } from "./validate-container.ts";
import { volumeErrors } from "./volumes.ts";

export function podErrors(policy: Policy, pod: PodObject): FieldError[] {
  const { spec } = policy;
  const context = pod.spec.securityContext ?? {};
  const path = "spec.securityContext";
  const fsGroups = context.fsGroup === undefined || context.fsGroup === null ? [] : [context.fsGroup];
  return [
    ...groupErrors(spec.fsGroup, child(path, "fsGroup"), fsGroups),
    ...groupErrors(spec.supplementalGroups, child(path, "supplementalGroups"), context.supplementalGroups ?? []),
    ...seccompErrorsOfPod(policy, pod),
    ...labelErrors(policy, child(path, "seLinuxOptions"), context.seLinuxOptions),
    ...hostErrors(policy, pod),
    ...sysctlErrors(policy, pod),
    ...volumeErrors(policy, pod),
    ...runtimeClassErrors(policy, pod),
    ...allContainers(pod).flatMap(({ container, path: at }) => containerErrors(policy, pod, container, at)),
  ];
}

/** `{1 10}`, as Go prints a range. */
export function rangesText(ranges: readonly IDRange[]): string {
  return `[${ranges.map(({ min, max }) => `{${min} ${max}}`).join(" ")}]`;
}

export function isInRanges(id: number, ranges: readonly IDRange[]): boolean {
  return ranges.some(({ min, max }) => id >= min && id <= max);
}

export function groupErrors(
  options: { readonly rule?: string; readonly ranges?: readonly IDRange[] } | undefined,
  path: string,
  groups: readonly number[],
): FieldError[] {
  const { rule, ranges = [] } = options ?? {};
  if (rule !== "MustRunAs" && rule !== "MayRunAs") return [];
  const shown = new GoText(groups.length === 0 ? "[]int64(nil)" : `[]int64{${groups.join(", ")}}`);
  if (groups.length === 0 && rule === "MustRunAs") {
    return [invalidValue(path, shown, "unable to validate empty groups against required ranges")];
  }
  return groups
    .filter((group) => !isInRanges(group, ranges))
    .map((group) => invalidValue(path, shown, `group ${group} must be in the ranges: ${rangesText(ranges)}`));
}

export function labelErrors({ spec: { seLinux } }: Policy, path: string, had: SELinuxOptions | undefined): FieldError[] {
  if (seLinux.rule !== "MustRunAs") return [];
  if (had === undefined) return [required(path)];
  const wanted = seLinux.seLinuxOptions ?? {};
  return (["level", "role", "type", "user"] as const).flatMap((field) => {
    const [is, must] = [had[field] ?? "", wanted[field] ?? ""];
    const same = field === "level" ? isSameLevel(must, is) : must === is;
    return same ? [] : [invalidValue(child(path, field), is, `must be ${must}`)];
  });
}

/** `s0:c1,c2` is `s0:c2,c1`. */
function isSameLevel(a: string, b: string): boolean {
  const sorted = (level: string): string => {
    const at = level.indexOf(":");
    if (at < 0) return level;
    return `${level.slice(0, at)}:${level
      .slice(at + 1)
      .split(",")
      .sort()
      .join(",")}`;
  };
  return sorted(a) === sorted(b);
}

const hostFields = [
  ["hostNetwork", "Host network is not allowed to be used"],
  ["hostPID", "Host PID is not allowed to be used"],
  ["hostIPC", "Host IPC is not allowed to be used"],
] as const;

function hostErrors({ spec }: Policy, pod: PodObject): FieldError[] {
  return hostFields
    .filter(([field]) => pod.spec[field] === true && spec[field] !== true)
    .map(([field, text]) => invalidValue(child("spec.securityContext", field), true, text));
}

function sysctlErrors({ spec }: Policy, pod: PodObject): FieldError[] {
  const matches = (patterns: readonly string[] | undefined, name: string): boolean =>
    (patterns ?? []).some((pattern) => (pattern.endsWith("*") ? name.startsWith(pattern.slice(0, -1)) : name === pattern));
  return (pod.spec.securityContext?.sysctls ?? []).flatMap(({ name }, i) => {
    const path = index("pod.spec.securityContext.sysctls", i);
    if (matches(spec.forbiddenSysctls, name)) return [forbiddenField(path, `sysctl ${goQuote(name)} is not allowed`)];
    if (safeSysctls.has(name) || matches(spec.allowedUnsafeSysctls, name)) return [];
    return [forbiddenField(path, `unsafe sysctl ${goQuote(name)} is not allowed`)];
  });
}

function runtimeClassErrors({ spec }: Policy, pod: PodObject): FieldError[] {
  const name = pod.spec.runtimeClassName;
  if (spec.runtimeClass === undefined || name === undefined) return [];
  const allowed = spec.runtimeClass.allowedRuntimeClassNames ?? [];
  return allowed.includes("*") || allowed.includes(name) ? [] : [invalidValue("spec.runtimeClassName", name, "")];
}

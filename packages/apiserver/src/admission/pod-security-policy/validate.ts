/**
 * Validates a pod against a policy. Returns all errors, with upstream's texts and order.
 * Source: pkg/security/podsecuritypolicy/provider.go ValidatePod, and the Validate of each strategy
 */
import { child, type FieldError, forbiddenField, index, invalidValue } from "@coxswain/apimachinery/objects/errors/field-error";
import { goQuote } from "@coxswain/apimachinery/objects/meta/go-quote";
import { safeSysctls } from "@coxswain/apimachinery/objects/meta/pod-security-names";
import { allContainers } from "../plugins/pod-containers.ts";
import type { PodObject } from "../plugins/pod-of.ts";
import type { Policy } from "./mutate.ts";
import { seccompErrorsOfPod } from "./profiles.ts";
import { groupErrors, labelErrors } from "./ranges.ts";
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

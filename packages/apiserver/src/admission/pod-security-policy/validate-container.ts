/**
 * Validates a container against a policy.
 * Source: pkg/security/podsecuritypolicy/provider.go validateContainer
 */
import { child, type FieldError, invalidValue, required } from "@coxswain/apimachinery/objects/errors/field-error";
import { goStrings } from "@coxswain/apimachinery/objects/errors/go-syntax";
import type { Capabilities, SecurityContext } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import type { PodObject } from "../plugins/pod-of.ts";
import { type AnyContainer, effectiveContext } from "./effective.ts";
import type { Policy } from "./mutate.ts";
import { appArmorErrors, seccompErrorsOfContainer } from "./profiles.ts";
import { groupErrors, isInRanges, labelErrors, rangesText } from "./ranges.ts";

/** @param at path of the container, e.g. `spec.containers[0]` */
export function containerErrors(policy: Policy, pod: PodObject, container: AnyContainer, at: string): FieldError[] {
  const context = effectiveContext(pod.spec, container);
  const path = child(at, "securityContext");
  const groups = context.runAsGroup === undefined ? [] : [context.runAsGroup];
  return [
    ...userErrors(policy, path, context),
    ...groupErrors(policy.spec.runAsGroup, path, groups),
    ...labelErrors(policy, child(path, "seLinuxOptions"), context.seLinuxOptions),
    ...appArmorErrors(policy, pod, container),
    ...seccompErrorsOfContainer(policy, pod, container),
    ...privilegeErrors(policy, path, context),
    ...capabilityErrors(policy, child(path, "capabilities"), context.capabilities),
    ...portErrors(policy, container, child(at, "hostPort")),
    ...rootFilesystemErrors(policy, child(path, "readOnlyRootFilesystem"), context.readOnlyRootFilesystem),
    ...escalationErrors(policy, child(path, "allowPrivilegeEscalation"), context.allowPrivilegeEscalation),
  ];
}

function userErrors({ spec: { runAsUser } }: Policy, path: string, context: SecurityContext): FieldError[] {
  const user = context.runAsUser;
  if (runAsUser.rule === "MustRunAs") {
    if (user === undefined) return [required(child(path, "runAsUser"))];
    const ranges = runAsUser.ranges ?? [];
    return isInRanges(user, ranges)
      ? []
      : [invalidValue(child(path, "runAsUser"), user, `must be in the ranges: ${rangesText(ranges)}`)];
  }
  if (runAsUser.rule !== "MustRunAsNonRoot") return [];
  if (context.runAsNonRoot === undefined && user === undefined) return [required(child(path, "runAsNonRoot"), "must be true")];
  if (context.runAsNonRoot === false) return [invalidValue(child(path, "runAsNonRoot"), false, "must be true")];
  return user === 0 ? [invalidValue(child(path, "runAsUser"), 0, "running with the root UID is forbidden")] : [];
}

function privilegeErrors({ spec }: Policy, path: string, context: SecurityContext): FieldError[] {
  const errors: FieldError[] = [];
  if (context.privileged === true && spec.privileged !== true) {
    errors.push(invalidValue(child(path, "privileged"), true, "Privileged containers are not allowed"));
  }
  const procMount = context.procMount ?? "Default";
  const allowed: readonly string[] = spec.allowedProcMountTypes?.length ? spec.allowedProcMountTypes : ["Default"];
  if (!allowed.includes(procMount)) {
    errors.push(invalidValue(child(path, "procMount"), procMount, "ProcMountType is not allowed"));
  }
  return errors;
}

function capabilityErrors({ spec }: Policy, path: string, had: Capabilities | undefined): FieldError[] {
  const { defaultAddCapabilities = [], requiredDropCapabilities = [], allowedCapabilities = [] } = spec;
  if (had === undefined) {
    if (defaultAddCapabilities.length === 0 && requiredDropCapabilities.length === 0) return [];
    return [invalidValue(path, undefined, "required capabilities are not set on the securityContext")];
  }
  if (allowedCapabilities.includes("*")) return [];
  const addable = new Set([...defaultAddCapabilities, ...allowedCapabilities]);
  const dropped = had.drop ?? [];
  const shown = goStrings("core.Capability", dropped.length === 0 ? undefined : dropped);
  return [
    ...(had.add ?? [])
      .filter((name) => !addable.has(name))
      .map((name) => invalidValue(child(path, "add"), name, "capability may not be added")),
    ...requiredDropCapabilities
      .filter((name) => !dropped.includes(name))
      .map((name) => invalidValue(child(path, "drop"), shown, `${name} is required to be dropped but was not found`)),
  ];
}

function portErrors({ spec: { hostPorts = [] } }: Policy, container: AnyContainer, path: string): FieldError[] {
  const shown = hostPorts.map(({ min, max }) => (min === max ? `${min}` : `${min}-${max}`)).join(",");
  return (container.ports ?? []).flatMap(({ hostPort = 0 }) =>
    hostPort === 0 || isInRanges(hostPort, hostPorts)
      ? []
      : [invalidValue(path, hostPort, `Host port ${hostPort} is not allowed to be used. Allowed ports: [${shown}]`)],
  );
}

function rootFilesystemErrors({ spec }: Policy, path: string, readOnly: boolean | undefined): FieldError[] {
  if (spec.readOnlyRootFilesystem !== true || readOnly === true) return [];
  const text = "ReadOnlyRootFilesystem may not be nil and must be set to true";
  return [invalidValue(path, readOnly, readOnly === undefined ? text : "ReadOnlyRootFilesystem must be set to true")];
}

function escalationErrors({ spec }: Policy, path: string, allows: boolean | undefined): FieldError[] {
  if ((spec.allowPrivilegeEscalation ?? true) || allows === false) return [];
  return [invalidValue(path, allows, "Allowing privilege escalation for containers is not allowed")];
}

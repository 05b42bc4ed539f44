import {
  addErrors,
  child,
  duplicate,
  type FieldError,
  forbiddenField,
  invalidValue,
  required,
} from "@coxswain/apimachinery/objects/errors/field-error";
import { goStruct } from "@coxswain/apimachinery/objects/schema/go/go-print";
import type { PodSpec, SeccompProfile, SecurityContext, Sysctl } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import type { Steps } from "@coxswain/apimachinery/process/event-loop/steps";
import { eachInSteps, eachWithSteps, optionalOneOf, within } from "../../../rules.ts";
import type { PodValidationOptions } from "./options.ts";
import { localDescendingPath } from "./paths.ts";
import { validateWindowsOptions } from "./windows-options.ts";

/** Source: pkg/apis/core/validation ValidateSecurityContext */
export function validateSecurityContext(
  context: SecurityContext | undefined | null,
  path: string,
  options: PodValidationOptions,
): FieldError[] {
  if (!context) return [];
  const errors: FieldError[] = [];
  if (context.privileged && !options.allowPrivileged)
    errors.push(forbiddenField(child(path, "privileged"), "disallowed by cluster policy"));
  errors.push(...checkId(context.runAsUser, child(path, "runAsUser")), ...checkId(context.runAsGroup, child(path, "runAsGroup")));
  errors.push(...optionalOneOf(context.procMount, ["Default", "Unmasked"], child(path, "procMount")));
  errors.push(...checkSeccomp(context.seccompProfile, child(path, "seccompProfile")));
  if (context.allowPrivilegeEscalation === false) {
    if (context.privileged)
      errors.push(
        invalidValue(
          path,
          goStruct("core/v1.SecurityContext", context),
          "cannot set `allowPrivilegeEscalation` to false and `privileged` to true",
        ),
      );
    for (const capability of context.capabilities?.add ?? []) {
      if (capability !== "CAP_SYS_ADMIN") continue;
      const text = "cannot set `allowPrivilegeEscalation` to false and `capabilities.Add` CAP_SYS_ADMIN";
      errors.push(invalidValue(path, goStruct("core/v1.SecurityContext", context), text));
    }
  }
  return [...errors, ...validateWindowsOptions(context.windowsOptions, child(path, "windowsOptions"))];
}

/** @param specPath of the pod's spec. Source: pkg/apis/core/validation ValidatePodSecurityContext */
export function* validatePodSecurityContext(spec: PodSpec, specPath: string): Steps<FieldError[]> {
  const errors = spec.hostNetwork ? yield* hostPortsMatch(spec, child(specPath, "containers")) : [];
  const context = spec.securityContext;
  if (!context) return errors;
  const path = child(specPath, "securityContext");
  for (const field of ["fsGroup", "runAsUser", "runAsGroup"] as const)
    errors.push(...checkId(context[field], child(path, field)));
  addErrors(errors, yield* eachInSteps(context.supplementalGroups, child(path, "supplementalGroups"), checkId));
  if (spec.shareProcessNamespace && spec.hostPID) {
    const text = "ShareProcessNamespace and HostPID cannot both be enabled";
    errors.push(invalidValue(child(path, "shareProcessNamespace"), true, text));
  }
  addErrors(errors, yield* checkSysctls(context.sysctls ?? [], child(path, "sysctls")));
  errors.push(...optionalOneOf(context.fsGroupChangePolicy, ["Always", "OnRootMismatch"], child(path, "fsGroupChangePolicy")));
  errors.push(...checkSeccomp(context.seccompProfile, child(path, "seccompProfile")));
  return [...errors, ...validateWindowsOptions(context.windowsOptions, child(path, "windowsOptions"))];
}

function hostPortsMatch(spec: PodSpec, path: string): Steps<FieldError[]> {
  return eachWithSteps(spec.containers, path, (container, at) =>
    eachInSteps(container.ports, child(at, "ports"), (port, own) =>
      (port.hostPort ?? 0) === (port.containerPort ?? 0)
        ? []
        : [
            invalidValue(
              child(own, "containerPort"),
              port.containerPort ?? 0,
              "must match `hostPort` when `hostNetwork` is true",
            ),
          ],
    ),
  );
}

function checkId(id: number | undefined | null, path: string): FieldError[] {
  return within(id, 0, 2 ** 31 - 1, path);
}

const seccompTypes = ["Localhost", "RuntimeDefault", "Unconfined"];

function checkSeccomp(profile: SeccompProfile | undefined | null, path: string): FieldError[] {
  if (!profile) return [];
  const { type, localhostProfile } = profile;
  const errors = type
    ? optionalOneOf(type, seccompTypes, child(path, "type"))
    : [required(child(path, "type"), "type is required when seccompProfile is set")];
  const at = child(path, "localhostProfile");
  if (type === "Localhost") {
    if (localhostProfile === undefined || localhostProfile === null)
      errors.push(required(at, "must be set when seccomp type is Localhost"));
    else errors.push(...localDescendingPath(localhostProfile, at));
  } else if (localhostProfile !== undefined && localhostProfile !== null) {
    errors.push(invalidValue(at, goStruct("core/v1.SeccompProfile", profile), "can only be set when seccomp type is Localhost"));
  }
  return errors;
}

const sysctlSegment = "[a-z0-9]([-_a-z0-9]*[a-z0-9])?";
const sysctlForm = `^(${sysctlSegment}[\\./])*${sysctlSegment}$`;
const sysctlPart = /^[a-z0-9](?:[-_a-z0-9]*[a-z0-9])?$/;
const longestSysctl = 253;

/** `net.ipv4.ip_forward` or `net/ipv4/ip_forward`, at most 253 characters. */
export function isSysctlName(name: string): boolean {
  return name.length <= longestSysctl && name.split(/[./]/).every((part) => sysctlPart.test(part));
}

function checkSysctls(sysctls: readonly Sysctl[], path: string): Steps<FieldError[]> {
  const names = new Set<string>();
  return eachInSteps(sysctls, path, ({ name = "" }, own) => {
    const at = child(own, "name");
    if (name === "") return [required(at)];
    if (!isSysctlName(name))
      return [invalidValue(at, name, `must have at most ${longestSysctl} characters and match regex ${sysctlForm}`)];
    const normal = dotted(name);
    if (names.has(normal)) return [duplicate(at, name)];
    names.add(normal);
    return [];
  });
}

/** Normalizes `net/ipv4/ip_forward` to `net.ipv4.ip_forward`; the first of `.` and `/` is taken as the separator. */
function dotted(name: string): string {
  const first = /[./]/.exec(name)?.[0];
  return first === "/" ? name.replace(/[./]/g, (separator) => (separator === "/" ? "." : "/")) : name;
}

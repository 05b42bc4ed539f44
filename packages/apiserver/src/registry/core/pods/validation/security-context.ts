import type { FieldError } from "@coxswain/apimachinery/errors/field-error";
import { duplicate, forbiddenField, invalidValue, notSupported, required } from "@coxswain/apimachinery/errors/field-error";
import { child, index } from "@coxswain/apimachinery/errors/field-path";
import type {
  PodSecurityContext,
  PodSpec,
  SeccompProfile,
  SecurityContext,
  Sysctl,
  WindowsSecurityContextOptions,
} from "@coxswain/apimachinery/schema/kinds/core/v1";
import type { PodValidationOptions } from "./options.ts";
import { localDescendingPath } from "./volumes.ts";

const highestId = 2 ** 31 - 1;
const userIdText = "must be between 0 and 2147483647, inclusive";

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
  const procMount: string | undefined = context.procMount;
  if (procMount && procMount !== "Default" && procMount !== "Unmasked") {
    errors.push(notSupported(child(path, "procMount"), procMount, ["Default", "Unmasked"]));
  }
  errors.push(...checkSeccomp(context.seccompProfile, child(path, "seccompProfile")));
  if (context.allowPrivilegeEscalation === false) {
    if (context.privileged)
      errors.push(invalidValue(path, context, "cannot set `allowPrivilegeEscalation` to false and `privileged` to true"));
    if ((context.capabilities?.add ?? []).includes("CAP_SYS_ADMIN")) {
      errors.push(
        invalidValue(path, context, "cannot set `allowPrivilegeEscalation` to false and `capabilities.Add` CAP_SYS_ADMIN"),
      );
    }
  }
  return [...errors, ...checkWindows(context.windowsOptions, child(path, "windowsOptions"))];
}

/** Source: pkg/apis/core/validation ValidatePodSecurityContext */
export function validatePodSecurityContext(
  context: PodSecurityContext | undefined | null,
  spec: PodSpec,
  path: string,
): FieldError[] {
  const errors: FieldError[] = [];
  if (spec.hostNetwork) errors.push(...hostPortsMatch(spec));
  if (context) {
    errors.push(...checkId(context.fsGroup, child(path, "fsGroup")));
    errors.push(...checkId(context.runAsUser, child(path, "runAsUser")));
    errors.push(...checkId(context.runAsGroup, child(path, "runAsGroup")));
    for (const [i, group] of (context.supplementalGroups ?? []).entries()) {
      errors.push(...checkId(group, index(child(path, "supplementalGroups"), i)));
    }
    if (spec.shareProcessNamespace && spec.hostPID) {
      errors.push(
        invalidValue(child(path, "shareProcessNamespace"), true, "ShareProcessNamespace and HostPID cannot both be enabled"),
      );
    }
    errors.push(...checkSysctls(context.sysctls ?? [], child(path, "sysctls")));
    const policy: string | undefined = context.fsGroupChangePolicy;
    if (policy !== undefined && policy !== "OnRootMismatch" && policy !== "Always") {
      errors.push(notSupported(child(path, "fsGroupChangePolicy"), policy, ["Always", "OnRootMismatch"]));
    }
    errors.push(...checkSeccomp(context.seccompProfile, child(path, "seccompProfile")));
    errors.push(...checkWindows(context.windowsOptions, child(path, "windowsOptions")));
  }
  return errors;
}

function hostPortsMatch(spec: PodSpec): FieldError[] {
  const errors: FieldError[] = [];
  for (const field of ["containers", "initContainers"] as const) {
    for (const [i, container] of (spec[field] ?? []).entries()) {
      for (const [j, port] of (container.ports ?? []).entries()) {
        if ((port.hostPort ?? 0) !== port.containerPort) {
          errors.push(
            invalidValue(
              child(index(child(index(`spec.${field}`, i), "ports"), j), "containerPort"),
              port.containerPort,
              "must match `hostPort` when `hostNetwork` is true",
            ),
          );
        }
      }
    }
  }
  return errors;
}

function checkId(id: number | undefined | null, path: string): FieldError[] {
  return id !== undefined && id !== null && (id < 0 || id > highestId) ? [invalidValue(path, id, userIdText)] : [];
}

function checkSeccomp(profile: SeccompProfile | undefined | null, path: string): FieldError[] {
  if (!profile) return [];
  const type: string = profile.type ?? "";
  if (type === "") return [required(child(path, "type"), "type is required when seccompProfile is set")];
  if (type === "Localhost") {
    if (!profile.localhostProfile)
      return [required(child(path, "localhostProfile"), "must be set when seccomp type is Localhost")];
    return localDescendingPath(profile.localhostProfile, child(path, "localhostProfile"));
  }
  const errors: FieldError[] = [];
  if (profile.localhostProfile !== undefined) {
    errors.push(
      invalidValue(child(path, "localhostProfile"), profile.localhostProfile, "can only be set when seccomp type is Localhost"),
    );
  }
  if (type !== "RuntimeDefault" && type !== "Unconfined")
    errors.push(notSupported(child(path, "type"), type, ["Localhost", "RuntimeDefault", "Unconfined"]));
  return errors;
}

const sysctlSegment = "[a-z0-9]([-_a-z0-9]*[a-z0-9])?";
const sysctlForm = `(${sysctlSegment}[\\./])*${sysctlSegment}`;
const sysctlPart = /^[a-z0-9](?:[-_a-z0-9]*[a-z0-9])?$/;

function checkSysctls(sysctls: readonly Sysctl[], path: string): FieldError[] {
  const errors: FieldError[] = [];
  const names = new Set<string>();
  for (const [i, sysctl] of sysctls.entries()) {
    const at = child(index(path, i), "name");
    if (!sysctl.name) errors.push(required(at));
    else if (sysctl.name.length > 253 || !sysctl.name.split(/[./]/).every((part) => sysctlPart.test(part))) {
      errors.push(invalidValue(at, sysctl.name, `must have at most 253 characters and match regex ^${sysctlForm}$`));
    } else if (names.has(sysctl.name)) {
      errors.push(duplicate(at, sysctl.name));
    }
    names.add(sysctl.name);
  }
  return errors;
}

function checkWindows(windows: WindowsSecurityContextOptions | undefined | null, path: string): FieldError[] {
  if (!windows) return [];
  const errors: FieldError[] = [];
  const user = windows.runAsUserName;
  if (user === undefined) return errors;
  const at = child(path, "runAsUserName");
  if (/[\u0000-\u001f\u007f]/.test(user)) errors.push(invalidValue(at, user, "runAsUserName cannot contain control characters"));
  const parts = user.split("\\");
  if (parts.length > 2) errors.push(invalidValue(at, user, "runAsUserName cannot contain more than one backslash"));
  const name = parts.length === 2 ? (parts[1] as string) : (parts[0] as string);
  if (parts.length === 2 && parts[0] === "")
    errors.push(invalidValue(at, user, "runAsUserName's Domain doesn't match the NetBIOS nor the DNS format"));
  if (name === "") errors.push(invalidValue(at, user, "runAsUserName's User cannot be empty"));
  else if (name.length > 104)
    errors.push(invalidValue(at, user, "runAsUserName's User length must not be longer than 104 characters"));
  if (/^[. ]+$/.test(name)) errors.push(invalidValue(at, user, "runAsUserName's User cannot contain only periods or spaces"));
  return errors;
}

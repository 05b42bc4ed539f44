import { child, type FieldError, forbiddenField, index, invalidValue } from "@coxswain/apimachinery/objects/errors/field-error";
import type { Container, PodSpec, WindowsSecurityContextOptions } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { dns1123SubdomainProblems } from "../../../field-checks.ts";
import { saying } from "../../../rules.ts";
import { containerLists, type PodValidationOptions } from "./options.ts";

const longestCredentialSpecKiB = 64;
const longestDomain = 256;
const longestUser = 104;

/** Source: pkg/apis/core/validation validateWindowsSecurityContextOptions */
export function validateWindowsOptions(options: WindowsSecurityContextOptions | undefined | null, path: string): FieldError[] {
  if (!options) return [];
  const { gmsaCredentialSpecName, gmsaCredentialSpec, runAsUserName } = options;
  const errors: FieldError[] = [];
  if (gmsaCredentialSpecName !== undefined && gmsaCredentialSpecName !== null)
    errors.push(
      ...saying(dns1123SubdomainProblems(gmsaCredentialSpecName), gmsaCredentialSpecName, child(path, "gmsaCredentialSpecName")),
    );
  if (gmsaCredentialSpec !== undefined && gmsaCredentialSpec !== null) {
    const at = child(path, "gmsaCredentialSpec");
    if (gmsaCredentialSpec === "") errors.push(invalidValue(at, "", "gmsaCredentialSpec cannot be an empty string"));
    else if (Buffer.byteLength(gmsaCredentialSpec) > longestCredentialSpecKiB * 1024) {
      errors.push(invalidValue(at, gmsaCredentialSpec, `gmsaCredentialSpec size must be under ${longestCredentialSpecKiB} KiB`));
    }
  }
  if (runAsUserName !== undefined && runAsUserName !== null)
    errors.push(...saying(userNameFaults(runAsUserName), runAsUserName, child(path, "runAsUserName")));
  return errors;
}

const netBios = /^[^\\/:*?"<>|.][^\\/:*?"<>|]{0,14}$/;
const dnsPart = /^[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?$/;

/** `DOMAIN\user` or `user`. */
function userNameFaults(text: string): string[] {
  if (text === "") return ["runAsUserName cannot be an empty string"];
  if (/[\u0000-\u001f\u007f]/.test(text)) return ["runAsUserName cannot contain control characters"];
  const parts = text.split("\\");
  if (parts.length > 2) return ["runAsUserName cannot contain more than one backslash"];
  const user = parts.at(-1)!;
  const domain = parts.length === 2 ? parts[0]! : undefined;
  const faults: string[] = [];
  if ((domain ?? "").length >= longestDomain)
    faults.push(`runAsUserName's Domain length must be under ${longestDomain} characters`);
  if (domain !== undefined && !netBios.test(domain) && !domain.split(".").every((part) => dnsPart.test(part)))
    faults.push("runAsUserName's Domain doesn't match the NetBios nor the DNS format");
  if (user === "") faults.push("runAsUserName's User cannot be empty");
  else if (user.length > longestUser)
    faults.push(`runAsUserName's User length must not be longer than ${longestUser} characters`);
  if (/^[. ]+$/.test(user)) faults.push("runAsUserName's User cannot contain only periods or spaces");
  if (/["/\\:;|=,+*?<>@[\]]/.test(user))
    faults.push("runAsUserName's User cannot contain the following characters: \"/\\:;|=,+*?<>@[]");
  return faults;
}

/** All containers with their paths, in upstream's order. */
function containersWithPaths(spec: PodSpec, path: string): { container: Container; at: string }[] {
  return containerLists.flatMap((list) =>
    (spec[list] ?? []).map((container, i) => ({ container, at: index(child(path, list), i) })),
  );
}

const gateText = "feature gate 'WindowsHostProcessContainers' is not enabled";

/** Either all containers of a pod are HostProcess containers or none. Source: validateWindowsHostProcessPod */
export function validateHostProcess(spec: PodSpec, path: string, options: PodValidationOptions): FieldError[] {
  const field = ["securityContext", "windowsOptions", "hostProcess"];
  const ofPod = spec.securityContext?.windowsOptions?.hostProcess;
  if (!options.windowsHostProcess && ofPod !== undefined)
    return [forbiddenField(child(path, ...field), `not allowed when ${gateText}`)];
  const errors: FieldError[] = [];
  const all = containersWithPaths(spec, path);
  let count = 0;
  for (const { container, at } of all) {
    const own = container.securityContext?.windowsOptions?.hostProcess;
    if (!options.windowsHostProcess && own !== undefined)
      errors.push(forbiddenField(child(at, ...field), `not allowed when ${gateText}`));
    if (ofPod !== undefined && own !== undefined && ofPod !== own) {
      const text = `pod hostProcess value must be identical if both are specified, was ${ofPod}`;
      errors.push(invalidValue(child(at, ...field), own, text));
    }
    if (own ?? ofPod) count++;
  }
  if (count === 0) return errors;
  if (!options.windowsHostProcess)
    return [...errors, forbiddenField(path, `pod must not contain Windows hostProcess containers when ${gateText}`)];
  if (count !== all.length) {
    const text = "If pod contains any hostProcess containers then all containers must be HostProcess containers";
    errors.push(invalidValue(path, "", text));
  }
  if (!spec.hostNetwork) {
    const text = "hostNetwork must be true if pod contains any hostProcess containers";
    errors.push(invalidValue(child(path, "hostNetwork"), false, text));
  }
  if (!options.allowPrivileged) errors.push(forbiddenField(path, "hostProcess containers are disallowed by cluster policy"));
  return errors;
}

const notOnWindows = "cannot be set for a windows pod";
/** Linux-only fields of a pod; true: in spec.securityContext, false: in spec. */
const linuxPodFields: readonly (readonly [string, boolean])[] = [
  ["seLinuxOptions", true],
  ["hostPID", false],
  ["hostIPC", false],
  ["seccompProfile", true],
  ["fsGroup", true],
  ["fsGroupChangePolicy", true],
  ["sysctls", true],
  ["shareProcessNamespace", false],
  ["runAsUser", true],
  ["runAsGroup", true],
  ["supplementalGroups", true],
];
const linuxContainerFields = [
  "seLinuxOptions",
  "seccompProfile",
  "capabilities",
  "readOnlyRootFilesystem",
  "privileged",
  "allowPrivilegeEscalation",
  "procMount",
  "runAsUser",
  "runAsGroup",
] as const;

/** Rejects Linux-only fields in a Windows pod. Source: pkg/apis/core/validation validateOS, validateLinux, validateWindows */
export function validateForWindows(spec: PodSpec, path: string): FieldError[] {
  const errors: FieldError[] = [];
  for (const [field, inContext] of linuxPodFields) {
    // Cast: read by names in a table.
    const value = ((inContext ? spec.securityContext : spec) as Record<string, unknown> | undefined)?.[field];
    const unset = value === undefined || value === null || value === (field.startsWith("host") ? false : undefined);
    if (unset || (field === "sysctls" && (value as unknown[]).length === 0)) continue; // cast: sysctls is a list
    errors.push(forbiddenField(inContext ? child(path, "securityContext", field) : child(path, field), notOnWindows));
  }
  for (const { container, at } of containersWithPaths(spec, path)) {
    for (const field of linuxContainerFields)
      if ((container.securityContext?.[field] ?? undefined) !== undefined)
        errors.push(forbiddenField(child(at, "securityContext", field), notOnWindows));
  }
  return errors;
}

/** Rejects windowsOptions in a Linux pod. Source: pkg/apis/core/validation validateLinux */
export function validateForLinux(spec: PodSpec, path: string): FieldError[] {
  const contexts = [
    { options: spec.securityContext?.windowsOptions, at: path },
    ...containersWithPaths(spec, path).map(({ container, at }) => ({ options: container.securityContext?.windowsOptions, at })),
  ];
  return contexts
    .filter(({ options }) => options !== undefined && options !== null)
    .map(({ at }) =>
      forbiddenField(child(at, "securityContext", "windowsOptions"), "windows options cannot be set for a linux pod"),
    );
}

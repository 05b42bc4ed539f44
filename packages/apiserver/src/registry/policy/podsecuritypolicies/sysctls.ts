import { child, type FieldError, forbiddenField, index, invalidValue } from "@coxswain/apimachinery/objects/errors/field-error";
import type { PodSecurityPolicySpec } from "@coxswain/apimachinery/objects/schema/kinds/policy/v1beta1";
import { isSysctlName } from "../../core/pods/validation/security-context.ts";
import { each } from "../../rules.ts";

const segment = "[a-z0-9]([-_a-z0-9]*[a-z0-9])?";
const patternForm = `(${segment}[\\./])*([a-z0-9][-_a-z0-9]*)?[a-z0-9*]`;

/** Names or patterns (`net.*`); the allowed and forbidden lists must not overlap. Source: validatePodSecurityPolicySysctls */
export function validateSysctls(spec: PodSecurityPolicySpec, path: string): FieldError[] {
  const { allowedUnsafeSysctls: allowed = [], forbiddenSysctls: forbidden = [] } = spec;
  const [allowedPath, forbiddenPath] = [child(path, "allowedUnsafeSysctls"), child(path, "forbiddenSysctls")];
  const overlaps = allowed.flatMap((one, i) =>
    forbidden.flatMap((other, j) => {
      if (coveredBy(one, other)) return [invalidValue(index(allowedPath, i), one, `sysctl overlaps with ${other}`)];
      if (coveredBy(other, one)) return [invalidValue(index(forbiddenPath, j), other, `sysctl overlaps with ${one}`)];
      return [];
    }),
  );
  return [...validateList(allowed, allowedPath), ...validateList(forbidden, forbiddenPath), ...overlaps];
}

function validateList(sysctls: readonly string[], path: string): FieldError[] {
  const errors = each(sysctls, path, (sysctl, at) => {
    if (sysctl === "") return [invalidValue(at, sysctl, "empty sysctl not allowed")];
    if (isPattern(sysctl)) return [];
    return [invalidValue(at, sysctl, `must have at most 253 characters and match regex ${patternForm}`)];
  });
  if (sysctls.includes("*") && sysctls.length > 1)
    errors.push(forbiddenField(child(path, "items"), "if '*' is present, must not specify other sysctls"));
  return errors;
}

function isPattern(text: string): boolean {
  if (!text.endsWith("*")) return isSysctlName(text);
  // A trailing star stands for a segment or the rest of one: valid when the name is valid with a letter in its place.
  return text.length <= 253 && isSysctlName(`${text.slice(0, -1)}x`);
}

/** Whether `other` matches everything that `one` matches. */
function coveredBy(one: string, other: string): boolean {
  return other.endsWith("*") ? one.replace(/\*$/, "").startsWith(other.slice(0, -1)) : one === other;
}

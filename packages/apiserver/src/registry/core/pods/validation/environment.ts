import { child, type FieldError, invalidValue, required } from "@coxswain/apimachinery/objects/errors/field-error";
import type { EnvFromSource, EnvVar } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import type { Steps } from "@coxswain/apimachinery/process/event-loop/steps";
import { configMapKeyProblems, dns1123SubdomainProblems, envVarNameProblems } from "../../../field-checks.ts";
import { eachInSteps, saying, subdomainName } from "../../../rules.ts";
import { checkFieldRef, checkResourceFieldRef, envFields } from "./field-references.ts";
import type { PodValidationOptions } from "./options.ts";

/** Source: pkg/apis/core/validation ValidateEnv, ValidateEnvFrom */
export function validateEnv(variables: readonly EnvVar[], path: string, options: PodValidationOptions): Steps<FieldError[]> {
  return eachInSteps(variables, path, (variable, at) => [
    ...(variable.name
      ? saying(envVarNameProblems(variable.name), variable.name, child(at, "name"))
      : [required(child(at, "name"))]),
    ...validateSource(variable, child(at, "valueFrom"), options),
  ]);
}

const manyText = "may not have more than one field specified at a time";

function validateSource(variable: EnvVar, path: string, options: PodValidationOptions): FieldError[] {
  const source = variable.valueFrom;
  if (!source) return [];
  const { fieldRef, resourceFieldRef } = source;
  const errors: FieldError[] = [];
  if (fieldRef) errors.push(...checkFieldRef(fieldRef, envFields, child(path, "fieldRef")));
  if (resourceFieldRef) {
    const at = child(path, "resourceFieldRef");
    errors.push(...checkResourceFieldRef(resourceFieldRef, at, { volume: false, hugePages: options.hugePagesInDownwardApi }));
  }
  for (const field of ["configMapKeyRef", "secretKeyRef"] as const) {
    const reference = source[field];
    if (!reference) continue;
    const { name = "", key } = reference;
    errors.push(...saying(dns1123SubdomainProblems(name), name, child(path, field, "name")));
    const at = child(path, field, "key");
    errors.push(...(key ? saying(configMapKeyProblems(key), key, at) : [required(at)]));
  }
  const count = [fieldRef, resourceFieldRef, source.configMapKeyRef, source.secretKeyRef].filter(Boolean).length;
  if (count === 0) {
    const text = "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef` or `secretKeyRef`";
    errors.push(invalidValue(path, "", text));
  } else if (variable.value) errors.push(invalidValue(path, "", "may not be specified when `value` is not empty"));
  else if (count > 1) errors.push(invalidValue(path, "", manyText));
  return errors;
}

/** Exactly one of configMapRef and secretRef is required in each source. */
export function validateEnvFrom(sources: readonly EnvFromSource[], path: string): Steps<FieldError[]> {
  return eachInSteps(sources, path, (source, at) => {
    const errors = source.prefix ? saying(envVarNameProblems(source.prefix), source.prefix, child(at, "prefix")) : [];
    let count = 0;
    for (const field of ["configMapRef", "secretRef"] as const) {
      const reference = source[field];
      if (!reference) continue;
      count++;
      errors.push(...subdomainName(reference.name, child(at, field, "name")));
    }
    if (count === 0) errors.push(invalidValue(path, "", "must specify one of: `configMapRef` or `secretRef`"));
    else if (count > 1) errors.push(invalidValue(path, "", manyText));
    return errors;
  });
}

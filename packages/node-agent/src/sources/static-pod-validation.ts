import {
  duplicate,
  type FieldError,
  fieldNotFound,
  forbiddenField,
  invalidValue,
  required,
} from "@coxswain/apimachinery/objects/errors/field-error";
import type { Pod } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { dns1123LabelProblems, dns1123SubdomainProblems } from "@coxswain/apimachinery/objects/validation/dns";

/**
 * Pure: errors in a static Pod that would break the agent; static Pods bypass the API server's validation, and names become
 * path components.
 * Source: pkg/apis/core/validation ValidatePodCreate, as far as the agent depends on it
 */
export function staticPodProblems({ metadata, spec }: Pod): FieldError[] {
  const { name, namespace, uid } = metadata;
  const problems = [
    ...named("metadata.name", name, dns1123SubdomainProblems),
    ...(namespace ? named("metadata.namespace", namespace, dns1123LabelProblems) : []),
    ...(uid && !/^[A-Za-z0-9][\w.-]*$/.test(uid)
      ? [invalidValue("metadata.uid", uid, "must be fit for the name of a folder")]
      : []),
  ];
  const volumes = new Set<string>();
  for (const [i, volume] of (spec?.volumes ?? []).entries()) {
    const path = `spec.volumes[${i}].name`;
    problems.push(
      ...named(path, volume.name, dns1123LabelProblems),
      ...(volumes.has(volume.name) ? [duplicate(path, volume.name)] : []),
    );
    volumes.add(volume.name);
  }
  if ((spec?.containers ?? []).length === 0) problems.push(required("spec.containers"));
  if ((spec?.ephemeralContainers ?? []).length > 0)
    problems.push(forbiddenField("spec.ephemeralContainers", "cannot be set on create"));
  const containers = new Set<string>();
  for (const field of ["initContainers", "containers"] as const) {
    for (const [i, container] of (spec?.[field] ?? []).entries()) {
      const path = `spec.${field}[${i}]`;
      problems.push(...named(`${path}.name`, container.name, dns1123LabelProblems));
      if (containers.has(container.name)) problems.push(duplicate(`${path}.name`, container.name));
      containers.add(container.name);
      if (!container.image) problems.push(required(`${path}.image`));
      for (const [j, mount] of (container.volumeMounts ?? []).entries()) {
        const at = `${path}.volumeMounts[${j}]`;
        if (!volumes.has(mount.name)) problems.push(fieldNotFound(`${at}.name`, mount.name));
        if (!mount.mountPath) problems.push(required(`${at}.mountPath`));
      }
    }
  }
  return problems;
}

function named(path: string, name: string | undefined, check: (name: string) => string[]): FieldError[] {
  return name ? check(name).map((problem) => invalidValue(path, name, problem)) : [required(path)];
}

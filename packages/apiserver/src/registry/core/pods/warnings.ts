import type { Container, Pod, PodTemplateSpec, Volume } from "@coxswain/apimachinery/schema/kinds/core/v1";

/** Node labels that go away, and what takes their place. Source: pkg/api/node/util.go */
const deprecatedNodeLabels: Readonly<Record<string, string>> = {
  "beta.kubernetes.io/arch": 'deprecated since v1.14; use "kubernetes.io/arch" instead',
  "beta.kubernetes.io/os": 'deprecated since v1.14; use "kubernetes.io/os" instead',
  "failure-domain.beta.kubernetes.io/region": 'deprecated since v1.17; use "topology.kubernetes.io/region" instead',
  "failure-domain.beta.kubernetes.io/zone": 'deprecated since v1.17; use "topology.kubernetes.io/zone" instead',
  "beta.kubernetes.io/instance-type": 'deprecated since v1.17; use "node.kubernetes.io/instance-type" instead',
};

const deprecatedAnnotations: Readonly<Record<string, string>> = {
  "scheduler.alpha.kubernetes.io/critical-pod": 'non-functional in v1.16+; use the "priorityClassName" field instead',
  "seccomp.security.alpha.kubernetes.io/pod": 'deprecated since v1.19; use the "seccompProfile" field instead',
  "security.alpha.kubernetes.io/sysctls": 'non-functional in v1.11+; use the "sysctls" field instead',
  "security.alpha.kubernetes.io/unsafe-sysctls": 'non-functional in v1.11+; use the "sysctls" field instead',
};

export function podWarnings(pod: Pod, old: Pod | undefined): string[] {
  return templateWarnings(
    { metadata: pod.metadata, spec: pod.spec },
    old ? { metadata: old.metadata, spec: old.spec } : undefined,
    "",
  );
}

/** @param prefix path of the template, `spec.template`; `""` for a pod. Source: pkg/api/pod/warnings.go */
export function templateWarnings(template: PodTemplateSpec, old: PodTemplateSpec | undefined, prefix: string): string[] {
  const at = (field: string): string => (prefix === "" ? field : `${prefix}.${field}`);
  const warnings: string[] = [];
  const spec = template.spec;
  if (!spec) return warnings;
  for (const key of Object.keys(spec.nodeSelector ?? {})) {
    const message = own(deprecatedNodeLabels, key);
    if (message) warnings.push(`${at(`spec.nodeSelector[${key}]`)}: ${message}`);
  }
  for (const [key, message] of Object.entries(deprecatedAnnotations)) {
    if (template.metadata?.annotations?.[key] === undefined || old?.metadata?.annotations?.[key] !== undefined) continue;
    if (key === "seccomp.security.alpha.kubernetes.io/pod" && spec.securityContext?.seccompProfile) continue;
    warnings.push(`${at(`metadata.annotations[${key}]`)}: ${message}`);
  }
  for (const [i, volume] of (spec.volumes ?? []).entries()) warnings.push(...volumeWarnings(volume, at(`spec.volumes[${i}]`)));
  const hostNames = new Set<string>();
  for (const [i, alias] of (spec.hostAliases ?? []).entries()) {
    if (hostNames.has(alias.ip ?? "")) warnings.push(`${at(`spec.hostAliases[${i}].ip`)}: duplicate ip "${alias.ip}"`);
    hostNames.add(alias.ip ?? "");
  }
  const secrets = new Set<string>();
  for (const [i, secret] of (spec.imagePullSecrets ?? []).entries()) {
    if (!secret.name) warnings.push(`${at(`spec.imagePullSecrets[${i}].name`)}: invalid empty name ""`);
    else if (secrets.has(secret.name))
      warnings.push(`${at(`spec.imagePullSecrets[${i}].name`)}: duplicate name "${secret.name}"`);
    secrets.add(secret.name ?? "");
  }
  for (const [field, containers] of [
    ["initContainers", spec.initContainers],
    ["containers", spec.containers],
  ] as const) {
    for (const [i, container] of (containers ?? []).entries()) {
      warnings.push(...containerWarnings(container, at(`spec.${field}[${i}]`)));
    }
  }
  return warnings;
}

function containerWarnings(container: Container, path: string): string[] {
  const warnings: string[] = [];
  const names = new Set<string>();
  for (const [i, variable] of (container.env ?? []).entries()) {
    if (names.has(variable.name)) warnings.push(`${path}.env[${i}].name: duplicate name "${variable.name}"`);
    names.add(variable.name);
  }
  for (const kind of ["limits", "requests"] as const) {
    for (const [name, value] of Object.entries(container.resources?.[kind] ?? {})) {
      if ((name === "memory" || name === "ephemeral-storage") && /m$/.test(String(value))) {
        warnings.push(`${path}.resources.${kind}[${name}]: fractional byte value "${value}" is invalid, must be an integer`);
      }
    }
  }
  return warnings;
}

function volumeWarnings(volume: Volume, path: string): string[] {
  const warnings: string[] = [];
  if (volume.gitRepo) warnings.push(`${path}.gitRepo: deprecated in v1.11`);
  if (volume.scaleIO) warnings.push(`${path}.scaleIO: deprecated in v1.16, non-functional in v1.22+`);
  if (volume.flocker) warnings.push(`${path}.flocker: deprecated in v1.22, non-functional in v1.25+`);
  if (volume.quobyte) warnings.push(`${path}.quobyte: deprecated in v1.22, non-functional in v1.25+`);
  if (volume.storageos) warnings.push(`${path}.storageOS: deprecated in v1.22, non-functional in v1.25+`);
  return warnings;
}

function own(map: Readonly<Record<string, string>>, key: string): string | undefined {
  return Object.hasOwn(map, key) ? map[key] : undefined;
}

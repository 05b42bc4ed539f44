import { child, index, mapKey } from "@coxswain/apimachinery/objects/errors/field-error";
import { goQuote } from "@coxswain/apimachinery/objects/meta/go-quote";
import { seccompContainer, seccompPod } from "@coxswain/apimachinery/objects/meta/pod-security-names";
import type {
  Container,
  NodeSelectorTerm,
  Pod,
  PodSpec,
  PodTemplateSpec,
  ResourceList,
  Volume,
} from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { quantityOf } from "../../field-checks.ts";
import { containerLists } from "./validation/options.ts";

/** Deprecated node labels and their replacements. Source: pkg/api/pod/warnings.go */
const deprecatedNodeLabels: Readonly<Record<string, string>> = {
  "beta.kubernetes.io/arch": 'deprecated since v1.14; use "kubernetes.io/arch" instead',
  "beta.kubernetes.io/os": 'deprecated since v1.14; use "kubernetes.io/os" instead',
  "failure-domain.beta.kubernetes.io/region": 'deprecated since v1.17; use "topology.kubernetes.io/region" instead',
  "failure-domain.beta.kubernetes.io/zone": 'deprecated since v1.17; use "topology.kubernetes.io/zone" instead',
  "beta.kubernetes.io/instance-type": 'deprecated since v1.17; use "node.kubernetes.io/instance-type" instead',
};

const deprecatedAnnotations: Readonly<Record<string, string>> = {
  "scheduler.alpha.kubernetes.io/critical-pod": 'non-functional in v1.16+; use the "priorityClassName" field instead',
  "security.alpha.kubernetes.io/sysctls": 'non-functional in v1.11+; use the "sysctls" field instead',
  "security.alpha.kubernetes.io/unsafe-sysctls": 'non-functional in v1.11+; use the "sysctls" field instead',
};

const deprecatedVolumes: readonly (readonly [field: keyof Volume, shown: string, text: string])[] = [
  ["photonPersistentDisk", "photonPersistentDisk", "deprecated in v1.11, non-functional in v1.16+"],
  ["gitRepo", "gitRepo", "deprecated in v1.11"],
  ["scaleIO", "scaleIO", "deprecated in v1.16, non-functional in v1.22+"],
  ["flocker", "flocker", "deprecated in v1.22, non-functional in v1.25+"],
  ["storageos", "storageOS", "deprecated in v1.22, non-functional in v1.25+"],
  ["quobyte", "quobyte", "deprecated in v1.22, non-functional in v1.25+"],
];

export function podWarnings(pod: Pod): string[] {
  return templateWarnings({ metadata: pod.metadata, spec: pod.spec }, "");
}

/** Warnings for a pod or template. @param path `spec.template`; `""` for a pod. Source: pkg/api/pod/warnings.go */
export function templateWarnings(template: PodTemplateSpec | undefined, path: string): string[] {
  if (!template?.spec) return [];
  const { metadata, spec } = template;
  const annotations = metadata?.annotations ?? {};
  const at = child(path, "spec");
  const annotated = (key: string, text: string): string[] =>
    Object.hasOwn(annotations, key) ? [`${mapKey(child(path, "metadata", "annotations"), key)}: ${text}`] : [];
  return [
    ...nodeLabelWarnings(spec, at),
    ...Object.entries(deprecatedAnnotations).flatMap(([key, text]) => annotated(key, text)),
    ...(spec.volumes ?? []).flatMap((volume, i) =>
      deprecatedVolumes
        .filter(([field]) => volume[field])
        .map(([, shown, text]) => `${child(index(child(at, "volumes"), i), shown)}: ${text}`),
    ),
    ...repeated(spec.hostAliases, child(at, "hostAliases"), "ip"),
    ...repeated(spec.imagePullSecrets, child(at, "imagePullSecrets"), "name"),
    ...(spec.imagePullSecrets ?? []).flatMap(({ name }, i) =>
      name ? [] : [`${child(index(child(at, "imagePullSecrets"), i), "name")}: invalid empty name ""`],
    ),
    ...repeated(spec.volumes, child(at, "volumes"), "name"),
    ...fractions(spec.overhead, "memory", child(at, "overhead")),
    ...fractions(spec.overhead, "ephemeral-storage", child(at, "overhead")),
    ...(spec.securityContext?.seccompProfile ? [] : annotated(seccompPod, seccompText)),
    ...containerLists.flatMap((list) =>
      (spec[list] ?? []).flatMap((container, i) => [
        ...(container.securityContext?.seccompProfile ? [] : annotated(`${seccompContainer}${container.name}`, seccompText)),
        ...containerWarnings(container, index(child(at, list), i)),
      ]),
    ),
  ];
}

const seccompText = 'deprecated since v1.19; use the "seccompProfile" field instead';

function nodeLabelWarnings({ nodeSelector, affinity, topologySpreadConstraints }: PodSpec, path: string): string[] {
  const { requiredDuringSchedulingIgnoredDuringExecution: required, preferredDuringSchedulingIgnoredDuringExecution: preferred } =
    affinity?.nodeAffinity ?? {};
  const at = child(path, "affinity", "nodeAffinity");
  const terms = child(at, "requiredDuringSchedulingIgnoredDuringExecution", "nodeSelectorTerms");
  const wishes = child(at, "preferredDuringSchedulingIgnoredDuringExecution");
  return [
    ...Object.keys(nodeSelector ?? {}).flatMap((key) => labelWarning(key, mapKey(child(path, "nodeSelector"), key), "")),
    ...(required?.nodeSelectorTerms ?? []).flatMap((term, i) => termWarnings(term, index(terms, i))),
    ...(preferred ?? []).flatMap((wish, i) => termWarnings(wish.preference, child(index(wishes, i), "preference"))),
    ...(topologySpreadConstraints ?? []).flatMap(({ topologyKey = "" }, i) =>
      labelWarning(topologyKey, child(index(child(path, "topologySpreadConstraints"), i), "topologyKey")),
    ),
  ];
}

function termWarnings(term: NodeSelectorTerm | undefined, path: string): string[] {
  return (term?.matchExpressions ?? []).flatMap(({ key = "" }, i) =>
    labelWarning(key, child(index(child(path, "matchExpressions"), i), "key")),
  );
}

function labelWarning(label: string, path: string, subject = `${label} is `): string[] {
  return Object.hasOwn(deprecatedNodeLabels, label) ? [`${path}: ${subject}${deprecatedNodeLabels[label]}`] : [];
}

/** Warnings for duplicate items, at the second occurrence. */
function repeated<K extends "ip" | "name">(
  list: readonly { [key in K]?: string }[] | undefined,
  path: string,
  field: K,
): string[] {
  const seen = new Set<string>();
  return (list ?? []).flatMap((item, i) => {
    const value = item[field] ?? "";
    if (seen.has(value)) return [`${child(index(path, i), field)}: duplicate ${field} ${goQuote(value)}`];
    seen.add(value);
    return [];
  });
}

function containerWarnings({ env, resources }: Container, path: string): string[] {
  const at = child(path, "resources");
  return [
    ...(["memory", "ephemeral-storage"] as const).flatMap((name) =>
      (["limits", "requests"] as const).flatMap((kind) => fractions(resources?.[kind], name, child(at, kind))),
    ),
    ...repeated(env, child(path, "env"), "name"),
  ];
}

function fractions(amounts: ResourceList | undefined, name: "memory" | "ephemeral-storage", path: string): string[] {
  const amount = amounts?.[name];
  const quantity = amount === undefined ? undefined : quantityOf(amount);
  if (quantity === undefined || quantity.milliValue() % 1000 === 0) return [];
  return [`${mapKey(path, name)}: fractional byte value ${goQuote(quantity.toString())} is invalid, must be an integer`];
}

import type { DaemonSet } from "@coxswain/apimachinery/objects/schema/kinds/apps/v1";
import type {
  NodeSelector,
  NodeSelectorRequirement,
  Pod,
  PodSpec,
  PodTemplateSpec,
  Toleration,
} from "@coxswain/apimachinery/objects/schema/kinds/core/v1";

/** Label of revisions and Pods with the hash of the template. */
export const hashLabel = "controller-revision-hash";
const generationLabel = "pod-template-generation";
const generationAnnotation = "deprecated.daemonset.template.generation";

/**
 * The template with which Pods are created: adds revision labels and the tolerations that keep Pods on unhealthy nodes.
 * Source: pkg/controller/daemon/util/daemonset_util.go CreatePodTemplate
 */
export function podTemplateOf({ metadata, spec }: DaemonSet, hash: string): PodTemplateSpec {
  const { template } = spec;
  const generation = generationOf(metadata.annotations?.[generationAnnotation]);
  return {
    ...template,
    metadata: {
      ...template.metadata,
      labels: {
        ...template.metadata?.labels,
        ...(generation === undefined ? {} : { [generationLabel]: generation }),
        [hashLabel]: hash,
      },
    },
    spec: withDaemonTolerations(template.spec ?? { containers: [] }),
  };
}

/** Pure: the annotation as a whole number of 64 bits; undefined when it is absent or malformed. Source: GetTemplateGeneration */
function generationOf(text: string | undefined): string | undefined {
  if (text === undefined || !/^[+-]?\d+$/.test(text)) return undefined;
  const generation = BigInt(text.replace(/^\+/, ""));
  return BigInt.asIntN(64, generation) === generation ? String(generation) : undefined;
}

/** Restricts the template to one node by node affinity. Source: ReplaceDaemonSetPodNodeNameNodeAffinity */
export function pinnedTo(template: PodTemplateSpec, nodeName: string): PodTemplateSpec {
  const pin: NodeSelector = { nodeSelectorTerms: [{ matchFields: [{ key: nameField, operator: "In", values: [nodeName] }] }] };
  const { affinity: own } = template.spec ?? {};
  const affinity = { ...own, nodeAffinity: { ...own?.nodeAffinity, requiredDuringSchedulingIgnoredDuringExecution: pin } };
  return { ...template, spec: { ...(template.spec ?? { containers: [] }), affinity } };
}

const nameField = "metadata.name";

/** The node that a Pod runs on or is pinned to; undefined without either. */
export function targetNodeOf({ spec }: Pod): string | undefined {
  if (spec.nodeName) return spec.nodeName;
  const terms = spec.affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution?.nodeSelectorTerms ?? [];
  const pin = terms
    .flatMap(({ matchFields = [] }): NodeSelectorRequirement[] => matchFields)
    .find(({ key, operator }) => key === nameField && operator === "In");
  return pin?.values?.length === 1 ? pin.values[0] : undefined;
}

const tolerated: readonly (readonly [condition: string, effect: "NoExecute" | "NoSchedule"])[] = [
  ["not-ready", "NoExecute"],
  ["unreachable", "NoExecute"],
  ["disk-pressure", "NoSchedule"],
  ["memory-pressure", "NoSchedule"],
  ["pid-pressure", "NoSchedule"],
  ["unschedulable", "NoSchedule"],
];
/** Pods with hostNetwork do not need the Pod network. */
const toleratedWithHostNetwork = ["network-unavailable", "NoSchedule"] as const;

/**
 * Returns the Pod spec with the tolerations of DaemonSet Pods, replacing time-limited ones.
 * Source: daemonset_util.go AddOrUpdateDaemonPodTolerations
 */
export function withDaemonTolerations(spec: PodSpec): PodSpec {
  const own = [...(spec.tolerations ?? [])];
  for (const [condition, effect] of spec.hostNetwork === true ? [...tolerated, toleratedWithHostNetwork] : tolerated) {
    const toleration: Toleration = { key: `node.kubernetes.io/${condition}`, operator: "Exists", effect };
    const at = own.findIndex((had) => sameButForTime(had, toleration));
    if (at < 0) own.push(toleration);
    else own[at] = toleration; // a toleration with tolerationSeconds would let the Pod be evicted
  }
  return { ...spec, tolerations: own };
}

function sameButForTime(a: Toleration, b: Toleration): boolean {
  return a.key === b.key && a.effect === b.effect && a.operator === b.operator && (a.value ?? "") === (b.value ?? "");
}

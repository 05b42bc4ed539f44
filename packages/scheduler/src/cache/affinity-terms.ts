import { messageOf } from "@coxswain/apimachinery/objects/errors/message";
import type { Pod, PodAffinityTerm, WeightedPodAffinityTerm } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { LabelSelector } from "@coxswain/apimachinery/objects/selectors/label-selector";

/** A parsed pod affinity term: the pods it selects, and the node label that defines its topology domains. */
export interface AffinityTerm {
  readonly namespaces: ReadonlySet<string>;
  /** Selects further namespaces by their labels. */
  readonly namespaceSelector: LabelSelector;
  readonly selector: LabelSelector;
  readonly topologyKey: string;
}

export interface WeightedAffinityTerm extends AffinityTerm {
  readonly weight: number;
}

/** The affinity and anti-affinity terms of a pod, parsed once. */
export interface PodAffinityTerms {
  readonly required: readonly AffinityTerm[];
  readonly requiredAnti: readonly AffinityTerm[];
  readonly preferred: readonly WeightedAffinityTerm[];
  readonly preferredAnti: readonly WeightedAffinityTerm[];
  /** Set when a selector is invalid; such a pod is unschedulable. */
  readonly parseError?: string;
}

/** @returns undefined for a pod without affinity terms. Source: pkg/scheduler/framework/types.go PodInfo.Update */
export function parseAffinity(pod: Pod): PodAffinityTerms | undefined {
  const { podAffinity, podAntiAffinity } = pod.spec.affinity ?? {};
  if (podAffinity === undefined && podAntiAffinity === undefined) return undefined;
  try {
    const terms: PodAffinityTerms = {
      required: (podAffinity?.requiredDuringSchedulingIgnoredDuringExecution ?? []).map((term) => parse(pod, term)),
      requiredAnti: (podAntiAffinity?.requiredDuringSchedulingIgnoredDuringExecution ?? []).map((term) => parse(pod, term)),
      preferred: (podAffinity?.preferredDuringSchedulingIgnoredDuringExecution ?? []).map((term) => parseWeighted(pod, term)),
      preferredAnti: (podAntiAffinity?.preferredDuringSchedulingIgnoredDuringExecution ?? []).map((term) =>
        parseWeighted(pod, term),
      ),
    };
    return Object.values(terms).some((list: readonly unknown[]) => list.length > 0) ? terms : undefined;
  } catch (err) {
    return { required: [], requiredAnti: [], preferred: [], preferredAnti: [], parseError: messageOf(err) };
  }
}

function parse({ metadata }: Pod, term: PodAffinityTerm): AffinityTerm {
  const named = term.namespaces ?? [];
  // A term without namespaces and namespaceSelector applies to the pod's own namespace.
  const namespaces = named.length === 0 && term.namespaceSelector === undefined ? [metadata.namespace ?? ""] : named;
  return {
    namespaces: new Set(namespaces),
    namespaceSelector: LabelSelector.ofCached(term.namespaceSelector),
    selector: LabelSelector.ofCached(term.labelSelector),
    topologyKey: term.topologyKey,
  };
}

const parseWeighted = (pod: Pod, { weight, podAffinityTerm }: WeightedPodAffinityTerm): WeightedAffinityTerm => ({
  ...parse(pod, podAffinityTerm),
  weight,
});

/** @param namespaceLabels labels of the pod's namespace; undefined when namespaceSelector has been resolved to names */
export function matchesAffinityTerm(
  term: AffinityTerm,
  { metadata }: Pod,
  namespaceLabels?: Readonly<Record<string, string>>,
): boolean {
  if (!term.namespaces.has(metadata.namespace ?? "") && !term.namespaceSelector.matches(namespaceLabels)) return false;
  return term.selector.matches(metadata.labels);
}

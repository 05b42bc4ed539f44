import type { ObjectMeta } from "../objects/meta/types.ts";
import type { NodeSelectorRequirement, NodeSelectorTerm, Pod } from "../objects/schema/kinds/core/v1.ts";
import { listHas } from "../objects/selectors/value-list.ts";
import { labelOf } from "./labels.ts";

/** The part of a node that selectors refer to. */
interface Selectable {
  readonly metadata: Pick<ObjectMeta, "name"> & { readonly labels?: Readonly<Record<string, string>> };
}

/** Matches nodeSelector and required node affinity. @param pod its selector is never changed afterwards. Source: component-helpers scheduling/corev1/nodeaffinity */
export function matchesNode(pod: Pod, node: Selectable): boolean {
  const labels = node.metadata.labels ?? {};
  for (const [key, value] of entriesOf(pod.spec.nodeSelector)) if (labelOf(labels, key) !== value) return false;
  const required = pod.spec.affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution;
  return required === undefined || (required.nodeSelectorTerms ?? []).some((term) => matchesTerm(term, node));
}

/** A pure cache: node selectors are compared with every node, and listing the entries of a large one takes milliseconds. */
const entries = new WeakMap<object, readonly (readonly [key: string, value: string])[]>();

function entriesOf(selector: Readonly<Record<string, string>> | undefined): readonly (readonly [key: string, value: string])[] {
  return selector === undefined ? [] : entries.getOrInsertComputed(selector, () => Object.entries(selector));
}

/** True when all requirements match; a term without requirements matches nothing. */
export function matchesTerm(term: NodeSelectorTerm, node: Selectable): boolean {
  const expressions = term.matchExpressions ?? [];
  const fields = term.matchFields ?? [];
  if (expressions.length === 0 && fields.length === 0) return false;
  const labels = node.metadata.labels ?? {};
  return (
    expressions.every((requirement) => matchesRequirement(requirement, labelOf(labels, requirement.key))) &&
    fields.every((requirement) =>
      matchesRequirement(requirement, requirement.key === "metadata.name" ? node.metadata.name : undefined),
    )
  );
}

function matchesRequirement({ operator, values = [] }: NodeSelectorRequirement, value: string | undefined): boolean {
  switch (operator) {
    case "In":
      return value !== undefined && listHas(values, value);
    case "NotIn":
      return value === undefined || !listHas(values, value);
    case "Exists":
      return value !== undefined;
    case "DoesNotExist":
      return value === undefined;
    case "Gt":
    case "Lt": {
      const [bound] = values;
      if (value === undefined || bound === undefined || !isInteger(value) || !isInteger(bound)) return false;
      return operator === "Gt" ? BigInt(value) > BigInt(bound) : BigInt(value) < BigInt(bound);
    }
    default:
      return false;
  }
}

const isInteger = (text: string): boolean => /^[+-]?\d{1,19}$/.test(text);

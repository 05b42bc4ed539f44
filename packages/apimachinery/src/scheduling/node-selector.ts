import type { ObjectMeta } from "../objects/meta/types.ts";
import type { NodeSelectorRequirement, NodeSelectorTerm, Pod } from "../objects/schema/kinds/core/v1.ts";
import { listHas } from "../objects/selectors/value-list.ts";
import { labelOf } from "./labels.ts";

/** The part of a node that selectors refer to. */
interface Selectable {
  readonly metadata: Pick<ObjectMeta, "name"> & { readonly labels?: Readonly<Record<string, string>> };
}

/** False for a pod that `matchesNode` accepts on every node, because it has neither a nodeSelector nor required node affinity. */
export function selectsNodes({ spec }: Pod): boolean {
  return (
    spec.nodeSelector !== undefined || spec.affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution !== undefined
  );
}

/** Matches nodeSelector and required node affinity. @param pod its selector is never changed afterwards. Source: component-helpers scheduling/corev1/nodeaffinity */
export function matchesNode(pod: Pod, node: Selectable): boolean {
  const labels = node.metadata.labels ?? {};
  for (const [key, value] of entriesOf(pod.spec.nodeSelector)) if (labelOf(labels, key) !== value) return false;
  const required = pod.spec.affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution;
  if (required === undefined) return true;
  return matchingTerms(required.nodeSelectorTerms ?? [], itself, node).next().done !== true;
}

const itself = (term: NodeSelectorTerm): NodeSelectorTerm => term;

/** Fewer terms are compared with a node one by one. */
const manyTerms = 32;
/** Values of a requirement that are indexed. */
const mostIndexedValues = 64;

/** Terms by a label or name without which a node does not match them: comparing each of 25,000 terms with 5,000 nodes takes seconds. */
interface TermIndex<T> {
  readonly byKey: Map<string, T[]>;
  readonly byLabel: Map<string, T[]>;
  readonly byName: Map<string, T[]>;
  /** Terms that may match any node. */
  readonly others: T[];
}

const indexes = new WeakMap<readonly unknown[], TermIndex<unknown>>();

/**
 * The items whose term matches the node.
 * @param items never changed afterwards; always given with the same `termOf`
 */
export function* matchingTerms<T>(
  items: readonly T[],
  termOf: (item: T) => NodeSelectorTerm,
  node: Selectable,
): Generator<T, void, void> {
  if (items.length < manyTerms) {
    for (const item of items) if (matchesTerm(termOf(item), node)) yield item;
    return;
  }
  // cast: an index is made of the items of the list under which it is kept
  const index = (indexes.get(items) as TermIndex<T> | undefined) ?? indexOf(items, termOf);
  indexes.set(items, index);
  const { byKey, byLabel, byName, others } = index;
  const { name = "", labels = {} } = node.metadata;
  const candidates = [byName.get(name) ?? [], others];
  for (const key of Object.keys(labels)) {
    candidates.push(byKey.get(key) ?? [], byLabel.get(`${key}=${labels[key]}`) ?? []);
  }
  for (const found of candidates) for (const item of found) if (matchesTerm(termOf(item), node)) yield item;
}

function indexOf<T>(items: readonly T[], termOf: (item: T) => NodeSelectorTerm): TermIndex<T> {
  const index: TermIndex<T> = { byKey: new Map(), byLabel: new Map(), byName: new Map(), others: [] };
  const add = (map: Map<string, T[]>, key: string, item: T): void => void map.getOrInsertComputed(key, () => []).push(item);
  const isShort = ({ operator, values = [] }: NodeSelectorRequirement): boolean =>
    operator === "In" && values.length <= mostIndexedValues;
  for (const item of items) {
    const { matchExpressions = [], matchFields = [] } = termOf(item);
    const label = matchExpressions.find(isShort);
    const field = matchFields.find((requirement) => requirement.key === "metadata.name" && isShort(requirement));
    const present = matchExpressions.find(({ operator }) => operator !== "NotIn" && operator !== "DoesNotExist");
    if (label !== undefined) for (const value of new Set(label.values)) add(index.byLabel, `${label.key}=${value}`, item);
    else if (field !== undefined) for (const value of new Set(field.values)) add(index.byName, value, item);
    else if (present !== undefined) add(index.byKey, present.key, item);
    else index.others.push(item);
  }
  return index;
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

/** As Go reads it: of 64 bits. */
const isInteger = (text: string): boolean => /^[+-]?\d+$/.test(text) && BigInt.asIntN(64, BigInt(text)) === BigInt(text);

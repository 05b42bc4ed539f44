/**
 * Brings a set to the present schema, when it was written while something that is now one value was owned piece by piece,
 * or the other way round.
 *
 * A set cannot tell a container that was one value from one that was empty when it was set (`resources: {}`), or whose
 * fields others took one by one: as upstream has it, the owner of either owns what is in it now.
 * Source: structured-merge-diff v4 typed/reconcile_schema.go
 */
import type { ApplyType } from "./apply-type.ts";
import type { FieldNode, FieldSet } from "./field-set.ts";
import type { PathElement } from "./path-element.ts";
import { fieldSetOf } from "./typed-value.ts";

/** Most sets are in order and stay so, whatever the object holds. */
const inOrder = new WeakMap<FieldSet, ApplyType>();

/**
 * @param live the object as it is, in the version of the set
 * @returns the same set when it is in order. Fields that the schema does not have stay.
 */
export function reconcile(set: FieldSet, type: ApplyType, live: unknown): FieldSet {
  if (inOrder.get(set) === type) return set;
  const object = new Live(type, live);
  const reconciled = reconcileBelow(set, type, [], object);
  if (!object.asked) inOrder.set(reconciled, type);
  return reconciled;
}

/** What the object has, worked out when it is asked for. */
class Live {
  readonly #type: ApplyType;
  readonly #value: unknown;
  #set: FieldSet | undefined;

  constructor(type: ApplyType, value: unknown) {
    this.#type = type;
    this.#value = value;
  }

  get asked(): boolean {
    return this.#set !== undefined;
  }

  below(path: readonly PathElement[]): FieldSet | undefined {
    this.#set ??= fieldSetOf(this.#type, this.#value, true);
    let nodes: FieldSet | undefined = this.#set;
    for (const element of path) nodes = nodes?.get(element)?.children;
    return nodes;
  }
}

function reconcileBelow(nodes: FieldSet, type: ApplyType, path: PathElement[], live: Live): FieldSet {
  let made: Map<PathElement, FieldNode> | undefined;
  for (const [element, node] of nodes) {
    const inner = typeAt(type, element);
    if (inner === undefined) continue;
    path.push(element);
    const next = reconcileNode(node, inner, path, live);
    path.pop();
    if (next === node) continue;
    made ??= new Map(nodes);
    made.set(element, next);
  }
  return made ?? nodes;
}

function reconcileNode(node: FieldNode, type: ApplyType, path: PathElement[], live: Live): FieldNode {
  if (type.kind === "scalar") return node;
  if (node.children === undefined) {
    const children = isAtomic(type) ? undefined : live.below(path);
    return children === undefined || children.size === 0 ? node : { member: true, children };
  }
  if (isAtomic(type)) return { member: true, children: undefined };
  const children = reconcileBelow(node.children, type, path, live);
  return children === node.children ? node : { member: node.member, children };
}

function isAtomic(type: Exclude<ApplyType, { kind: "scalar" }>): boolean {
  return type.kind === "list" ? type.relation === "atomic" : type.atomic;
}

/** @returns undefined for what the schema does not have */
function typeAt(type: ApplyType, element: PathElement): ApplyType | undefined {
  switch (type.kind) {
    case "list":
      return type.element;
    case "map":
      return type.value;
    case "struct":
      return type.fieldsByElement.get(element)?.type ?? type.other;
    default:
      return type;
  }
}

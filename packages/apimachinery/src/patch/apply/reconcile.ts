/**
 * Brings a set to the present schema, when it was written while something that is now one value was owned piece by piece.
 *
 * Upstream also gives the owner of a whole, non-atomic container everything that the object has in it now. A set cannot
 * tell such a container from one that was empty when it was set (`resources: {}`), whose owner would take what others put
 * into it, and remove it with the next apply; so it stays as it is here.
 * Source: structured-merge-diff v4 typed/reconcile_schema.go
 */
import type { ApplyType } from "./apply-type.ts";
import type { FieldNode, FieldSet } from "./field-set.ts";
import { displayPath, type PathElement } from "./path-element.ts";
import { TypedValueError } from "./validate.ts";

/** Most sets are in order and stay so. */
const inOrder = new WeakMap<FieldSet, ApplyType>();

/**
 * @returns the same set when it is in order
 * @throws TypedValueError for a field that the schema does not have
 */
export function reconcile(set: FieldSet, type: ApplyType): FieldSet {
  if (inOrder.get(set) === type) return set;
  const reconciled = reconcileBelow(set, type, []);
  inOrder.set(reconciled, type);
  return reconciled;
}

function reconcileBelow(nodes: FieldSet, type: ApplyType, path: PathElement[]): FieldSet {
  if (type.kind === "scalar" || type.kind === "any") return nodes;
  let made: Map<PathElement, FieldNode> | undefined;
  for (const [element, node] of nodes) {
    path.push(element);
    const next = reconcileNode(node, typeAt(type, element, path), path);
    path.pop();
    if (next === node) continue;
    made ??= new Map(nodes);
    made.set(element, next);
  }
  return made ?? nodes;
}

function reconcileNode(node: FieldNode, type: ApplyType, path: PathElement[]): FieldNode {
  if (node.children === undefined) return node;
  if (isAtomic(type)) return { member: true, children: undefined };
  const children = reconcileBelow(node.children, type, path);
  return children === node.children ? node : { member: node.member, children };
}

function isAtomic(type: ApplyType): boolean {
  if (type.kind === "list") return type.relation === "atomic";
  return (type.kind === "map" || type.kind === "struct") && type.atomic;
}

function typeAt(type: ApplyType, element: PathElement, path: readonly PathElement[]): ApplyType {
  switch (type.kind) {
    case "list":
      return type.element;
    case "map":
      return type.value;
    case "struct": {
      const declared = type.fieldsByElement.get(element)?.type ?? type.other;
      if (declared !== undefined && element.startsWith("f:")) return declared;
      throw new TypedValueError([`${displayPath(path)}: field not declared in schema`]);
    }
    default:
      return type;
  }
}

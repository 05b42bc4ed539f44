/**
 * Adapts a set to the current schema after a type changed from granular to atomic or vice versa.
 *
 * A set does not distinguish a container that was atomic from one that was set empty (`resources: {}`), or whose fields
 * other managers took over one by one. As upstream, the owner of any of these becomes the owner of the current contents.
 * Source: structured-merge-diff v4 typed/reconcile_schema.go
 */
import { Pace, type Steps } from "../../../process/event-loop/steps.ts";
import { valuesPerStep } from "../../meta/deep-equal.ts";
import type { ApplyType } from "./apply-type.ts";
import type { FieldNode, FieldSet } from "./field-set.ts";
import type { PathElement } from "./path-element.ts";
import { fieldSetInSteps } from "./typed-value.ts";

/** Sets known to match the type regardless of the object's contents. A pure cache: sets and types do not change. */
const inOrder = new WeakMap<FieldSet, ApplyType>();

/**
 * @param live the current object, in the version of the set
 * @returns the same set when it matches the schema. Fields unknown to the schema are kept.
 */
export function* reconcileInSteps(set: FieldSet, type: ApplyType, live: unknown): Steps<FieldSet> {
  if (inOrder.get(set) === type) return set;
  const object = new Live(type, live);
  const reconciled = yield* reconcileBelow(set, type, [], object);
  if (!object.requested) inOrder.set(reconciled, type);
  return reconciled;
}

/** The fields of the live object, computed on demand. */
class Live {
  readonly #type: ApplyType;
  readonly #value: unknown;
  readonly pace = new Pace(valuesPerStep);
  #set: FieldSet | undefined;

  constructor(type: ApplyType, value: unknown) {
    this.#type = type;
    this.#value = value;
  }

  get requested(): boolean {
    return this.#set !== undefined;
  }

  *below(path: readonly PathElement[]): Steps<FieldSet | undefined> {
    this.#set ??= yield* fieldSetInSteps(this.#type, this.#value, true);
    let nodes: FieldSet | undefined = this.#set;
    for (const element of path) nodes = nodes?.get(element)?.children;
    return nodes;
  }
}

function* reconcileBelow(nodes: FieldSet, type: ApplyType, path: PathElement[], live: Live): Steps<FieldSet> {
  let made: Map<PathElement, FieldNode> | undefined;
  for (const [element, node] of nodes) {
    if (live.pace.isDue()) yield;
    const inner = typeAt(type, element);
    if (inner === undefined || inner.kind === "scalar") continue;
    path.push(element);
    const next = yield* reconcileNode(node, inner, path, live);
    path.pop();
    if (next === node) continue;
    made ??= new Map(nodes);
    made.set(element, next);
  }
  return made ?? nodes;
}

function* reconcileNode(node: FieldNode, type: Container, path: PathElement[], live: Live): Steps<FieldNode> {
  if (node.children === undefined) {
    const children = isAtomic(type) ? undefined : yield* live.below(path);
    return children === undefined || children.size === 0 ? node : { member: true, children };
  }
  if (isAtomic(type)) return { member: true, children: undefined };
  const children = yield* reconcileBelow(node.children, type, path, live);
  return children === node.children ? node : { member: node.member, children };
}

type Container = Exclude<ApplyType, { kind: "scalar" }>;

function isAtomic(type: Container): boolean {
  return type.kind === "list" ? type.relation === "atomic" : type.atomic;
}

/** @returns undefined for an element unknown to the schema */
function typeAt(type: ApplyType, element: PathElement): ApplyType | undefined {
  switch (type.kind) {
    case "list":
      return type.element;
    case "map":
      return type.value;
    case "struct":
      return (element.startsWith("f:") ? type.fields.get(element.slice(2))?.type : undefined) ?? type.other;
    default:
      return type;
  }
}

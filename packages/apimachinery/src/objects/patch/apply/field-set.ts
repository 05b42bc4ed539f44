/**
 * A set of fields, as in `metadata.managedFields`: a tree of path elements, whose nodes record whether the field itself is a
 * member. Sets are immutable. Operations return their argument when nothing changes, and share unchanged subtrees.
 * Source: structured-merge-diff v4 fieldpath/set.go, serialize.go
 */

import { atOnce, type Steps } from "../../../process/event-loop/steps.ts";
import { type FieldsV1, sharedFields, sharedFieldsInSteps, textOfFields } from "../../codec/fields-v1.ts";
import { encodeUntyped } from "../../codec/json.ts";
import { valuesPerStep } from "../../meta/deep-equal.ts";
import { type Path, type PathElement, readElement, sortElements, sortedElementsInSteps } from "./path-element.ts";

export type FieldSet = ReadonlyMap<PathElement, FieldNode>;

/** A tree has only nodes that are members or have members below them. */
export interface FieldNode {
  readonly member: boolean;
  readonly children: FieldSet | undefined;
}

export const emptySet: FieldSet = new Map();

const leaf: FieldNode = { member: true, children: undefined };

/** Builds a set; not usable after `set()`. */
export class FieldSetBuilder {
  #nodes: Map<PathElement, FieldNode> | undefined;

  /** Ignores the empty path: the object as a whole has no owner. */
  insert(path: Path): void {
    if (path.length === 0) return;
    this.#nodes ??= new Map();
    let nodes = this.#nodes;
    const last = path.length - 1;
    for (let i = 0; i < last; i++) nodes = childrenOf(nodes, path[i]!);
    addMember(nodes, path[last]!);
  }

  /** The mutable children below a path. */
  below(path: Path): Map<PathElement, FieldNode> {
    this.#nodes ??= new Map();
    let nodes = this.#nodes;
    for (const element of path) nodes = childrenOf(nodes, element);
    return nodes;
  }

  set(): FieldSet {
    return this.#nodes === undefined ? emptySet : withoutEmpty(this.#nodes);
  }
}

/** The mutable children of a node while its tree is being built. */
export function childrenOf(nodes: Map<PathElement, FieldNode>, element: PathElement): Map<PathElement, FieldNode> {
  const node = nodes.get(element);
  // Cast: only this file makes sets, and makes them of maps.
  if (node?.children !== undefined) return node.children as Map<PathElement, FieldNode>;
  const children = new Map<PathElement, FieldNode>();
  nodes.set(element, { member: node?.member ?? false, children });
  return children;
}

/** Marks a field as a member while its tree is being built. */
export function addMember(nodes: Map<PathElement, FieldNode>, element: PathElement): void {
  const node = nodes.get(element);
  if (node === undefined) nodes.set(element, leaf);
  else if (!node.member) nodes.set(element, { member: true, children: node.children });
}

/** Removes nodes without members, in place. */
function withoutEmpty(nodes: Map<PathElement, FieldNode>): FieldSet {
  for (const [element, node] of nodes) {
    if (node.children === undefined) continue;
    withoutEmpty(node.children as Map<PathElement, FieldNode>); // cast: only this file makes sets, and makes them of maps
    if (node.children.size > 0) continue;
    if (node.member) nodes.set(element, leaf);
    else nodes.delete(element);
  }
  return nodes;
}

/** The set of the given paths. */
export function setOf(...paths: Path[]): FieldSet {
  const builder = new FieldSetBuilder();
  for (const path of paths) builder.insert(path);
  return builder.set();
}

/** True when the field itself is a member; members below it do not count. */
export function has(set: FieldSet, path: Path): boolean {
  let nodes: FieldSet | undefined = set;
  for (let i = 0; i < path.length - 1; i++) nodes = nodes?.get(path[i]!)?.children;
  return path.length > 0 && nodes?.get(path.at(-1)!)?.member === true;
}

/** Fields in either set. */
export function union(a: FieldSet, b: FieldSet): FieldSet {
  if (b.size === 0 || a === b) return a;
  if (a.size === 0) return b;
  let made: Map<PathElement, FieldNode> | undefined;
  for (const [element, other] of b) {
    const node = a.get(element);
    const joined = node === undefined ? other : unionOfNodes(node, other);
    if (joined === node) continue;
    made ??= new Map(a);
    made.set(element, joined);
  }
  return made ?? a;
}

/** Fields in any of the sets. Divides and conquers: a sequential union would copy the growing result for each set. */
export function unionAll(sets: readonly FieldSet[]): FieldSet {
  if (sets.length <= 1) return sets[0] ?? emptySet;
  const middle = sets.length >> 1;
  return union(unionAll(sets.slice(0, middle)), unionAll(sets.slice(middle)));
}

function unionOfNodes(a: FieldNode, b: FieldNode): FieldNode {
  if (a === b) return a;
  const member = a.member || b.member;
  const children = a.children === undefined ? b.children : b.children === undefined ? a.children : union(a.children, b.children);
  return member === a.member && children === a.children ? a : { member, children };
}

/** Fields in both sets. */
export function intersection(a: FieldSet, b: FieldSet): FieldSet {
  if (a.size === 0 || b.size === 0) return emptySet;
  if (a === b) return a;
  const [small, large] = a.size <= b.size ? [a, b] : [b, a];
  let made: Map<PathElement, FieldNode> | undefined;
  for (const [element, node] of small) {
    const other = large.get(element);
    if (other === undefined) continue;
    const member = node.member && other.member;
    const children =
      node.children !== undefined && other.children !== undefined ? intersection(node.children, other.children) : emptySet;
    if (!member && children.size === 0) continue;
    made ??= new Map();
    const isWhole = member === node.member && children.size === (node.children?.size ?? 0) && children.size === 0;
    made.set(element, isWhole ? node : { member, children: children.size > 0 ? children : undefined });
  }
  return made ?? emptySet;
}

/**
 * Fields in `a` and not in `b`, regardless of nesting: removing `.a` leaves `.a.b`.
 */
export function difference(a: FieldSet, b: FieldSet): FieldSet {
  return subtract(a, b, false);
}

/** As `difference`, but also removes everything below the fields of `b`. */
export function recursiveDifference(a: FieldSet, b: FieldSet): FieldSet {
  return subtract(a, b, true);
}

function subtract(a: FieldSet, b: FieldSet, recursive: boolean): FieldSet {
  if (a.size === 0 || b.size === 0) return a;
  let made: Map<PathElement, FieldNode> | undefined;
  for (const [element, other] of b) {
    const node = a.get(element);
    if (node === undefined) continue;
    const member = node.member && !other.member;
    let children = node.children;
    if (children !== undefined) {
      if (recursive && other.member) children = undefined;
      else if (other.children !== undefined) children = subtract(children, other.children, recursive);
    }
    if (member === node.member && children === node.children) continue;
    made ??= new Map(a);
    if (children?.size === 0) children = undefined;
    if (member || children !== undefined) made.set(element, { member, children });
    else made.delete(element);
  }
  return made ?? a;
}

/** Whether both have the same members; fast for sets that share structure. */
export function equal(a: FieldSet, b: FieldSet): boolean {
  if (a === b) return true;
  if (a.size !== b.size) return false;
  for (const [element, node] of a) {
    const other = b.get(element);
    if (other === node) continue;
    if (other === undefined || other.member !== node.member) return false;
    if (!equal(node.children ?? emptySet, other.children ?? emptySet)) return false;
  }
  return true;
}

/** Paths of all members, parents before children, in FieldsV1 order. */
export function paths(set: FieldSet): Path[] {
  const found: Path[] = [];
  const visit = (nodes: FieldSet, prefix: Path): void => {
    const elements = sortElements([...nodes.keys()]);
    for (const element of elements) if (nodes.get(element)?.member) found.push([...prefix, element]);
    for (const element of elements) {
      const children = nodes.get(element)?.children;
      if (children !== undefined) visit(children, [...prefix, element]);
    }
  };
  visit(set, []);
  return found;
}

/** Cache of decoded sets by interned (immutable) FieldsV1 object. */
const sets = new WeakMap<object, FieldSet>();

/**
 * Decodes FieldsV1.
 * @throws Error for a key that is not a path element
 */
export function readFieldsV1(fields: Readonly<Record<string, unknown>> | undefined | null): FieldSet {
  if (fields === undefined || fields === null) return emptySet;
  return setOfShared(shareFieldsV1(fields));
}

/** Interns FieldsV1, see `sharedFields`. @throws Error for a value that is not an object */
export function shareFieldsV1(fields: FieldsV1): FieldsV1 {
  return textOfFields(fields) === undefined ? sharedFields(encodeUntyped(fields).toString()) : fields;
}

function setOfShared(fields: FieldsV1): FieldSet {
  let set = sets.get(fields);
  if (set === undefined) {
    set = readNodes(fields) ?? emptySet;
    sets.set(fields, set);
  }
  return set;
}

function readNodes(fields: Readonly<Record<string, unknown>>): FieldSet | undefined {
  let nodes: Map<PathElement, FieldNode> | undefined;
  for (const key in fields) {
    if (key === ".") continue;
    const element = readElement(key);
    if (element === undefined) continue;
    const value = fields[key];
    let node = leaf;
    if (value !== null) {
      if (typeof value !== "object" || Array.isArray(value)) throw new Error(`expected an object of fields at ${key}`);
      const children = readNodes(value as Record<string, unknown>); // cast: the line above refuses what is no object
      if (children !== undefined) node = { member: Object.hasOwn(value, "."), children };
    }
    nodes ??= new Map();
    const before = nodes.get(element);
    nodes.set(element, before === undefined ? node : unionOfNodes(before, node));
  }
  return nodes;
}

/** Encodes a set as FieldsV1, keys in upstream's order. The result is interned and read-only. */
export function toFieldsV1(set: FieldSet): FieldsV1 {
  return atOnce(toFieldsV1InSteps(set));
}

/** As `toFieldsV1`, for sets of any size. */
export function* toFieldsV1InSteps(set: FieldSet): Steps<FieldsV1> {
  const text = yield* textOf(set, false);
  yield;
  const fields = yield* sharedFieldsInSteps(text);
  if (!sets.has(fields)) sets.set(fields, set);
  return fields;
}

function* textOf(nodes: FieldSet, self: boolean): Steps<string> {
  let text = self ? '{".":{}' : "";
  let count = 0;
  for (const element of yield* sortedElementsInSteps([...nodes.keys()])) {
    const { member, children } = nodes.get(element)!;
    text += `${text === "" ? "{" : ","}${quoted(element)}:${children === undefined ? "{}" : yield* textOf(children, member)}`;
    if (++count % valuesPerStep === 0) yield;
  }
  return text === "" ? "{}" : `${text}}`;
}

const needsEscape = /["\\\u0000-\u001f\ud800-\udfff]/;

/** A path element as a JSON string. */
export function quoted(element: PathElement): string {
  return needsEscape.test(element) ? JSON.stringify(element) : `"${element}"`;
}

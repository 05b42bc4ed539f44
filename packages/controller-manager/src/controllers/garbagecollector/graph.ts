import { deepEqual } from "@coxswain/apimachinery/meta/deep-equal";
import { foregroundFinalizer, orphanFinalizer } from "@coxswain/apimachinery/meta/finalizers";
import type { ObjectMeta, OwnerReference } from "@coxswain/apimachinery/meta/types";

/** Enough to find an object on the server. */
export interface Identity {
  readonly apiVersion: string;
  readonly kind: string;
  /** `""` for a cluster-scoped object. */
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
}

/** An object as far as its deletion concerns others. */
export interface GraphNode {
  identity: Identity;
  owners: readonly OwnerReference[];
  readonly dependents: Set<GraphNode>;
  beingDeleted: boolean;
  /** Deleted in the foreground: it goes when its blocking dependents are gone. */
  deletingDependents: boolean;
  /** Only an owner reference tells of it; nobody has seen it yet. */
  virtual: boolean;
}

/** What an event makes necessary to look at, by uid. */
export interface Effects {
  readonly attemptToDelete: readonly string[];
  readonly attemptToOrphan: readonly string[];
  /** Who names an object of another namespace as its owner, to be told so; absent when nobody does. */
  readonly misplaced?: readonly Misplaced[];
}

export interface Misplaced {
  readonly dependent: Identity;
  readonly owner: OwnerReference;
}

/**
 * Owners and dependents, kept up to date by what is observed of each object. Pure in the sense that it only answers
 * which objects have to be looked at; looking and deleting is the controller's.
 * Source: pkg/controller/garbagecollector/graph_builder.go
 */
export interface OwnerGraph {
  get(uid: string): GraphNode | undefined;
  /** An object exists, in this state. */
  observe(identity: Identity, metadata: ObjectMeta): Effects;
  /** An object is gone: a watch said so. */
  forget(uid: string): Effects;
  /**
   * The server has no object of this uid under this name. Whoever names the uid so has no such owner; others may be
   * right: a reference can say anything, and must not take their owner from them.
   * @param absent its namespace is `""` where the kind has none
   * @returns `askAgain` when the object is to be looked for under another of its names, later
   */
  absent(absent: Identity): Effects & { readonly askAgain: boolean };
  readonly size: number;
}

export function newOwnerGraph(): OwnerGraph {
  const nodes = new Map<string, GraphNode>();

  /** Links a node to these owners; an owner that nobody knows becomes a virtual node that has to be looked for. */
  const link = (node: GraphNode, owners: readonly OwnerReference[], found: EffectsBuilder): void => {
    for (const owner of owners) {
      let ownerNode = nodes.get(owner.uid);
      if (ownerNode === undefined) {
        const { apiVersion, kind, name, uid } = owner;
        ownerNode = newNode({ apiVersion, kind, namespace: node.identity.namespace, name, uid });
        ownerNode.virtual = true;
        nodes.set(uid, ownerNode);
        found.attemptToDelete.add(uid);
      } else if (!ownerNode.virtual && !isNamedBy(owner, node, ownerNode)) {
        found.attemptToDelete.add(node.identity.uid); // there is no such owner where it is looked for
        if (isElsewhere(ownerNode, node)) found.misplaced.push({ dependent: node.identity, owner });
      }
      ownerNode.dependents.add(node);
    }
  };
  const unlink = (node: GraphNode, owners: readonly OwnerReference[]): void => {
    for (const { uid } of owners) {
      const ownerNode = nodes.get(uid);
      ownerNode?.dependents.delete(node);
      if (ownerNode?.virtual && ownerNode.dependents.size === 0) nodes.delete(uid);
    }
  };
  /** Of an owner that is not what they thought. */
  const lookAtDependents = (node: GraphNode, found: EffectsBuilder): void => {
    for (const dependent of node.dependents) {
      found.attemptToDelete.add(dependent.identity.uid);
      const owner = dependent.owners.find(({ uid }) => uid === node.identity.uid);
      if (owner !== undefined && isElsewhere(node, dependent)) found.misplaced.push({ dependent: dependent.identity, owner });
    }
  };
  /** Owners that wait for their dependents may have one fewer to wait for. */
  const wakeUnblockedOwners = (
    before: readonly OwnerReference[],
    now: readonly OwnerReference[],
    found: EffectsBuilder,
  ): void => {
    const blocking = new Set(now.filter(isBlocking).map(({ uid }) => uid));
    for (const owner of before.filter(isBlocking)) if (!blocking.has(owner.uid)) found.attemptToDelete.add(owner.uid);
  };
  const transitions = (node: GraphNode, metadata: ObjectMeta, found: EffectsBuilder): void => {
    if (!metadata.deletionTimestamp) return;
    node.beingDeleted = true;
    const finalizers = metadata.finalizers ?? [];
    if (finalizers.includes(orphanFinalizer)) found.attemptToOrphan.add(node.identity.uid);
    if (!finalizers.includes(foregroundFinalizer)) return;
    if (!node.deletingDependents) {
      node.deletingDependents = true;
      for (const { identity } of node.dependents) found.attemptToDelete.add(identity.uid);
    }
    found.attemptToDelete.add(node.identity.uid);
  };

  const forget = (uid: string): Effects => {
    const found = newEffects();
    const node = nodes.get(uid);
    if (node === undefined) return found.build();
    nodes.delete(uid);
    unlink(node, node.owners);
    for (const dependent of node.dependents) found.attemptToDelete.add(dependent.identity.uid);
    for (const owner of node.owners) if (nodes.get(owner.uid)?.deletingDependents) found.attemptToDelete.add(owner.uid);
    return found.build();
  };

  return {
    get: (uid) => nodes.get(uid),
    observe(identity, metadata) {
      const found = newEffects();
      const owners = metadata.ownerReferences ?? [];
      const node = nodes.getOrInsertComputed(identity.uid, () => newNode(identity));
      if (node.virtual) {
        // What the reference said may not be so; then those who named it wrongly have no such owner.
        const renamed = !sameCoordinates(node.identity, identity);
        node.virtual = false;
        node.identity = identity;
        if (renamed) lookAtDependents(node, found);
      }
      if (!deepEqual(node.owners, owners)) {
        const before = node.owners;
        node.owners = owners;
        wakeUnblockedOwners(before, owners, found);
        const uids = new Set(owners.map(({ uid }) => uid));
        unlink(
          node,
          before.filter(({ uid }) => !uids.has(uid)),
        );
        link(node, owners, found);
      }
      transitions(node, metadata, found);
      return found.build();
    },
    forget,
    absent(absent) {
      const found = newEffects();
      const node = nodes.get(absent.uid);
      if (node === undefined) return { ...found.build(), askAgain: false };
      const others = otherNames(node, absent);
      const isIt = sameCoordinates(node.identity, absent);
      if (node.virtual ? others.length === 0 : isIt) return { ...forget(absent.uid), askAgain: false };
      for (const dependent of node.dependents) {
        if (namesOf(dependent, absent.uid).some((name) => sameCoordinates(name, absent)))
          found.attemptToDelete.add(dependent.identity.uid);
      }
      if (isIt) node.identity = nextName(others, absent);
      return { ...found.build(), askAgain: isIt };
    },
    get size() {
      return nodes.size;
    },
  };
}

/** Dependents that the owner's foreground deletion has to wait for. */
export function blockingDependents(node: GraphNode): GraphNode[] {
  return [...node.dependents].filter(({ owners }) =>
    owners.some((owner) => owner.uid === node.identity.uid && isBlocking(owner)),
  );
}

/** What an object calls the owner of this uid. */
function namesOf({ owners, identity: { namespace } }: GraphNode, uid: string): Identity[] {
  return owners
    .filter((owner) => owner.uid === uid)
    .map(({ apiVersion, kind, name }) => ({ apiVersion, kind, name, namespace, uid }));
}

/** What the dependents call their owner that is not this. */
function otherNames({ dependents }: GraphNode, known: Identity): Identity[] {
  return [...dependents].flatMap((dependent) => namesOf(dependent, known.uid).filter((name) => !sameCoordinates(name, known)));
}

/** One after the other, so that each has its turn. */
function nextName(names: readonly Identity[], last: Identity): Identity {
  const textOf = ({ apiVersion, kind, namespace, name }: Identity): string => [apiVersion, kind, namespace, name].join("/");
  const sorted = names.toSorted((a, b) => (textOf(a) < textOf(b) ? -1 : 1));
  return sorted.find((name) => textOf(name) > textOf(last)) ?? (sorted[0] as Identity);
}

function isBlocking({ blockOwnerDeletion }: OwnerReference): boolean {
  return blockOwnerDeletion === true;
}

function newNode(identity: Identity): GraphNode {
  return { identity, owners: [], dependents: new Set(), beingDeleted: false, deletingDependents: false, virtual: false };
}

function sameCoordinates(a: Identity, b: Identity): boolean {
  const groupOf = (apiVersion: string): string => (apiVersion.includes("/") ? (apiVersion.split("/")[0] as string) : "");
  // The namespace of a cluster-scoped owner is not known from a reference.
  const namespaces = b.namespace === "" || a.namespace === b.namespace;
  return groupOf(a.apiVersion) === groupOf(b.apiVersion) && a.kind === b.kind && a.name === b.name && namespaces;
}

function isNamedBy({ apiVersion, kind, name, uid }: OwnerReference, dependent: GraphNode, owner: GraphNode): boolean {
  return sameCoordinates({ apiVersion, kind, name, uid, namespace: dependent.identity.namespace }, owner.identity);
}

/** Cluster-scoped owners are everybody's. */
function isElsewhere({ identity: { namespace } }: GraphNode, dependent: GraphNode): boolean {
  return namespace !== "" && namespace !== dependent.identity.namespace;
}

interface EffectsBuilder {
  readonly attemptToDelete: Set<string>;
  readonly attemptToOrphan: Set<string>;
  readonly misplaced: Misplaced[];
  build(): Effects;
}

function newEffects(): EffectsBuilder {
  const attemptToDelete = new Set<string>();
  const attemptToOrphan = new Set<string>();
  const misplaced: Misplaced[] = [];
  return {
    attemptToDelete,
    attemptToOrphan,
    misplaced,
    build: () => ({
      attemptToDelete: [...attemptToDelete],
      attemptToOrphan: [...attemptToOrphan],
      ...(misplaced.length === 0 ? {} : { misplaced }),
    }),
  };
}

import { deepEqual } from "@coxswain/apimachinery/meta/deep-equal";
import { foregroundFinalizer, orphanFinalizer } from "@coxswain/apimachinery/meta/finalizers";
import type { ObjectMeta, OwnerReference } from "@coxswain/apimachinery/meta/types";

/** Coordinates and uid of an object. */
export interface Identity {
  readonly apiVersion: string;
  readonly kind: string;
  /** `""` for a cluster-scoped object. */
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
}

/** Graph node of one object. */
export interface GraphNode {
  identity: Identity;
  owners: readonly OwnerReference[];
  readonly dependents: Set<GraphNode>;
  beingDeleted: boolean;
  /** In foreground deletion: waits for its blocking dependents. */
  deletingDependents: boolean;
  /** Known from an owner reference only; not observed by a watch yet. */
  virtual: boolean;
}

/** Objects to process because of an event, by uid. */
export interface Effects {
  readonly attemptToDelete: readonly string[];
  readonly attemptToOrphan: readonly string[];
  /** Owner references to an object in another namespace, to be reported as Events; undefined without any. */
  readonly misplaced?: readonly Misplaced[];
}

/** An owner reference to an object in another namespace. */
export interface Misplaced {
  readonly dependent: Identity;
  readonly owner: OwnerReference;
}

/**
 * Graph of owners and dependents. It performs no requests: each method updates the graph and returns the objects that
 * the controller has to process.
 * Source: pkg/controller/garbagecollector/graph_builder.go
 */
export interface OwnerGraph {
  get(uid: string): GraphNode | undefined;
  /** Records an added or updated object. */
  observe(identity: Identity, metadata: ObjectMeta): Effects;
  /** Removes an object after its deletion was observed by a watch. */
  forget(uid: string): Effects;
  /**
   * Records that the API server has no object of this uid under these coordinates. Dependents that reference the uid
   * with the same coordinates have no such owner; dependents that use other coordinates may still have one.
   * @param absent with namespace `""` for a cluster-scoped kind
   * @returns `askAgain` when the owner has to be looked up later under other coordinates
   */
  absent(absent: Identity): Effects & { readonly lookupAgain: boolean };
  readonly size: number;
}

export function newOwnerGraph(): OwnerGraph {
  const nodes = new Map<string, GraphNode>();

  /** Links a node to its owners. An unknown owner becomes a virtual node that has to be looked up. */
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
        found.attemptToDelete.add(node.identity.uid); // no such owner exists at these coordinates
        if (isInOtherNamespace(ownerNode, node)) found.misplaced.push({ dependent: node.identity, owner });
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
  /** Enqueues the dependents of an owner whose coordinates differ from their references. */
  const enqueueDependents = (node: GraphNode, found: EffectsBuilder): void => {
    for (const dependent of node.dependents) {
      found.attemptToDelete.add(dependent.identity.uid);
      const owner = dependent.owners.find(({ uid }) => uid === node.identity.uid);
      if (owner !== undefined && isInOtherNamespace(node, dependent))
        found.misplaced.push({ dependent: dependent.identity, owner });
    }
  };
  /** Enqueues owners that this node no longer blocks. */
  const enqueueUnblockedOwners = (
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
        // The coordinates in the reference may have been wrong; dependents that used them have no such owner.
        const renamed = !sameCoordinates(node.identity, identity);
        node.virtual = false;
        node.identity = identity;
        if (renamed) enqueueDependents(node, found);
      }
      if (!deepEqual(node.owners, owners)) {
        const before = node.owners;
        node.owners = owners;
        enqueueUnblockedOwners(before, owners, found);
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
      if (node === undefined) return { ...found.build(), lookupAgain: false };
      const others = otherCoordinates(node, absent);
      const isIt = sameCoordinates(node.identity, absent);
      if (node.virtual ? others.length === 0 : isIt) return { ...forget(absent.uid), lookupAgain: false };
      for (const dependent of node.dependents) {
        if (coordinatesOf(dependent, absent.uid).some((name) => sameCoordinates(name, absent)))
          found.attemptToDelete.add(dependent.identity.uid);
      }
      if (isIt) node.identity = nextCoordinates(others, absent);
      return { ...found.build(), lookupAgain: isIt };
    },
    get size() {
      return nodes.size;
    },
  };
}

/** Dependents that block the owner's foreground deletion. */
export function blockingDependents(node: GraphNode): GraphNode[] {
  return [...node.dependents].filter(({ owners }) =>
    owners.some((owner) => owner.uid === node.identity.uid && isBlocking(owner)),
  );
}

/** Coordinates by which an object references the owner of this uid. */
function coordinatesOf({ owners, identity: { namespace } }: GraphNode, uid: string): Identity[] {
  return owners
    .filter((owner) => owner.uid === uid)
    .map(({ apiVersion, kind, name }) => ({ apiVersion, kind, name, namespace, uid }));
}

/** Other coordinates by which dependents reference the owner. */
function otherCoordinates({ dependents }: GraphNode, known: Identity): Identity[] {
  return [...dependents].flatMap((dependent) =>
    coordinatesOf(dependent, known.uid).filter((name) => !sameCoordinates(name, known)),
  );
}

/** The next coordinates in sorted order, cycling through all of them. */
function nextCoordinates(names: readonly Identity[], last: Identity): Identity {
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
  // A reference does not say whether its owner is cluster-scoped.
  const namespaces = b.namespace === "" || a.namespace === b.namespace;
  return groupOf(a.apiVersion) === groupOf(b.apiVersion) && a.kind === b.kind && a.name === b.name && namespaces;
}

function isNamedBy({ apiVersion, kind, name, uid }: OwnerReference, dependent: GraphNode, owner: GraphNode): boolean {
  return sameCoordinates({ apiVersion, kind, name, uid, namespace: dependent.identity.namespace }, owner.identity);
}

/** Whether the owner is in another namespace than the dependent; false for cluster-scoped owners. */
function isInOtherNamespace({ identity: { namespace } }: GraphNode, dependent: GraphNode): boolean {
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

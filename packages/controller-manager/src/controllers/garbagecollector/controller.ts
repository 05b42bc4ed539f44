import { type Controller, done, newController, type Result } from "@coxswain/apimachinery/controller/controller";
import { insist, newPeriodic } from "@coxswain/apimachinery/controller/periodic";
import { isNotFound } from "@coxswain/apimachinery/errors/predicates";
import { foregroundFinalizer, orphanFinalizer } from "@coxswain/apimachinery/meta/finalizers";
import type { ResourceRef } from "@coxswain/apimachinery/meta/group-version";
import type { KubeObject, OwnerReference } from "@coxswain/apimachinery/meta/types";
import type { ControllerContext, Runnable } from "../../controller-context.ts";
import { decide, type OwnerState } from "./decide.ts";
import { blockingDependents, type Effects, type GraphNode, type Identity } from "./graph.ts";
import { type GraphBuilder, newGraphBuilder } from "./graph-builder.ts";

/**
 * garbagecollector: deletes objects whose owners are deleted, completes foreground deletion once dependents are gone, and
 * orphans dependents of owners deleted with propagation policy Orphan.
 * Watches the metadata of all deletable resources. Before deleting an object it reads the object and each of its owners from
 * the API server.
 * Source: pkg/controller/garbagecollector/
 */
export function newGarbageCollector(ctx: ControllerContext): Runnable | undefined {
  if (!ctx.config.garbageCollector) return undefined;
  const collector = newCollector(ctx);
  const refreshing = newPeriodic({
    name: "garbagecollector",
    periodMs: 30_000,
    work: (signal) => collector.builder.refresh(signal),
    log: ctx.log,
    clock: ctx.clock,
  });
  return {
    async run(signal) {
      // Watches need discovery, so it is retried until it succeeds.
      await insist({
        work: collector.builder.refresh,
        failure: "cannot discover the server's resources",
        signal,
        log: ctx.log,
        clock: ctx.clock,
      });
      const background = refreshing.run(signal);
      await collector.builder.waitForSync(signal).catch(() => {});
      await Promise.all([background, collector.deleting.run(signal), collector.orphaning.run(signal)]);
    },
  };
}

/** @internal The parts, exposed so that tests can run them separately. */
function newCollector(ctx: ControllerContext): { builder: GraphBuilder; deleting: Controller; orphaning: Controller } {
  const { log, clock, queueMetrics: metrics } = ctx;
  const onEffects = ({ attemptToDelete, attemptToOrphan, misplaced = [] }: Effects): void => {
    for (const uid of attemptToDelete) deleting.enqueue(uid);
    for (const uid of attemptToOrphan) orphaning.enqueue(uid);
    for (const { dependent, owner } of misplaced) {
      const { apiVersion, kind, name, uid } = owner;
      const reference = `[${apiVersion}/${kind}, namespace: ${dependent.namespace}, name: ${name}, uid: ${uid}]`;
      const message = `ownerRef ${reference} does not exist in namespace "${dependent.namespace}"`;
      ctx.recorder.event(dependent, "Warning", "OwnerRefInvalidNamespace", message);
    }
  };
  const builder = newGraphBuilder(ctx, onEffects);
  const room: Room = { ctx, builder, absentOwners: newRecentSet(500), onEffects };
  const workers = ctx.config.concurrency.garbageCollector;
  const deleting = newController({
    name: "garbage_collector_attempt_to_delete",
    sources: [],
    reconcile: (uid, signal) => attemptToDelete(room, uid, signal),
    workers,
    log,
    clock,
    metrics,
  });
  const orphaning = newController({
    name: "garbage_collector_attempt_to_orphan",
    sources: [],
    reconcile: (uid, signal) => attemptToOrphan(room, uid, signal),
    workers,
    log,
    clock,
    metrics,
  });
  return { builder, deleting, orphaning };
}

interface Room {
  readonly ctx: ControllerContext;
  readonly builder: GraphBuilder;
  /** Owners that the API server reported as not found; uids are never reused. */
  readonly absentOwners: ReturnType<typeof newRecentSet>;
  readonly onEffects: (effects: Effects) => void;
}

/** Processes one object: deletes it if all owners are gone, or completes its foreground deletion. */
async function attemptToDelete(room: Room, uid: string, signal: AbortSignal): Promise<Result> {
  const { ctx, builder, onEffects } = room;
  const node = builder.graph.get(uid);
  if (node === undefined) return done;
  if (node.beingDeleted && !node.deletingDependents) return done; // its deletion proceeds without the garbage collector
  const { identity } = node; // captured: that of a virtual node may change while requests are in flight
  const ref = builder.resourceOf(identity.apiVersion, identity.kind);
  if (ref === undefined) {
    if (node.virtual) throw new Error(`no resource is known for ${describe(identity)}`);
    return done; // its resource is no longer served
  }
  const latest = await getLive(ctx, ref, identity, signal);
  if (latest === undefined) {
    const absent = coordinates(ref, identity);
    room.absentOwners.add(absenceKey(absent));
    const { askAgain, ...effects } = builder.graph.absent(absent);
    onEffects(effects);
    return askAgain ? { requeueAfterMs: unobservedRetryMs } : done;
  }
  if (node.virtual) return { requeueAfterMs: unobservedRetryMs }; // it exists; its watch event will follow
  if (node.deletingDependents) return finishForeground(room, node, ref, signal);

  const owners = latest.metadata.ownerReferences ?? [];
  const states: [OwnerReference, OwnerState][] = [];
  for (const owner of owners) {
    const state = await ownerState(room, node, owner, signal);
    if (state === "unknowable") return done;
    states.push([owner, state]);
  }
  const verdict = decide(node, latest.metadata, states);
  const { namespace, name } = node.identity;
  if (verdict.do === "drop-owners") {
    ctx.log
      .v(2)
      ?.info("object has at least one existing owner; it loses those that are gone", { object: describe(node.identity) });
    await patchMetadata(ctx, ref, latest, { ownerReferences: verdict.owners }, signal);
  } else if (verdict.do === "delete") {
    if (verdict.unblock) {
      await patchMetadata(
        ctx,
        ref,
        latest,
        { ownerReferences: owners.map((owner) => ({ ...owner, blockOwnerDeletion: false })) },
        signal,
      );
    }
    ctx.log.v(2)?.info("Deleting object", { object: describe(node.identity), propagationPolicy: verdict.policy });
    const options = { preconditions: { uid }, propagationPolicy: verdict.policy, signal };
    await ctx.client.delete(ref, { namespace, name }, options).catch((err) => {
      if (!isNotFound(err)) throw err;
    });
  }
  return done;
}

const unobservedRetryMs = 5000;

/** Foreground deletion: removes the finalizer when no dependent blocks it, otherwise enqueues the blocking dependents. */
async function finishForeground(room: Room, node: GraphNode, ref: ResourceRef, signal: AbortSignal): Promise<Result> {
  const { builder, onEffects, ctx } = room;
  const blocking = blockingDependents(node);
  if (blocking.length > 0) {
    const waiting = blocking.filter(({ deletingDependents }) => !deletingDependents).map(({ identity }) => identity.uid);
    onEffects({ attemptToDelete: waiting, attemptToOrphan: [] });
    return done;
  }
  // A watch that has not synced may still deliver a dependent.
  if (!builder.synced) return { requeueAfterMs: unobservedRetryMs };
  ctx.log.v(2)?.info("remove DeleteDependents finalizer", { object: describe(node.identity) });
  await removeFinalizer(ctx, ref, node.identity, foregroundFinalizer, signal);
  return done;
}

/**
 * Reads the state of an owner.
 * @returns `unknowable` for a cluster-scoped object that names a namespaced owner, which is invalid; it must not be deleted
 */
async function ownerState(
  room: Room,
  node: GraphNode,
  owner: OwnerReference,
  signal: AbortSignal,
): Promise<OwnerState | "unknowable"> {
  const { ctx, builder, absentOwners } = room;
  const ref = builder.resourceOf(owner.apiVersion, owner.kind);
  if (ref === undefined)
    throw new Error(`no resource is known for owner kind ${owner.apiVersion} ${owner.kind} of ${describe(node.identity)}`);
  if (ref.namespaced && node.identity.namespace === "") return "unknowable";
  const { apiVersion, kind, name, uid } = owner;
  const named = coordinates(ref, { apiVersion, kind, namespace: node.identity.namespace, name, uid });
  const key = absenceKey(named);
  if (absentOwners.has(key)) return "absent";
  const found = await getLive(ctx, ref, named, signal);
  if (found === undefined) {
    absentOwners.add(key);
    return "absent";
  }
  const { deletionTimestamp, finalizers = [] } = found.metadata;
  return deletionTimestamp && finalizers.includes(foregroundFinalizer) ? "waiting-for-dependents" : "solid";
}

/** Orphan deletion: removes the owner reference from all dependents, then the finalizer. */
async function attemptToOrphan(room: Room, uid: string, signal: AbortSignal): Promise<Result> {
  const { ctx, builder } = room;
  const node = builder.graph.get(uid);
  if (node === undefined) return done;
  if (!builder.synced) return { requeueAfterMs: unobservedRetryMs };
  const results = await Promise.allSettled([...node.dependents].map((dependent) => orphan(room, dependent, uid, signal)));
  const failed = results.find((result) => result.status === "rejected");
  if (failed !== undefined)
    throw new Error(`cannot orphan all dependents of ${describe(node.identity)}`, { cause: failed.reason });
  const ref = builder.resourceOf(node.identity.apiVersion, node.identity.kind);
  if (ref !== undefined) await removeFinalizer(ctx, ref, node.identity, orphanFinalizer, signal);
  return done;
}

async function orphan({ ctx, builder }: Room, { identity }: GraphNode, ownerUid: string, signal: AbortSignal): Promise<void> {
  const ref = builder.resourceOf(identity.apiVersion, identity.kind);
  const latest = ref === undefined ? undefined : await getLive(ctx, ref, identity, signal);
  if (ref === undefined || latest === undefined) return;
  const owners = latest.metadata.ownerReferences ?? [];
  const left = owners.filter(({ uid }) => uid !== ownerUid);
  if (left.length < owners.length) await patchMetadata(ctx, ref, latest, { ownerReferences: left }, signal);
}

async function removeFinalizer(
  ctx: ControllerContext,
  ref: ResourceRef,
  identity: Identity,
  finalizer: string,
  signal: AbortSignal,
): Promise<void> {
  const latest = await getLive(ctx, ref, identity, signal);
  const finalizers = latest?.metadata.finalizers ?? [];
  if (latest === undefined || !finalizers.includes(finalizer)) return;
  await patchMetadata(ctx, ref, latest, { finalizers: finalizers.filter((name) => name !== finalizer) }, signal);
}

/** Merge patch, which every resource supports. Fails with Conflict when the object changed since it was read, and is retried. */
async function patchMetadata(
  { client }: ControllerContext,
  ref: ResourceRef,
  { metadata }: KubeObject,
  change: { finalizers?: readonly string[]; ownerReferences?: readonly OwnerReference[] },
  signal: AbortSignal,
): Promise<void> {
  const { namespace, name = "", uid, resourceVersion } = metadata;
  try {
    await client.patch(
      ref,
      { namespace, name },
      { type: "merge", body: { metadata: { uid, resourceVersion, ...change } } },
      { signal },
    );
  } catch (err) {
    if (!isNotFound(err)) throw err;
  }
}

/** Reads the object from the API server; undefined when it is deleted or its name is used by an object of another uid. */
async function getLive(
  { client }: ControllerContext,
  ref: ResourceRef,
  identity: Identity,
  signal: AbortSignal,
): Promise<KubeObject | undefined> {
  const { namespace, name, uid } = identity;
  try {
    const found = await client.get<KubeObject & object>(ref, { namespace, name }, { metadataOnly: true, signal });
    return found.metadata.uid === uid ? found : undefined;
  } catch (err) {
    if (isNotFound(err)) return undefined;
    throw err;
  }
}

function coordinates(ref: ResourceRef, identity: Identity): Identity {
  return ref.namespaced ? identity : { ...identity, namespace: "" };
}

/** Key of all coordinates in a reference: absence of one combination proves nothing about other references to the same uid. */
function absenceKey({ apiVersion, kind, namespace, name, uid }: Identity): string {
  return JSON.stringify([apiVersion, kind, namespace, name, uid]);
}

function describe({ apiVersion, kind, namespace, name, uid }: Identity): string {
  return `[${apiVersion}/${kind}, namespace: ${namespace}, name: ${name}, uid: ${uid}]`;
}

/** A set of limited size that evicts the oldest entry. */
function newRecentSet(limit: number) {
  const members = new Set<string>();
  return {
    has: (member: string): boolean => members.has(member),
    add(member: string): void {
      members.delete(member);
      members.add(member);
      if (members.size > limit) members.delete(members.values().next().value as string);
    },
  };
}

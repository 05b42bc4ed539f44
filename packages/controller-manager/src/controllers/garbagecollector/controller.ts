import { type Controller, done, type Result } from "@coxswain/apimachinery/controller/controller";
import { insist } from "@coxswain/apimachinery/controller/periodic";
import type { ObjectRef } from "@coxswain/apimachinery/decisions/decision";
import type { Description } from "@coxswain/apimachinery/decisions/decision-log";
import { isNotFound } from "@coxswain/apimachinery/objects/errors/predicates";
import { foregroundFinalizer, orphanFinalizer } from "@coxswain/apimachinery/objects/meta/finalizers";
import type { ResourceRef } from "@coxswain/apimachinery/objects/meta/group-version";
import type { OwnerReference } from "@coxswain/apimachinery/objects/meta/types";
import { forEachLimited } from "@coxswain/apimachinery/process/event-loop/for-each-limited";
import type { ControllerContext, Runnable } from "../../controller-context.ts";
import { defineController, definePeriodic, runTogether } from "../../define-controller.ts";
import { type GarbageCollectorContext, newGarbageCollectorContext } from "./context.ts";
import { blockingDependents, type GraphNode, type Identity } from "./graph.ts";
import { decideDeletion, type OwnerState } from "./plan.ts";
import { getLive, patchMetadata, removeFinalizer } from "./writes.ts";

/**
 * garbagecollector: deletes objects whose owners are deleted, completes foreground deletion once dependents are gone, and
 * orphans dependents of owners deleted with propagation policy Orphan.
 * Watches the metadata of all deletable resources. Before deleting an object it reads the object and each of its owners from
 * the API server.
 * Source: pkg/controller/garbagecollector/
 */
export function newGarbageCollector(base: ControllerContext): Runnable | undefined {
  if (!base.config.garbageCollector) return undefined;
  const ctx: GarbageCollectorContext = newGarbageCollectorContext(base, {
    enqueueDeletion: (uid) => deletions.enqueue(uid),
    enqueueOrphaning: (uid) => orphanings.enqueue(uid),
  });
  const workers = ctx.config.concurrency.garbageCollector;
  const deletions: Controller = defineController(ctx, {
    name: "garbage_collector_attempt_to_delete",
    objectOf: (uid) => refOf(ctx, ctx.builder.graph.get(uid)),
    sources: [],
    reconcile: attemptToDelete,
    workers,
  });
  const orphanings: Controller = defineController(ctx, {
    name: "garbage_collector_attempt_to_orphan",
    objectOf: (uid) => refOf(ctx, ctx.builder.graph.get(uid)),
    sources: [],
    reconcile: attemptToOrphan,
    workers,
  });
  const discovery = definePeriodic(ctx, {
    name: "garbagecollector",
    periodMs: 30_000,
    startsLate: true,
    work: ({ builder }, signal) => builder.refresh(signal),
  });
  return {
    async run(signal) {
      const { builder, log, clock } = ctx;
      // Watches need discovery, so it is retried until it succeeds.
      await insist({ work: builder.refresh, failure: "cannot discover the server's resources", signal, log, clock });
      const refreshing = discovery.run(signal);
      await builder.waitForSync(signal).catch(() => {});
      await Promise.all([refreshing, runTogether(deletions, orphanings).run(signal)]);
    },
  };
}

/** Processes one object: deletes it if all owners are gone, or completes its foreground deletion. */
async function attemptToDelete(ctx: GarbageCollectorContext, uid: string, signal: AbortSignal): Promise<Result> {
  const { builder, onEffects } = ctx;
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
    ctx.absentOwners.add(absenceKey(absent));
    const { lookupAgain, ...effects } = builder.graph.absent(absent);
    onEffects(effects);
    return lookupAgain ? { requeueAfterMs: unobservedRetryMs } : done;
  }
  if (node.virtual) return { requeueAfterMs: unobservedRetryMs }; // it exists; its watch event will follow
  if (node.deletingDependents) return finishForeground(ctx, node, ref, signal);

  const owners = latest.metadata.ownerReferences ?? [];
  const states: [OwnerReference, OwnerState][] = [];
  for (const owner of owners) {
    const state = await ownerState(ctx, node, owner, signal);
    if (state === "unknowable") return done;
    states.push([owner, state]);
  }
  const decision = decideDeletion(node, latest.metadata, states);
  const { namespace, name } = node.identity;
  if (decision.do === "drop-owners") {
    ctx.log
      .v(2)
      ?.info("object has at least one existing owner; removing references to absent owners", { object: describe(node.identity) });
    await patchMetadata(ctx, ref, latest, { ownerReferences: decision.owners }, signal);
  } else if (decision.do === "delete") {
    if (decision.unblock) {
      await patchMetadata(
        ctx,
        ref,
        latest,
        { ownerReferences: owners.map((owner) => ({ ...owner, blockOwnerDeletion: false })) },
        signal,
      );
    }
    ctx.log.v(2)?.info("Deleting object", { object: describe(node.identity), propagationPolicy: decision.policy });
    const options = { preconditions: { uid }, propagationPolicy: decision.policy, signal };
    await ctx.client.delete(ref, { namespace, name }, options).catch((err) => {
      if (!isNotFound(err)) throw err;
    });
  }
  return done;
}

const unobservedRetryMs = 5000;

/** Foreground deletion: removes the finalizer when no dependent blocks it, otherwise enqueues the blocking dependents. */
async function finishForeground(
  ctx: GarbageCollectorContext,
  node: GraphNode,
  ref: ResourceRef,
  signal: AbortSignal,
): Promise<Result> {
  const { builder, onEffects } = ctx;
  const blocking = blockingDependents(node);
  if (blocking.length > 0) {
    const waiting = blocking.filter(({ deletingDependents }) => !deletingDependents).map(({ identity }) => identity.uid);
    onEffects({ attemptToDelete: waiting, attemptToOrphan: [] });
    const description = (): Description => ({
      summary: `is deleted in the foreground: waits for ${blocking.length} of its dependents, which block it, to be deleted`,
      related: blocking.slice(0, maxDependentsReported).flatMap((dependent) => refOf(ctx, dependent) ?? []),
      remedy: "see what keeps the dependents",
    });
    return { decision: { verdict: "waiting", reason: "DependentsBlockDeletion", description, sizeBytes: 64 * blocking.length } };
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
  ctx: GarbageCollectorContext,
  node: GraphNode,
  owner: OwnerReference,
  signal: AbortSignal,
): Promise<OwnerState | "unknowable"> {
  const { builder, absentOwners } = ctx;
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
async function attemptToOrphan(ctx: GarbageCollectorContext, uid: string, signal: AbortSignal): Promise<Result> {
  const { builder } = ctx;
  const node = builder.graph.get(uid);
  if (node === undefined) return done;
  if (!builder.synced) return { requeueAfterMs: unobservedRetryMs };
  const failures: unknown[] = [];
  await forEachLimited([...node.dependents], dependentsAtOnce, async (dependent) => {
    await orphan(ctx, dependent, uid, signal).catch((err: unknown) => failures.push(err));
  });
  if (failures.length > 0) throw new Error(`cannot orphan all dependents of ${describe(node.identity)}`, { cause: failures[0] });
  const ref = builder.resourceOf(node.identity.apiVersion, node.identity.kind);
  if (ref !== undefined) await removeFinalizer(ctx, ref, node.identity, orphanFinalizer, signal);
  return done;
}

async function orphan(
  ctx: GarbageCollectorContext,
  { identity }: GraphNode,
  ownerUid: string,
  signal: AbortSignal,
): Promise<void> {
  const { builder } = ctx;
  const ref = builder.resourceOf(identity.apiVersion, identity.kind);
  const latest = ref === undefined ? undefined : await getLive(ctx, ref, identity, signal);
  if (ref === undefined || latest === undefined) return;
  const owners = latest.metadata.ownerReferences ?? [];
  const left = owners.filter(({ uid }) => uid !== ownerUid);
  if (left.length < owners.length) await patchMetadata(ctx, ref, latest, { ownerReferences: left }, signal);
}

/** An owner may have any number of dependents; other objects share the client's rate limit with them. */
const dependentsAtOnce = 50;
const maxDependentsReported = 20;

function refOf({ builder }: GarbageCollectorContext, node: GraphNode | undefined): ObjectRef | undefined {
  if (node === undefined) return undefined;
  const { apiVersion, kind, namespace, name, uid } = node.identity;
  const ref = builder.resourceOf(apiVersion, kind);
  return ref && { group: ref.group, resource: ref.resource, kind, namespace, name, uid };
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

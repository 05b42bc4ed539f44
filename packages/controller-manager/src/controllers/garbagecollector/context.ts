import type { ControllerContext } from "../../controller-context.ts";
import type { Effects } from "./graph.ts";
import { type GraphBuilder, newGraphBuilder } from "./graph-builder.ts";
import { newRecentSet, type RecentSet } from "./recent-set.ts";

/** Dependencies and state shared by the two queues. */
export interface GarbageCollectorContext extends ControllerContext {
  readonly builder: GraphBuilder;
  /** Owners that the API server reported as not found; uids are never reused. */
  readonly absentOwners: RecentSet;
  /** Enqueues what a change of the graph requires. */
  readonly onEffects: (effects: Effects) => void;
}

/** Functions that enqueue an object by its uid. */
interface GarbageCollectorQueues {
  enqueueDeletion(uid: string): void;
  enqueueOrphaning(uid: string): void;
}

export function newGarbageCollectorContext(base: ControllerContext, queues: GarbageCollectorQueues): GarbageCollectorContext {
  const onEffects = ({ attemptToDelete, attemptToOrphan, misplaced = [] }: Effects): void => {
    for (const uid of attemptToDelete) queues.enqueueDeletion(uid);
    for (const uid of attemptToOrphan) queues.enqueueOrphaning(uid);
    for (const { dependent, owner } of misplaced) {
      const { apiVersion, kind, name, uid } = owner;
      const reference = `[${apiVersion}/${kind}, namespace: ${dependent.namespace}, name: ${name}, uid: ${uid}]`;
      const message = `ownerRef ${reference} does not exist in namespace "${dependent.namespace}"`;
      base.recorder.event(dependent, "Warning", "OwnerRefInvalidNamespace", message);
    }
  };
  return { ...base, builder: newGraphBuilder(base, onEffects), absentOwners: newRecentSet(500), onEffects };
}

import type { SharedInformer } from "@coxswain/apimachinery/informers/shared-informer";
import { fnv32 } from "@coxswain/apimachinery/objects/meta/fnv";
import { safeEncode } from "@coxswain/apimachinery/objects/meta/names";
import type { ControllerRevision, StatefulSet } from "@coxswain/apimachinery/objects/schema/kinds/apps/v1";
import { controllerRevisions, statefulSets } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { LabelSelector } from "@coxswain/apimachinery/objects/selectors/label-selector";
import type { ControllerContext } from "../../controller-context.ts";
import { dataText, makingRevisionData, withData } from "../../history/revision-data.ts";
import { byRevision, newRevision, nextRevision, oldestIdle } from "../../history/revisions.ts";
import { createRevision, deleteRevisions, renumber } from "../../history/write-revision.ts";
import { candidatesFor, claimObjects } from "../../pods/ownership.ts";
import type { Revisions } from "./new-pod.ts";

const hashLabel = "controller.kubernetes.io/hash";

interface StatefulSetContext extends ControllerContext {
  readonly revisions: SharedInformer<ControllerRevision>;
}

/** Revisions of the StatefulSet, oldest first; adopts matching orphans. */
export async function ownRevisions(
  ctx: StatefulSetContext,
  set: StatefulSet,
  signal: AbortSignal,
): Promise<ControllerRevision[]> {
  const { revisions } = ctx;
  const selector = LabelSelector.ofCached(set.spec.selector);
  const claimed = await claimObjects<ControllerRevision>({
    client: ctx.client,
    ref: controllerRevisions,
    owner: set,
    ownerResource: statefulSets,
    selector,
    candidates: candidatesFor(revisions, set).filter(({ metadata }) => selector.matches(metadata.labels)),
    signal,
  });
  return claimed.toSorted(byRevision);
}

/** Includes the number of hash collisions. */
interface SyncedRevisions {
  readonly revisions: Revisions;
  readonly collisionCount: number;
}

/**
 * The revisions named in the status. A StatefulSet in deletion gets no new ones, because the garbage collector would
 * have to wait for them.
 */
export function knownRevisions({ status }: StatefulSet, own: readonly ControllerRevision[]): SyncedRevisions | undefined {
  const named = (name: string | undefined) => own.find(({ metadata }) => metadata.name === name);
  const [current, update] = [named(status?.currentRevision), named(status?.updateRevision)];
  if (current === undefined || update === undefined) return undefined;
  return { revisions: { current, update }, collisionCount: status?.collisionCount ?? 0 };
}

/**
 * Finds, creates or renumbers the revision of the current template, and finds the revision before the update.
 * Source: stateful_set_control.go getStatefulSetRevisions
 */
export async function syncRevisions(
  ctx: StatefulSetContext,
  set: StatefulSet,
  own: readonly ControllerRevision[],
  signal: AbortSignal,
): Promise<SyncedRevisions> {
  const data = await ctx.turns.run(makingRevisionData(set.spec.template));
  const equal = (await ctx.turns.run(withData(own, data))).at(-1);
  const next = nextRevision(own);
  let collisionCount = set.status?.collisionCount ?? 0;
  let update = equal;
  if (equal !== undefined && equal !== own.at(-1)) update = await renumber(ctx.client, equal, next, signal);
  while (update === undefined) {
    await ctx.turns.next(); // hashing takes milliseconds for a large template
    const hash = safeEncode(String(fnv32(Buffer.from(`${dataText(data)}${collisionCount}`))));
    const wanted = newRevision(set, statefulSets, set.spec.template, { data, hash, hashLabel, revision: next });
    await ctx.turns.next(); // and so does encoding
    update = await createRevision(ctx, wanted, signal);
    if (update === undefined) collisionCount++;
  }
  const current = own.find(({ metadata }) => metadata.name === set.status?.currentRevision) ?? update;
  return { revisions: { current, update }, collisionCount };
}

/** Deletes the oldest unused revisions beyond `spec.revisionHistoryLimit`. Source: truncateHistory */
export async function truncateHistory(
  ctx: StatefulSetContext,
  set: StatefulSet,
  own: readonly ControllerRevision[],
  inUse: ReadonlySet<string>,
  signal: AbortSignal,
): Promise<void> {
  const isLive = ({ metadata }: ControllerRevision): boolean => inUse.has(metadata.name ?? "");
  const idle = own.filter((revision) => !isLive(revision)).length;
  await deleteRevisions(ctx.client, oldestIdle(own, idle - (set.spec.revisionHistoryLimit ?? 10), isLive), signal);
}

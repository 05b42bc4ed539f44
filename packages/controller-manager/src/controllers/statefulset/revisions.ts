import type { SharedInformer } from "@coxswain/apimachinery/informers/shared-informer";
import { fnv32 } from "@coxswain/apimachinery/meta/fnv";
import { safeEncode } from "@coxswain/apimachinery/meta/names";
import type { ControllerRevision, StatefulSet } from "@coxswain/apimachinery/schema/kinds/apps/v1";
import { controllerRevisions, statefulSets } from "@coxswain/apimachinery/schema/kinds/resources";
import { LabelSelector } from "@coxswain/apimachinery/selectors/label-selector";
import type { ControllerContext } from "../../controller-context.ts";
import { dataText, revisionData, sameData } from "../../history/revision-data.ts";
import { byRevision, newRevision, nextRevision, oldestIdle } from "../../history/revisions.ts";
import { createRevision, deleteRevisions, renumber } from "../../history/write-revision.ts";
import { candidatesFor, claimObjects } from "../../pods/ownership.ts";
import type { Revisions } from "./new-pod.ts";

const hashLabel = "controller.kubernetes.io/hash";

interface Room {
  readonly ctx: ControllerContext;
  readonly revisions: SharedInformer<ControllerRevision>;
}

/** The set's own, oldest first; those of nobody that it selects become its own. */
export async function ownRevisions(
  { ctx, revisions }: Room,
  set: StatefulSet,
  signal: AbortSignal,
): Promise<ControllerRevision[]> {
  const selector = LabelSelector.fromObject(set.spec.selector);
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

/** With how often a name was taken by another revision. */
interface SyncedRevisions {
  readonly revisions: Revisions;
  readonly collisionCount: number;
}

/** Those that the status names: of a set on its way out no new ones are made, which the garbage collector would wait for. */
export function knownRevisions({ status }: StatefulSet, own: readonly ControllerRevision[]): SyncedRevisions | undefined {
  const named = (name: string | undefined) => own.find(({ metadata }) => metadata.name === name);
  const [current, update] = [named(status?.currentRevision), named(status?.updateRevision)];
  if (current === undefined || update === undefined) return undefined;
  return { revisions: { current, update }, collisionCount: status?.collisionCount ?? 0 };
}

/**
 * The revision of the present template, made or numbered anew when the template changed, and the one that the set is still at.
 * Source: stateful_set_control.go getStatefulSetRevisions
 */
export async function syncRevisions(
  { ctx }: Room,
  set: StatefulSet,
  own: readonly ControllerRevision[],
  signal: AbortSignal,
): Promise<SyncedRevisions> {
  const data = revisionData(set.spec.template);
  const equal = own.findLast((revision) => sameData(revision.data, data));
  const next = nextRevision(own);
  let collisionCount = set.status?.collisionCount ?? 0;
  let update = equal;
  if (equal !== undefined && equal !== own.at(-1)) update = await renumber(ctx.client, equal, next, signal);
  while (update === undefined) {
    const hash = safeEncode(String(fnv32(Buffer.from(`${dataText(data)}${collisionCount}`))));
    const wanted = newRevision(set, statefulSets, set.spec.template, { hash, hashLabel, revision: next });
    update = await createRevision(ctx.client, wanted, signal);
    if (update === undefined) collisionCount++;
  }
  const current = own.find(({ metadata }) => metadata.name === set.status?.currentRevision) ?? update;
  return { revisions: { current, update }, collisionCount };
}

/** Keeps `spec.revisionHistoryLimit` revisions besides those in use. Source: truncateHistory */
export async function truncateHistory(
  { ctx }: Room,
  set: StatefulSet,
  own: readonly ControllerRevision[],
  inUse: ReadonlySet<string>,
  signal: AbortSignal,
): Promise<void> {
  const isLive = ({ metadata }: ControllerRevision): boolean => inUse.has(metadata.name ?? "");
  const idle = own.filter((revision) => !isLive(revision)).length;
  await deleteRevisions(ctx.client, oldestIdle(own, idle - (set.spec.revisionHistoryLimit ?? 10), isLive), signal);
}

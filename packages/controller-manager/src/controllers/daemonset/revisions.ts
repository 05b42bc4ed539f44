import type { SharedInformer } from "@coxswain/apimachinery/informers/shared-informer";
import type { ControllerRevision, DaemonSet } from "@coxswain/apimachinery/objects/schema/kinds/apps/v1";
import type { Pod } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { controllerRevisions, daemonSets, pods } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { LabelSelector } from "@coxswain/apimachinery/objects/selectors/label-selector";
import type { ControllerContext } from "../../controller-context.ts";
import { makingRevisionData, type RevisionData, withData } from "../../history/revision-data.ts";
import { byRevision, newRevision, nextRevision, oldestIdle } from "../../history/revisions.ts";
import { createRevision, deleteRevisions, renumber } from "../../history/write-revision.ts";
import { candidatesFor, claimObjects } from "../../pods/ownership.ts";
import { computeHash } from "../../pods/revision-hash.ts";
import { hashLabel } from "./pod-template.ts";

interface DaemonSetContext extends ControllerContext {
  readonly revisions: SharedInformer<ControllerRevision>;
  readonly pods: SharedInformer<Pod>;
}

interface History {
  /** Hash label of the current template's revision. */
  readonly hash: string;
  readonly old: readonly ControllerRevision[];
}

/**
 * Lists the revisions and ensures that the current template has the highest one: creates it, or renumbers an existing
 * one after a rollback.
 * @throws Error after a hash collision; collisionCount is incremented in the status, so the retry uses another hash
 * Source: pkg/controller/daemon/update.go constructHistory
 */
export async function syncHistory(ctx: DaemonSetContext, daemonSet: DaemonSet, signal: AbortSignal): Promise<History> {
  const all: ControllerRevision[] = [];
  for (const revision of await claimRevisions(ctx, daemonSet, signal)) all.push(await withHashLabel(ctx, revision, signal));
  const data = await ctx.turns.run(makingRevisionData(daemonSet.spec.template));
  const present = (await ctx.turns.run(withData(all, data))).toSorted(byRevision);
  const old = all.filter((revision) => !present.includes(revision));
  const number = nextRevision(old);
  const newest = present.pop();
  if (newest === undefined) return { hash: hashOf(await snapshot(ctx, daemonSet, data, number, signal)), old };
  if (present.length > 0) await mergeDuplicates(ctx, daemonSet, newest, present, signal);
  if (newest.revision < number) await renumber(ctx.client, newest, number, signal);
  return { hash: hashOf(newest), old };
}

/** Deletes the oldest revisions beyond `spec.revisionHistoryLimit`, except those with Pods. */
export async function cleanUpHistory(
  ctx: DaemonSetContext,
  { spec }: DaemonSet,
  { old }: History,
  ownPods: readonly Pod[],
  signal: AbortSignal,
): Promise<void> {
  const live = new Set(ownPods.map(({ metadata }) => metadata.labels?.[hashLabel] ?? ""));
  const surplus = oldestIdle(old, old.length - (spec.revisionHistoryLimit ?? 10), (revision) => live.has(hashOf(revision)));
  await deleteRevisions(ctx.client, surplus, signal);
}

function hashOf({ metadata }: ControllerRevision): string {
  return metadata.labels?.[hashLabel] ?? "";
}

function claimRevisions(ctx: DaemonSetContext, daemonSet: DaemonSet, signal: AbortSignal): Promise<ControllerRevision[]> {
  const { revisions } = ctx;
  return claimObjects<ControllerRevision>({
    client: ctx.client,
    ref: controllerRevisions,
    owner: daemonSet,
    ownerResource: daemonSets,
    selector: LabelSelector.ofCached(daemonSet.spec.selector),
    candidates: candidatesFor(revisions, daemonSet),
    signal,
  });
}

/** Adds a missing hash label; uses the revision's name, which is unique. */
async function withHashLabel(
  ctx: ControllerContext,
  revision: ControllerRevision,
  signal: AbortSignal,
): Promise<ControllerRevision> {
  const { metadata } = revision;
  if (metadata.labels?.[hashLabel] !== undefined) return revision;
  const labels = { ...metadata.labels, [hashLabel]: metadata.name ?? "" };
  return ctx.client.update(controllerRevisions, { ...revision, metadata: { ...metadata, labels } }, { signal });
}

async function snapshot(
  ctx: ControllerContext,
  daemonSet: DaemonSet,
  data: RevisionData,
  revision: number,
  signal: AbortSignal,
): Promise<ControllerRevision> {
  const { template } = daemonSet.spec;
  await ctx.turns.next(); // hashing takes milliseconds for a large template
  const hash = computeHash(template, daemonSet.status?.collisionCount);
  const wanted = newRevision(daemonSet, daemonSets, template, { data, hash, hashLabel, revision });
  await ctx.turns.next(); // and so does encoding
  const stored = await createRevision(ctx, wanted, signal);
  if (stored !== undefined) return stored;
  const collisionCount = await countCollision(ctx, daemonSet, signal);
  throw new Error(`the name ${wanted.metadata.name} is taken by another revision; collision ${collisionCount}`);
}

/**
 * Increments collisionCount in the status.
 * @throws Error when the cached collisionCount is stale: the hash was computed from an old count
 */
async function countCollision(ctx: ControllerContext, { metadata, status }: DaemonSet, signal: AbortSignal): Promise<number> {
  const { namespace, name = "" } = metadata;
  const fresh = await ctx.client.get<DaemonSet>(daemonSets, { namespace, name }, { signal });
  const count = fresh.status?.collisionCount;
  if (count !== status?.collisionCount) {
    throw new Error(
      `found a stale collision count (${status?.collisionCount ?? 0}, expected ${count ?? 0}) of DaemonSet "${name}"`,
    );
  }
  const collisionCount = (count ?? 0) + 1;
  const counted = { ...fresh, status: { ...fresh.status!, collisionCount } };
  await ctx.client.update<DaemonSet>(daemonSets, counted, { subresource: "status", signal });
  ctx.log.v(2)?.info("Found a hash collision for DaemonSet", { daemonSet: `${namespace}/${name}`, collisionCount });
  return collisionCount;
}

/** Merges duplicate revisions of one template and relabels their Pods. */
async function mergeDuplicates(
  ctx: DaemonSetContext,
  daemonSet: DaemonSet,
  kept: ControllerRevision,
  duplicates: readonly ControllerRevision[],
  signal: AbortSignal,
): Promise<void> {
  const { pods: podInformer } = ctx;
  const hashes = new Set(duplicates.map(hashOf));
  for (const { metadata } of podInformer.lister.controlledBy(daemonSet)) {
    if (!hashes.has(metadata.labels?.[hashLabel] ?? "")) continue;
    const { namespace, name = "" } = metadata;
    const body = { metadata: { labels: { [hashLabel]: hashOf(kept) } } };
    await ctx.client.patch(pods, { namespace, name }, { type: "merge", body }, { signal });
  }
  await deleteRevisions(ctx.client, duplicates, signal);
}

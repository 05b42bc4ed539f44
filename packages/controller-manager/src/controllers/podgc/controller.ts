import type { SharedInformer } from "@coxswain/apimachinery/informers/shared-informer";
import { isNotFound } from "@coxswain/apimachinery/objects/errors/predicates";
import { byCreation } from "@coxswain/apimachinery/objects/meta/creation";
import type { Node, Pod } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { nodes, pods } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { forEachLimited } from "@coxswain/apimachinery/process/event-loop/for-each-limited";
import type { ControllerContext, Runnable } from "../../controller-context.ts";
import { definePeriodic } from "../../define-controller.ts";

/**
 * pod-garbage-collector: every 20 s deletes finished Pods beyond the threshold, Pods of deleted nodes, and terminating Pods
 * that were never scheduled. No kubelet would delete these.
 * Reads Pods and Nodes; deletes Pods with a grace period of 0.
 * Source: pkg/controller/podgc/gc_controller.go
 */
export function newPodGarbageCollector(base: ControllerContext): Runnable {
  const ctx: PodGcContext = {
    ...base,
    pods: base.informers.for<Pod>(pods),
    nodes: base.informers.for<Node>(nodes),
    missingSince: new Map(),
  };
  return definePeriodic(ctx, {
    name: "podgc",
    periodMs: 20_000,
    synced: [ctx.pods, ctx.nodes],
    work: collect,
  });
}

interface PodGcContext extends ControllerContext {
  readonly pods: SharedInformer<Pod>;
  readonly nodes: SharedInformer<Node>;
  /** Time at which a node referenced by Pods was first observed missing (monotonic ms). */
  readonly missingSince: Map<string, number>;
}

async function collect(ctx: PodGcContext, signal: AbortSignal): Promise<void> {
  const { missingSince } = ctx;
  const all = ctx.pods.lister.list();
  const knownNodes = new Set(ctx.nodes.lister.list().map(({ metadata }) => metadata.name ?? ""));
  const missing = missingNodes(all, knownNodes, missingSince, ctx.clock.monotonic());
  const deleteAll = (some: readonly Pod[]): Promise<void> =>
    forEachLimited(some, podsAtOnce, (pod) => forceDelete(ctx, pod, signal));
  await deleteAll([...new Set([...surplusFinished(all, ctx.config.terminatedPodGcThreshold), ...unscheduledTerminating(all)])]);
  // Any user can create Pods on thousands of nodes that do not exist: those of one do not wait for requests about all others.
  const byNode = Map.groupBy(all, ({ spec }) => spec.nodeName ?? "");
  for (const name of missing) {
    if (!(await isDeleted(ctx, name, signal))) continue;
    missingSince.delete(name);
    await deleteAll(byNode.get(name) ?? []);
  }
}

const podsAtOnce = 50;

/** Pure: finished Pods beyond the threshold, oldest first. */
export function surplusFinished(all: readonly Pod[], threshold: number): Pod[] {
  if (threshold <= 0) return [];
  const finished = all.filter(({ status }) => !["Pending", "Running", "Unknown"].includes(status?.phase ?? "Pending"));
  return finished.toSorted(byCreation).slice(0, Math.max(0, finished.length - threshold));
}

/** Pure: terminating Pods without a node. */
function unscheduledTerminating(all: readonly Pod[]): Pod[] {
  return all.filter(({ metadata, spec }) => metadata.deletionTimestamp && !spec.nodeName);
}

/**
 * Nodes referenced by Pods that have been missing for at least 40 s; updates `missingSince`. The Pod cache may be
 * ahead of the Node cache.
 */
export function missingNodes(
  all: readonly Pod[],
  known: ReadonlySet<string>,
  missingSince: Map<string, number>,
  now: number,
): string[] {
  const named = new Set(all.map(({ spec }) => spec.nodeName ?? "").filter((name) => name !== "" && !known.has(name)));
  for (const name of [...missingSince.keys()]) if (!named.has(name)) missingSince.delete(name);
  for (const name of named) if (!missingSince.has(name)) missingSince.set(name, now);
  return [...named].filter((name) => now - (missingSince.get(name) ?? now) >= quarantineMs);
}

const quarantineMs = 40_000;

/** Confirms with the API server that the node does not exist. */
async function isDeleted(ctx: ControllerContext, name: string, signal: AbortSignal): Promise<boolean> {
  try {
    await ctx.client.get<Node>(nodes, { name }, { signal });
  } catch (err) {
    if (isNotFound(err)) return true;
    ctx.log.error("cannot read node; skipping its pods", err, { node: name });
  }
  return false;
}

async function forceDelete(ctx: ControllerContext, { metadata, spec }: Pod, signal: AbortSignal): Promise<void> {
  const { namespace, name = "", uid } = metadata;
  ctx.log.info("PodGC is force deleting Pod", { pod: `${namespace}/${name}`, node: spec.nodeName });
  try {
    const preconditions = uid === undefined ? {} : { preconditions: { uid } };
    await ctx.client.delete(pods, { namespace, name }, { gracePeriodSeconds: 0, ...preconditions, signal });
  } catch (err) {
    if (!isNotFound(err)) ctx.log.error("cannot delete pod", err, { pod: `${namespace}/${name}` });
  }
}

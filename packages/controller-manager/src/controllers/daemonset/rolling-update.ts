import type { Pod } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { isAvailable, isTerminating } from "../../pods/pod-state.ts";
import { isUpdated, type Plan, surgeCount, unavailableCount, type View } from "./node-pods.ts";

/**
 * Pure: the next step of a rolling update. Valid only when `planNodes` returns no changes, so that each node has its Pod.
 * Source: pkg/controller/daemon/update.go rollingUpdate
 */
export function planRollingUpdate(view: View): Plan {
  const desired = view.nodes.filter(({ shouldRun }) => shouldRun).map(({ name }) => name);
  const surge = surgeCount(view, desired.length);
  const unavailable = unavailableCount(view, desired.length);
  // With both limits at 0 the update could not proceed.
  const allowed = surge === 0 && unavailable === 0 && desired.length > 0 ? 1 : unavailable;
  const updates = [...new Set([...view.pods.keys(), ...desired])].map((nodeName) => nodeUpdateOf(view, nodeName));
  return surge === 0 ? planReplacement(updates, allowed) : planSurge(updates, surge);
}

/** Pods of one node, without terminating ones. */
interface NodeUpdate {
  readonly nodeName: string;
  readonly old: Pod | undefined;
  readonly new: Pod | undefined;
  /** More than one old or new Pod; `planNodes` removes the surplus first. */
  readonly hasSurplus: boolean;
  readonly oldAvailable: boolean;
  readonly newAvailable: boolean;
}

function nodeUpdateOf({ daemonSet, pods, hash, now }: View, nodeName: string): NodeUpdate {
  const existing = (pods.get(nodeName) ?? []).filter((pod) => !isTerminating(pod));
  const updated = existing.filter((pod) => isUpdated(pod, hash));
  const outdated = existing.filter((pod) => !isUpdated(pod, hash));
  const available = (pod: Pod | undefined): boolean =>
    pod !== undefined && isAvailable(pod, daemonSet.spec.minReadySeconds ?? 0, now);
  return {
    nodeName,
    old: outdated[0],
    new: updated[0],
    hasSurplus: updated.length > 1 || outdated.length > 1,
    oldAvailable: available(outdated[0]),
    newAvailable: available(updated[0]),
  };
}

/** Deletes old Pods before creating new ones: unavailable Pods immediately, available ones within maxUnavailable. */
function planReplacement(updates: readonly NodeUpdate[], maxUnavailable: number): Plan {
  const unavailableOld = updates.filter(
    ({ hasSurplus, old, new: updated, oldAvailable }) => !hasSurplus && old && !updated && !oldAvailable,
  );
  const available = updates.filter(
    ({ hasSurplus, old, new: updated, oldAvailable }) => !hasSurplus && old && !updated && oldAvailable,
  );
  const missing = updates.filter(
    ({ hasSurplus, old, new: updated, newAvailable }) =>
      hasSurplus || Boolean(old) === Boolean(updated) || (updated && !newAvailable),
  ).length;
  const candidates = available.slice(0, Math.max(0, maxUnavailable - missing));
  return { create: [], delete: [...unavailableOld, ...candidates].flatMap(({ old }) => (old === undefined ? [] : [old])) };
}

/** Creates new Pods next to old ones; deletes an old Pod when its replacement is available. */
function planSurge(updates: readonly NodeUpdate[], maxSurge: number): Plan {
  const withoutSurplus = updates.filter(({ hasSurplus }) => !hasSurplus);
  const both = withoutSurplus.filter((update) => update.old && update.new);
  const onlyOld = withoutSurplus.filter((update) => update.old && !update.new);
  const surging = updates.length - withoutSurplus.length + both.filter(({ newAvailable }) => !newAvailable).length;
  const candidates = onlyOld.filter(({ oldAvailable }) => oldAvailable).slice(0, Math.max(0, maxSurge - surging));
  const unavailableOld = onlyOld.filter(({ oldAvailable }) => !oldAvailable);
  return {
    create: [...unavailableOld, ...candidates].map(({ nodeName }) => nodeName),
    delete: both.flatMap(({ old, newAvailable }) => (old !== undefined && newAvailable ? [old] : [])),
  };
}

import type { Pod } from "@coxswain/apimachinery/schema/kinds/core/v1";
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
  const places = [...new Set([...view.pods.keys(), ...desired])].map((nodeName) => placeOf(view, nodeName));
  return surge === 0 ? replace(places, allowed) : surgeOver(places, surge);
}

/** Pods of one node, without terminating ones. */
interface Place {
  readonly nodeName: string;
  readonly old: Pod | undefined;
  readonly new: Pod | undefined;
  /** More than one old or new Pod; `planNodes` removes the surplus first. */
  readonly crowded: boolean;
  readonly oldAvailable: boolean;
  readonly newAvailable: boolean;
}

function placeOf({ daemonSet, pods, hash, now }: View, nodeName: string): Place {
  const there = (pods.get(nodeName) ?? []).filter((pod) => !isTerminating(pod));
  const updated = there.filter((pod) => isUpdated(pod, hash));
  const outdated = there.filter((pod) => !isUpdated(pod, hash));
  const available = (pod: Pod | undefined): boolean =>
    pod !== undefined && isAvailable(pod, daemonSet.spec.minReadySeconds ?? 0, now);
  return {
    nodeName,
    old: outdated[0],
    new: updated[0],
    crowded: updated.length > 1 || outdated.length > 1,
    oldAvailable: available(outdated[0]),
    newAvailable: available(updated[0]),
  };
}

/** Deletes old Pods before creating new ones: unavailable Pods immediately, available ones within maxUnavailable. */
function replace(places: readonly Place[], maxUnavailable: number): Plan {
  const useless = places.filter(({ crowded, old, new: updated, oldAvailable }) => !crowded && old && !updated && !oldAvailable);
  const serving = places.filter(({ crowded, old, new: updated, oldAvailable }) => !crowded && old && !updated && oldAvailable);
  const missing = places.filter(
    ({ crowded, old, new: updated, newAvailable }) => crowded || Boolean(old) === Boolean(updated) || (updated && !newAvailable),
  ).length;
  const candidates = serving.slice(0, Math.max(0, maxUnavailable - missing));
  return { create: [], delete: [...useless, ...candidates].flatMap(({ old }) => (old === undefined ? [] : [old])) };
}

/** Creates new Pods next to old ones; deletes an old Pod when its replacement is available. */
function surgeOver(places: readonly Place[], maxSurge: number): Plan {
  const orderly = places.filter(({ crowded }) => !crowded);
  const both = orderly.filter((place) => place.old && place.new);
  const onlyOld = orderly.filter((place) => place.old && !place.new);
  const surging = places.length - orderly.length + both.filter(({ newAvailable }) => !newAvailable).length;
  const candidates = onlyOld.filter(({ oldAvailable }) => oldAvailable).slice(0, Math.max(0, maxSurge - surging));
  const useless = onlyOld.filter(({ oldAvailable }) => !oldAvailable);
  return {
    create: [...useless, ...candidates].map(({ nodeName }) => nodeName),
    delete: both.flatMap(({ old, newAvailable }) => (old !== undefined && newAvailable ? [old] : [])),
  };
}

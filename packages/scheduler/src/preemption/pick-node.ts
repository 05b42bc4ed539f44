import type { Pod } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import type { Victims } from "../extenders/extender.ts";
import { priorityOf, startOf } from "./victims.ts";

/** Makes priorities non-negative; else sums favour more victims of negative priority. Source: pickOneNodeForPreemption */
const priorityOffset = 2 ** 31;

const highest = (pods: readonly Pod[]): number => pods.reduce((most, pod) => Math.max(most, priorityOf(pod)), -priorityOffset);

/** Earliest start time in ms among the pods of the highest priority. */
function earliestStart(pods: readonly Pod[]): number {
  const priority = highest(pods);
  return pods
    .filter((pod) => priorityOf(pod) === priority)
    .reduce((earliest, pod) => Math.min(earliest, startOf(pod)), Number.MAX_SAFE_INTEGER);
}

/** Applied in this order until one node is left; less is better. */
const criteria: readonly ((victims: Victims) => number)[] = [
  ({ violations }) => violations,
  // Victims that violate a budget come first in the list: upstream takes the first one's priority, not the highest.
  ({ pods }) => (pods[0] === undefined ? -priorityOffset : priorityOf(pods[0])),
  ({ pods }) => pods.reduce((sum, pod) => sum + priorityOf(pod) + priorityOffset, 0),
  ({ pods }) => pods.length,
  ({ pods }) => -earliestStart(pods),
];

/** Pure: the node where preemption does the least harm; the first of equal ones. */
export function pickNode(candidates: ReadonlyMap<string, Victims>): string | undefined {
  let left = [...candidates];
  for (const criterion of criteria) {
    if (left.length < 2) break;
    const values = left.map(([, victims]) => criterion(victims));
    const least = values.reduce((min, value) => Math.min(min, value));
    left = left.filter((_, i) => values[i] === least);
  }
  return left[0]?.[0];
}

import type { Pod } from "@coxswain/apimachinery/schema/kinds/core/v1";
import type { Victims } from "../extenders/extender.ts";
import { priorityOf, startOf } from "./victims.ts";

/** Sums must not favour few pods of very low priority. Source: pickOneNodeForPreemption's MaxInt32 + 1 */
const priorityOffset = 2 ** 31;

const highest = (pods: readonly Pod[]): number => pods.reduce((most, pod) => Math.max(most, priorityOf(pod)), -priorityOffset);

/** When the most important of them began. */
function earliestStart(pods: readonly Pod[]): number {
  const priority = highest(pods);
  return pods
    .filter((pod) => priorityOf(pod) === priority)
    .reduce((earliest, pod) => Math.min(earliest, startOf(pod)), Number.MAX_SAFE_INTEGER);
}

/** In this order; less is better. */
const criteria: readonly ((victims: Victims) => number)[] = [
  ({ violations }) => violations,
  ({ pods }) => highest(pods),
  ({ pods }) => pods.reduce((sum, pod) => sum + priorityOf(pod) + priorityOffset, 0),
  ({ pods }) => pods.length,
  ({ pods }) => -earliestStart(pods),
];

/** Pure: the node where preemption hurts least, the first of those that are alike. */
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

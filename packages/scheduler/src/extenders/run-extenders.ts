import type { Pod } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import type { NodeInfo } from "../cache/node-info.ts";
import { maxNodeScore } from "../framework/extension-points.ts";
import type { Status } from "../framework/status.ts";
import type { Extender } from "./extender.ts";

/** Extender scores range from 0 to 10, plugin scores from 0 to 100. */
const scoreScale = maxNodeScore / 10;

/**
 * Calls the extenders sequentially, each with the nodes that the previous ones left. Rejections are added to `statuses`.
 * @throws the error of an extender that is not ignorable
 * Source: pkg/scheduler/generic_scheduler.go findNodesThatPassExtenders
 */
export async function filterByExtenders(
  extenders: readonly Extender[],
  pod: Pod,
  nodes: readonly NodeInfo[],
  statuses: Map<string, Status>,
): Promise<readonly NodeInfo[]> {
  let left = nodes;
  for (const extender of extenders) {
    if (left.length === 0) break;
    try {
      const { feasible, failed, unresolvable } = await extender.filter(pod, left);
      for (const [name, reason] of unresolvable) addRefusal(statuses, name, reason, "UnschedulableAndUnresolvable");
      for (const [name, reason] of failed) if (!unresolvable.has(name)) addRefusal(statuses, name, reason, undefined);
      left = feasible;
    } catch (err) {
      if (!extender.ignorable) throw err;
    }
  }
  return left;
}

function addRefusal(statuses: Map<string, Status>, name: string, reason: string, code: Status["code"] | undefined): void {
  const before = statuses.get(name);
  const reasons = [...(before?.reasons ?? []), reason];
  statuses.set(name, { ...before, code: code ?? before?.code ?? "Unschedulable", reasons });
}

/** Adds extender scores to `totals`, where `totals[i]` belongs to `nodes[i]`. Extenders that fail are left out. */
export async function addExtenderScores(
  extenders: readonly Extender[],
  pod: Pod,
  nodes: readonly NodeInfo[],
  totals: number[],
): Promise<void> {
  const answers = await Promise.allSettled(extenders.map((extender) => extender.prioritize(pod, nodes)));
  for (const answer of answers) {
    if (answer.status === "rejected") continue;
    for (const [i, { name }] of nodes.entries()) totals[i] = totals[i]! + scoreScale * (answer.value.get(name) ?? 0);
  }
}

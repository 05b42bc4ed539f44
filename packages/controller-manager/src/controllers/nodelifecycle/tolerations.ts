import type { Pod, Taint, Toleration } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { Tolerations } from "@coxswain/apimachinery/scheduling/tolerations";

/**
 * Pure: how long a Pod may stay on a node with these NoExecute taints.
 * @returns ms; 0 when a taint is not tolerated, Infinity without a time limit
 * Source: pkg/controller/nodelifecycle/scheduler/taint_manager.go
 */
export function toleratedForMs({ spec }: Pod, taints: readonly Taint[]): number {
  const noExecute = taints.filter(({ effect }) => effect === "NoExecute");
  let toleratedMs = Number.POSITIVE_INFINITY;
  const tolerations = new Tolerations(spec.tolerations ?? []);
  const used: Toleration[] = [];
  for (const taint of noExecute) {
    const toleration = tolerations.firstFor(taint);
    if (toleration === undefined) return 0;
    used.push(toleration);
  }
  for (const { tolerationSeconds } of used) {
    if (tolerationSeconds !== undefined) toleratedMs = Math.min(toleratedMs, Math.max(0, Number(tolerationSeconds)) * 1000);
  }
  return toleratedMs;
}

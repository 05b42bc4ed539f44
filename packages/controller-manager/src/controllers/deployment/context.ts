import type { SharedInformer } from "@coxswain/apimachinery/informers/shared-informer";
import type { Deployment, ReplicaSet } from "@coxswain/apimachinery/objects/schema/kinds/apps/v1";
import type { Pod } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { deployments, pods, replicaSets } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import type { ControllerContext } from "../../controller-context.ts";
import { byOrphan, orphanIndex } from "../../pods/ownership.ts";

/** Dependencies shared by all reconciliations of Deployments. */
export interface DeploymentContext extends ControllerContext {
  readonly deployments: SharedInformer<Deployment>;
  readonly replicaSets: SharedInformer<ReplicaSet>;
  readonly pods: SharedInformer<Pod>;
}

/** Also indexes ReplicaSets without a controller, for adoption. */
export function newDeploymentContext(base: ControllerContext): DeploymentContext {
  const { informers } = base;
  const ctx: DeploymentContext = {
    ...base,
    deployments: informers.for<Deployment>(deployments),
    replicaSets: informers.for<ReplicaSet>(replicaSets),
    pods: informers.for<Pod>(pods),
  };
  ctx.replicaSets.addIndex(orphanIndex, byOrphan);
  return ctx;
}

/** Context of one reconciliation of one Deployment. */
export interface Rollout {
  readonly ctx: DeploymentContext;
  readonly signal: AbortSignal;
  /** The last version read or written; base of the next write. */
  deployment: Deployment;
}

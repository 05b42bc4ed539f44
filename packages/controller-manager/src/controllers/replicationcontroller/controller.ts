import type { Controller } from "@coxswain/apimachinery/controller/controller";
import type { ReplicationController } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { replicationControllers } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { LabelSelector } from "@coxswain/apimachinery/objects/selectors/label-selector";
import type { ControllerContext } from "../../controller-context.ts";
import { newReplicasController } from "../replicaset/controller.ts";

/**
 * replication-controller: the replicaset controller for ReplicationControllers, whose selector is a plain map.
 * Watches ReplicationControllers and Pods; writes Pods and replicationcontrollers/status.
 */
export const newReplicationControllerController = (ctx: ControllerContext): Controller =>
  newReplicasController<ReplicationController>(ctx, {
    name: "replicationmanager",
    ref: replicationControllers,
    workers: ctx.config.concurrency.replicationController,
    selectorOf: ({ spec }) => LabelSelector.fromSet(spec?.selector ?? {}),
  });

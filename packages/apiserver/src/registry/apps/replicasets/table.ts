import type { KubeObject } from "@coxswain/apimachinery/objects/meta/types";
import type { ReplicaSet } from "@coxswain/apimachinery/objects/schema/kinds/apps/v1";
import type { PodTemplateSpec } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { age, containerCells, selectorText, tableOf } from "../../cells.ts";

interface Replicas extends KubeObject {
  spec?: { replicas?: number; template?: PodTemplateSpec };
  status?: { replicas: number; readyReplicas?: number };
}

/** The table of ReplicaSets and ReplicationControllers. */
export const replicaTable = <T extends Replicas>(resource: Parameters<typeof tableOf>[0], selector: (object: T) => string) =>
  tableOf<T>(resource, (object, ages) => [
    object.metadata.name ?? "",
    object.spec?.replicas ?? 0,
    object.status?.replicas ?? 0,
    object.status?.readyReplicas ?? 0,
    age(object, ages),
    ...containerCells(object.spec?.template?.spec?.containers),
    selector(object),
  ]);

export const replicaSetTable = replicaTable<ReplicaSet>("replicasets", ({ spec }) => selectorText(spec?.selector));

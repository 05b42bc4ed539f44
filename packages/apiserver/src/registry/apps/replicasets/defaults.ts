import type { KubeObject } from "@coxswain/apimachinery/objects/meta/types";
import type { ReplicaSet } from "@coxswain/apimachinery/objects/schema/kinds/apps/v1";
import { defaultTemplateOf } from "../../core/pods/defaults.ts";

export function defaultReplicaSet(object: KubeObject): void {
  const replicaSet = object as ReplicaSet;
  replicaSet.spec ??= {} as NonNullable<ReplicaSet["spec"]>;
  replicaSet.spec.replicas ??= 1;
  defaultTemplateOf(replicaSet.spec);
}

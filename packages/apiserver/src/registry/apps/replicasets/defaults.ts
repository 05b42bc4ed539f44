import type { ReplicaSet } from "@coxswain/apimachinery/objects/schema/kinds/apps/v1";
import { defaultTemplateOf } from "../../core/pods/defaults.ts";

export function defaultReplicaSet(replicaSet: ReplicaSet): void {
  replicaSet.spec ??= {} as NonNullable<ReplicaSet["spec"]>;
  replicaSet.spec.replicas ??= 1;
  defaultTemplateOf(replicaSet.spec);
}

import type { ReplicaSet } from "@coxswain/apimachinery/objects/schema/kinds/apps/v1";
import { defaultTemplateOf } from "../../core/pods/defaults.ts";
import { emptyStruct } from "../../rules.ts";

export function defaultReplicaSet(replicaSet: ReplicaSet): void {
  replicaSet.spec ??= emptyStruct();
  replicaSet.spec.replicas ??= 1;
  defaultTemplateOf(replicaSet.spec);
}

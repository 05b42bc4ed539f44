import type { StatefulSet } from "@coxswain/apimachinery/objects/schema/kinds/apps/v1";
import { defaultPersistentVolumeClaim } from "../../core/persistentvolumeclaims/defaults.ts";
import { defaultTemplateOf } from "../../core/pods/defaults.ts";
import { emptyStruct } from "../../rules.ts";

export function defaultStatefulSet(statefulSet: StatefulSet): void {
  statefulSet.spec ??= emptyStruct();
  const { spec } = statefulSet;
  spec.podManagementPolicy ||= "OrderedReady";
  spec.updateStrategy ??= {};
  if (!spec.updateStrategy.type) {
    spec.updateStrategy.type = "RollingUpdate";
    spec.updateStrategy.rollingUpdate ??= {};
    spec.updateStrategy.rollingUpdate.partition ??= 0;
  } else if (spec.updateStrategy.type === "RollingUpdate" && spec.updateStrategy.rollingUpdate) {
    spec.updateStrategy.rollingUpdate.partition ??= 0;
  }
  spec.replicas ??= 1;
  spec.revisionHistoryLimit ??= 10;
  defaultTemplateOf(spec);
  for (const claim of spec.volumeClaimTemplates ?? []) {
    // Overwrites the values given by the client.
    claim.apiVersion = "v1";
    claim.kind = "PersistentVolumeClaim";
    defaultPersistentVolumeClaim(claim);
  }
}

import type { DaemonSet } from "@coxswain/apimachinery/objects/schema/kinds/apps/v1";
import { defaultTemplateOf } from "../../core/pods/defaults.ts";
import { emptyStruct } from "../../rules.ts";
import { nameTemplateGeneration } from "./template-generation.ts";

export function defaultDaemonSet(daemonSet: DaemonSet): void {
  daemonSet.spec ??= emptyStruct();
  const { spec } = daemonSet;
  spec.updateStrategy ??= {};
  spec.updateStrategy.type ||= "RollingUpdate";
  if (spec.updateStrategy.type === "RollingUpdate") {
    spec.updateStrategy.rollingUpdate ??= {};
    spec.updateStrategy.rollingUpdate.maxUnavailable ??= 1;
    spec.updateStrategy.rollingUpdate.maxSurge ??= 0;
  }
  spec.revisionHistoryLimit ??= 10;
  defaultTemplateOf(spec);
  nameTemplateGeneration(daemonSet);
}

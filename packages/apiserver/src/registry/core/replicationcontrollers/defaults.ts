import type { ReplicationController } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { defaultPodTemplate } from "../pods/defaults.ts";

/** Source: pkg/apis/core/v1/defaults.go */
export function defaultReplicationController(controller: ReplicationController): void {
  controller.spec ??= {};
  const labels = controller.spec.template?.metadata?.labels;
  if (labels && Object.keys(labels).length > 0) {
    if (Object.keys(controller.spec.selector ?? {}).length === 0) controller.spec.selector = { ...labels };
    if (Object.keys(controller.metadata.labels ?? {}).length === 0) controller.metadata.labels = { ...labels };
  }
  controller.spec.replicas ??= 1;
  defaultPodTemplate(controller.spec.template);
}

import type { KubeObject } from "@coxswain/apimachinery/meta/types";
import type { PodSpec } from "@coxswain/apimachinery/schema/kinds/core/v1";
import type { AdmissionAttributes } from "../plugin.ts";

export interface PodObject extends KubeObject {
  spec: PodSpec;
}

/** The pod itself; undefined for other resources and for subresources of pods. */
export function podOf({ resource, subresource, object }: AdmissionAttributes): PodObject | undefined {
  const isPod = resource.group === "" && resource.resource === "pods" && subresource === "";
  return isPod ? (object as PodObject | undefined) : undefined;
}

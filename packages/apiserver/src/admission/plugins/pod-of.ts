import type { KubeObject } from "@coxswain/apimachinery/meta/types";
import type { PodSpec } from "@coxswain/apimachinery/schema/kinds/core/v1";
import type { AdmissionAttributes } from "../plugin.ts";

export interface PodObject extends KubeObject {
  spec: PodSpec;
}

/** The pod itself; undefined for other resources and for subresources of pods. */
export function podOf(attributes: AdmissionAttributes): PodObject | undefined {
  return attributes.subresource === "" ? podWithContainers(attributes) : undefined;
}

/** The pod on every path by which a container can come into it: `pods` and `pods/ephemeralcontainers`. */
export function podWithContainers({ resource, subresource, object }: AdmissionAttributes): PodObject | undefined {
  if (resource.group !== "" || resource.resource !== "pods") return undefined;
  return subresource === "" || subresource === "ephemeralcontainers" ? (object as PodObject | undefined) : undefined;
}

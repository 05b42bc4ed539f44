import type { KubeObject } from "@coxswain/apimachinery/objects/meta/types";
import type { PodSpec } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import type { AdmissionAttributes } from "../plugin.ts";

export interface PodObject extends KubeObject {
  spec: PodSpec;
}

/** The pod of a request on `pods`; undefined for other resources and subresources. */
export function podOf(attributes: AdmissionAttributes): PodObject | undefined {
  return attributes.subresource === "" ? podWithContainers(attributes) : undefined;
}

/** The pod of requests that can add containers: on `pods` and `pods/ephemeralcontainers`. */
export function podWithContainers({ resource, subresource, object }: AdmissionAttributes): PodObject | undefined {
  if (resource.group !== "" || resource.resource !== "pods") return undefined;
  return subresource === "" || subresource === "ephemeralcontainers" ? (object as PodObject | undefined) : undefined;
}

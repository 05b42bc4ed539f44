import type { KubeObject } from "@coxswain/apimachinery/objects/meta/types";
import type { PodSpec } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import type { AdmissionAttributes } from "../plugin.ts";

export interface PodObject extends KubeObject {
  spec: PodSpec;
}

/**
 * Whether a request is on a resource, whose kind its objects then have; those of a subresource have the kind that it takes.
 * @param resource its name, with the group unless that is the core group: `pods`, `leases.coordination.k8s.io`
 */
export function isOn<T extends KubeObject>(
  attributes: AdmissionAttributes,
  resource: string,
): attributes is AdmissionAttributes<T> {
  const { group, resource: name } = attributes.resource;
  return resource === (group === "" ? name : `${name}.${group}`);
}

/** The pod of a request on `pods`; undefined for other resources and subresources. */
export function podOf(attributes: AdmissionAttributes): PodObject | undefined {
  return attributes.subresource === "" ? podWithContainers(attributes) : undefined;
}

/** The pod of requests that can add containers: on `pods` and `pods/ephemeralcontainers`. */
export function podWithContainers(attributes: AdmissionAttributes): PodObject | undefined {
  if (!isOn<PodObject>(attributes, "pods")) return undefined;
  const { subresource, object } = attributes;
  return subresource === "" || subresource === "ephemeralcontainers" ? object : undefined;
}

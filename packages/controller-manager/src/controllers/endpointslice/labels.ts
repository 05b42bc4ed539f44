import { newControllerRef } from "@coxswain/apimachinery/objects/meta/owner-references";
import type { Service } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import type { EndpointPort, EndpointSlice } from "@coxswain/apimachinery/objects/schema/kinds/discovery/v1";
import { services } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { isHeadless } from "../../services/service-pods.ts";

export const serviceNameLabel = "kubernetes.io/service-name";
export const managedByLabel = "endpointslice.kubernetes.io/managed-by";
export const managerName = "endpointslice-controller.k8s.io";
const headlessLabel = "service.kubernetes.io/headless";

/** Slices to create, update and delete. */
export interface SlicePlan {
  readonly create: readonly EndpointSlice[];
  readonly update: readonly EndpointSlice[];
  readonly delete: readonly EndpointSlice[];
}

/**
 * Pure: the Service's labels plus the headless, service-name and managed-by labels.
 * Source: endpointslice/utils.go setEndpointSliceLabels
 */
export function labelsOfSlice({ metadata, spec }: Service): Record<string, string> {
  const labels = { ...metadata.labels }; // one copy: a Service may have 60,000
  delete labels[headlessLabel];
  if (isHeadless({ metadata, spec })) labels[headlessLabel] = "";
  labels[serviceNameLabel] = metadata.name ?? "";
  labels[managedByLabel] = managerName;
  return labels;
}

/** An empty slice owned by the Service. */
export function newSlice(
  service: Service,
  addressType: string,
  ports: EndpointPort[],
  labels = labelsOfSlice(service),
): EndpointSlice {
  const { namespace, name = "" } = service.metadata;
  // Leaves space for the dash and the generated suffix of five characters.
  const generateName = `${name.slice(0, 253 - 1 - 5)}-`;
  return {
    apiVersion: "discovery.k8s.io/v1",
    kind: "EndpointSlice",
    metadata: {
      generateName,
      ...(namespace === undefined ? {} : { namespace }),
      labels,
      ownerReferences: [newControllerRef(service, services)],
    },
    addressType,
    endpoints: [],
    ports,
  };
}

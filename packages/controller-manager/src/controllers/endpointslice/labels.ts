import { newControllerRef } from "@coxswain/apimachinery/meta/owner-references";
import type { Service } from "@coxswain/apimachinery/schema/kinds/core/v1";
import type { EndpointPort, EndpointSlice } from "@coxswain/apimachinery/schema/kinds/discovery/v1";
import { services } from "@coxswain/apimachinery/schema/kinds/resources";
import { isHeadless } from "../../services/service-pods.ts";

export const serviceNameLabel = "kubernetes.io/service-name";
export const managedByLabel = "endpointslice.kubernetes.io/managed-by";
export const managerName = "endpointslice-controller.k8s.io";
const headlessLabel = "service.kubernetes.io/headless";

/** What has to change so that the slices list what they should. */
export interface SlicePlan {
  readonly create: readonly EndpointSlice[];
  readonly update: readonly EndpointSlice[];
  readonly delete: readonly EndpointSlice[];
}

/** Pure: the service's labels, and the three that say whose slice it is. Source: endpointslice/utils.go setEndpointSliceLabels */
export function labelsOfSlice({ metadata, spec }: Service): Record<string, string> {
  const { [headlessLabel]: _, ...labels } = { ...metadata.labels };
  if (isHeadless({ metadata, spec } as Service)) labels[headlessLabel] = "";
  return { ...labels, [serviceNameLabel]: metadata.name ?? "", [managedByLabel]: managerName };
}

/** An empty slice that goes when its service goes. */
export function newSlice(service: Service, addressType: string, ports: EndpointPort[]): EndpointSlice {
  const { namespace, name = "" } = service.metadata;
  // A generated suffix of five has to fit behind it.
  const generateName = `${name.slice(0, 253 - 1 - 5)}-`;
  return {
    apiVersion: "discovery.k8s.io/v1",
    kind: "EndpointSlice",
    metadata: {
      generateName,
      ...(namespace === undefined ? {} : { namespace }),
      labels: labelsOfSlice(service),
      ownerReferences: [newControllerRef(service, services)],
    },
    addressType,
    endpoints: [],
    ports,
  };
}

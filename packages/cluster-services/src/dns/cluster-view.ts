import type { InformerFactory } from "@coxswain/apimachinery/informers/factory";
import { keyOf } from "@coxswain/apimachinery/objects/meta/object-key";
import type { KubeObject } from "@coxswain/apimachinery/objects/meta/types";
import type { Service } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import type { EndpointSlice } from "@coxswain/apimachinery/objects/schema/kinds/discovery/v1";
import { endpointSlices, namespaces, services } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { addressKey, addressKeysOf, clusterIpsOf } from "./service-records.ts";
import type { ClusterView } from "./zone.ts";

const serviceNameLabel = "kubernetes.io/service-name";
const byService = "dns-service";
const byAddress = "dns-address";

const serviceOfSlice = ({ metadata }: EndpointSlice): string[] => {
  const service = metadata.labels?.[serviceNameLabel];
  return service ? [`${metadata.namespace}/${service}`] : [];
};
const addressesOfService = (service: Service): string[] => clusterIpsOf(service).map(addressKey);

/** The cluster as the informers know it: the last known state while the API server cannot be reached. */
export function newClusterView(informers: InformerFactory): ClusterView & { readonly isSynced: boolean } {
  const serviceInformer = informers.for<Service>(services);
  const sliceInformer = informers.for<EndpointSlice>(endpointSlices);
  const namespaceInformer = informers.for<KubeObject>(namespaces, { metadataOnly: true });
  const all: readonly { readonly synced: boolean }[] = [serviceInformer, sliceInformer, namespaceInformer];
  serviceInformer.addIndex(byAddress, addressesOfService);
  sliceInformer.addIndex(byAddress, addressKeysOf);
  sliceInformer.addIndex(byService, serviceOfSlice);
  return {
    service: (key) => serviceInformer.lister.get(key),
    slicesOf: (key) => sliceInformer.lister.byIndex(byService, key),
    servicesAt: (address) => serviceInformer.lister.byIndex(byAddress, address),
    slicesAt: (address) => sliceInformer.lister.byIndex(byAddress, address),
    hasNamespace: (name) => namespaceInformer.lister.get(keyOf({ metadata: { name } })) !== undefined,
    get isSynced() {
      return all.every(({ synced }) => synced);
    },
  };
}

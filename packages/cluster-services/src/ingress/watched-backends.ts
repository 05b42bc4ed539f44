import type { SharedInformer } from "@coxswain/apimachinery/informers/shared-informer";
import { deepEqual } from "@coxswain/apimachinery/objects/meta/deep-equal";
import { keyOf, type ObjectKey, toKey } from "@coxswain/apimachinery/objects/meta/object-key";
import type { Node, Service } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import type { EndpointSlice } from "@coxswain/apimachinery/objects/schema/kinds/discovery/v1";
import type { PartContext } from "../part.ts";
import { isRefused } from "./addresses.ts";
import { Backends } from "./backends.ts";
import { newNodeAddresses } from "./node-addresses.ts";

const serviceLabel = "kubernetes.io/service-name";
const serviceOf = ({ metadata }: EndpointSlice): ObjectKey => toKey(metadata.namespace, metadata.labels?.[serviceLabel] ?? "");
/** Informers are shared: the name is this part's own, and the function the same when the part starts again. */
export const byServiceIndex = "ingress-service";
export const byService = (slice: EndpointSlice): string[] => [serviceOf(slice)];

/** Backends by what the informers show, which look their endpoints up anew when that changes. */
export function watchedBackends(
  { clock }: Pick<PartContext, "clock">,
  seen: {
    readonly services: SharedInformer<Service>;
    /** With the index `byServiceIndex`. */
    readonly slices: SharedInformer<EndpointSlice>;
    readonly nodes: SharedInformer<Node>;
  },
): Backends {
  const nodeAddresses = newNodeAddresses({ nodes: () => seen.nodes.lister.list(), now: () => clock.monotonic() });
  const backends = new Backends({
    services: seen.services.lister,
    slicesOf: (service) => seen.slices.lister.byIndex(byServiceIndex, service),
    isRefused: (address) => isRefused(address, nodeAddresses()),
    addresses: nodeAddresses,
  });
  const serviceChanged = (service: Service): void => backends.changed(keyOf(service));
  seen.services.addHandler({ added: serviceChanged, updated: (_, now) => serviceChanged(now), deleted: serviceChanged });
  const sliceChanged = (slice: EndpointSlice): void => backends.changed(serviceOf(slice));
  seen.slices.addHandler({
    added: sliceChanged,
    updated(old, now) {
      sliceChanged(old);
      sliceChanged(now);
    },
    deleted: sliceChanged,
  });
  seen.nodes.addHandler(onAddresses(() => backends.changed()));
  return backends;
}

/** Handlers that are called when the addresses of nodes change. */
export function onAddresses(changed: () => void) {
  return {
    added: changed,
    updated(old: Node, now: Node) {
      if (!deepEqual(old.status?.addresses, now.status?.addresses)) changed();
    },
    deleted: changed,
  };
}

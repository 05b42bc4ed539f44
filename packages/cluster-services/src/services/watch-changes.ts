import { keyOf, toKey } from "@coxswain/apimachinery/objects/meta/object-key";
import { parseTime } from "@coxswain/apimachinery/objects/meta/time";
import type { Node, Service } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import type { EndpointSlice } from "@coxswain/apimachinery/objects/schema/kinds/discovery/v1";
import { endpointSlices, nodes, services } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import type { PartContext } from "../part.ts";
import { newProxyMetrics } from "./metrics.ts";
import type { ThisNode } from "./service-port.ts";
import type { ServiceRules } from "./service-rules.ts";

const serviceLabel = "kubernetes.io/service-name";
export const byServiceIndex = "service";
export const byService = ({ metadata }: EndpointSlice): string[] => {
  const name = metadata.labels?.[serviceLabel];
  return name === undefined ? [] : [toKey(metadata.namespace, name)];
};

/** Reports to the rules which Services have changed, beginning with every existing one. */
export function watchChanges(
  { informers, metrics, nodeName, clock }: Pick<PartContext, "informers" | "metrics" | "nodeName" | "clock">,
  { changed, allChanged, thisNode }: { changed: ServiceRules["changed"]; allChanged(): void; thisNode(): ThisNode },
): void {
  const { serviceChanges, endpointChanges } = newProxyMetrics(metrics);
  const serviceChanged = (service: Service): void => {
    serviceChanges.inc();
    changed(keyOf(service));
  };
  const startedAt = clock.now();
  const sliceChanged = (slice: EndpointSlice): void => {
    endpointChanges.inc();
    const at = parseTime(slice.metadata.annotations?.["endpoints.kubernetes.io/last-change-trigger-time"] ?? "");
    for (const key of byService(slice)) changed(key, at === undefined || at < startedAt ? [] : [at]);
  };
  informers.for<Service>(services).addHandler({
    added: serviceChanged,
    updated: (_, now) => serviceChanged(now),
    deleted: serviceChanged,
  });
  informers.for<EndpointSlice>(endpointSlices).addHandler({
    added: sliceChanged,
    updated(old, now) {
      if (old.metadata.labels?.[serviceLabel] !== now.metadata.labels?.[serviceLabel]) sliceChanged(old);
      sliceChanged(now);
    },
    deleted: sliceChanged,
  });
  let zone = thisNode().zone;
  const nodeChanged = (): void => {
    if (thisNode().zone === zone) return; // its heartbeats
    zone = thisNode().zone;
    allChanged();
  };
  const own = informers.for<Node>(nodes, { fieldSelector: `metadata.name=${nodeName}` });
  own.addHandler({ added: nodeChanged, updated: nodeChanged, deleted: nodeChanged });
}

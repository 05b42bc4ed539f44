import { type ObjectKey, toKey } from "@coxswain/apimachinery/objects/meta/object-key";
import type { Node, Service } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import type { EndpointSlice } from "@coxswain/apimachinery/objects/schema/kinds/discovery/v1";
import { endpointSlices, nodes, services } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import type { Part, PartContext } from "../part.ts";
import { isServed } from "./assign.ts";
import { newLoadBalancerMetrics } from "./metrics.ts";
import { excludedLabel } from "./names.ts";
import { poolOf, reservedPorts } from "./settings.ts";
import { StatusWriter } from "./status-writer.ts";

/** Chooses the addresses of Services of type LoadBalancer. */
export async function startLoadBalancers(context: PartContext): Promise<Part> {
  const { flags, informers, signal, fail } = context;
  const pool = poolOf(flags);
  const reserved = reservedPorts(flags);
  const serviceInformer = informers.for<Service>(services);
  const sliceInformer = informers.for<EndpointSlice>(endpointSlices);
  const nodeInformer = informers.for<Node>(nodes);
  sliceInformer.addIndex(byServiceIndex, serviceOf);
  await Promise.all([serviceInformer, sliceInformer, nodeInformer].map((informer) => informer.waitForSync(signal)));
  const writer = new StatusWriter({
    ...context,
    metrics: newLoadBalancerMetrics(context.metrics),
    cluster: () => {
      const all = nodeInformer.lister.list();
      return {
        ...{ nodes: all, pool, services: serviceInformer.lister.list() },
        nodesWithEndpoints: (key) => readyNodes(sliceInformer.lister.byIndex(byServiceIndex, key)),
        reservedPorts: new Set([...reserved, ...kubeletPorts(all)]),
      };
    },
  });
  const changed = (): void => writer.changed();
  serviceInformer.addHandler({
    added: changed,
    updated(old, now) {
      if (old.metadata.resourceVersion !== now.metadata.resourceVersion) changed();
    },
    deleted: changed,
  });
  const sliceChanged = (slice: EndpointSlice): void => {
    const isOfInterest = serviceOf(slice).some((key) => {
      const service = serviceInformer.lister.get(key);
      return service !== undefined && isServed(service) && service.spec.externalTrafficPolicy === "Local";
    });
    if (isOfInterest && pool.isEmpty) changed();
  };
  sliceInformer.addHandler({ added: sliceChanged, updated: (_, now) => sliceChanged(now), deleted: sliceChanged });
  nodeInformer.addHandler({
    added: changed,
    updated(old, now) {
      if (factsOf(old) !== factsOf(now)) changed(); // not its heartbeats
    },
    deleted: changed,
  });
  const running = writer.run(signal).catch(fail);
  return {
    check: () => writer.check(),
    async stop() {
      await running;
    },
  };
}

export const byServiceIndex = "load-balancer-service";
/** Index function: the key of the Service that the slice belongs to by its label. */
export const serviceOf = ({ metadata }: EndpointSlice): ObjectKey[] => {
  const name = metadata.labels?.["kubernetes.io/service-name"];
  return name === undefined ? [] : [toKey(metadata.namespace, name)];
};

/** Nodes with endpoints that are ready. */
export const readyNodes = (slices: readonly EndpointSlice[]): Set<string> =>
  new Set(
    slices.flatMap(({ endpoints }) =>
      endpoints.flatMap(({ nodeName, conditions }) => (nodeName !== undefined && conditions?.ready !== false ? [nodeName] : [])),
    ),
  );

/** A Service with that port would take the API server's connections to the kubelets. */
const kubeletPorts = (all: readonly Node[]): number[] =>
  all.flatMap(({ status }) => status?.daemonEndpoints?.kubeletEndpoint?.Port ?? []);

const factsOf = ({ metadata, status }: Node): string =>
  JSON.stringify([
    metadata.labels?.[excludedLabel],
    metadata.deletionTimestamp,
    status?.addresses,
    status?.daemonEndpoints,
    status?.conditions?.find(({ type }) => type === "Ready")?.status,
  ]);

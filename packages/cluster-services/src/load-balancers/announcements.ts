import { keyOf, type ObjectKey } from "@coxswain/apimachinery/objects/meta/object-key";
import type { Node, Pod, Service } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { isServed, statusAddresses } from "./assign.ts";
import { excludedLabel } from "./names.ts";
import type { Pool } from "./pool.ts";

interface AnnounceInput {
  readonly node: Node | undefined;
  readonly nodeName: string;
  readonly services: readonly Service[];
  readonly pool: Pool;
  readonly nodesWithEndpoints: (service: ObjectKey) => ReadonlySet<string>;
}

/**
 * Pure: the addresses of the pool that this node is a candidate for; the lease of each address decides which candidate announces
 * it.
 */
export function candidatesFor({ node, nodeName, services, pool, nodesWithEndpoints }: AnnounceInput): Set<string> {
  if (node === undefined || node.metadata.labels?.[excludedLabel] !== undefined) return new Set();
  return new Set(
    services
      .filter((service) => isServed(service) && !service.metadata.deletionTimestamp)
      .filter(({ spec, metadata }) => {
        const isLocal = spec.externalTrafficPolicy === "Local";
        return !isLocal || nodesWithEndpoints(`${metadata.namespace}/${metadata.name}`).has(nodeName);
      })
      .flatMap(statusAddresses)
      .filter((ip) => pool.has(ip)),
  );
}

interface HostPortConflict {
  readonly service: Service;
  readonly message: string;
}

/** Pure: Services whose addresses are this node's, and pods of it with one of their ports as host port. */
export function hostPortConflicts(services: readonly Service[], pods: readonly Pod[], node: Node): HostPortConflict[] {
  const own = new Set((node.status?.addresses ?? []).map(({ address }) => address));
  const owners = new Map<string, Pod>();
  for (const pod of pods) {
    if (pod.status?.phase === "Succeeded" || pod.status?.phase === "Failed") continue;
    for (const { ports = [] } of pod.spec?.containers ?? []) {
      for (const { hostPort, hostIP, protocol = "TCP" } of ports)
        if (hostPort && (!hostIP || /^(0\.0\.0\.0|::)$/.test(hostIP) || own.has(hostIP)))
          owners.set(`${hostPort}/${protocol}`, pod);
    }
  }
  return services
    .filter(
      (service) =>
        isServed(service) && (service.spec.ports ?? []).some(({ port, protocol = "TCP" }) => owners.has(`${port}/${protocol}`)),
    )
    .filter((service) => statusAddresses(service).some((ip) => own.has(ip)))
    .flatMap((service) =>
      (service.spec.ports ?? []).flatMap(({ port, protocol = "TCP" }) => {
        const pod = owners.get(`${port}/${protocol}`);
        if (pod === undefined) return [];
        const message = `port ${port}/${protocol} of node ${node.metadata.name} is a host port of the pod ${keyOf(pod)} too; connections go to the Service`;
        return [{ service, message }];
      }),
    );
}

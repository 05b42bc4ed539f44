import { invalidValue } from "@coxswain/apimachinery/objects/errors/field-error";
import { internalError, invalid } from "@coxswain/apimachinery/objects/errors/status-error";
import type { Service, ServicePort } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import type { Storage } from "../../../storage/storage.ts";
import type { Transaction } from "../../generic/strategy.ts";
import { AllocationError, newRangeAllocator, type RangeAllocator } from "./range-allocator.ts";

/** Allocates ports from --service-node-port-range. Source: pkg/registry/core/service/portallocator/allocator.go */
export interface NodePortAllocator {
  readonly from: number;
  readonly to: number;
  readonly range: RangeAllocator;
}

/** @param portRange both ports inclusive @param storage of the RangeAllocations, called at each use */
export function newNodePortAllocator(portRange: { from: number; to: number }, storage: () => Storage): NodePortAllocator {
  const { from, to } = portRange;
  const range = newRangeAllocator({
    storage,
    key: "servicenodeports",
    range: `${from}-${to}`,
    size: to - from + 1,
    texts: { taken: "provided port is already allocated", full: "range is full" },
  });
  return { from, to, range };
}

/** All node ports of a service, including the health check port. */
export function nodePortsOf(service: Service): number[] {
  const ports = new Set((service.spec.ports ?? []).map((port) => port.nodePort ?? 0));
  ports.add(service.spec.healthCheckNodePort ?? 0);
  ports.delete(0);
  return [...ports];
}

/**
 * Sets `nodePort` of all ports, and `healthCheckNodePort` when needed. TCP and UDP with the same port number share a node port.
 * @param held ports that the service already has and keeps
 * @throws 422 for ports that are allocated or outside the range; 500 when the range is full
 */
export async function allocateNodePorts(
  service: Service,
  allocator: NodePortAllocator,
  held: readonly number[],
  needs: { ports: boolean; healthCheck: boolean },
  dryRun: boolean,
): Promise<Transaction> {
  const taken: number[] = [];
  const mine = new Set(held);
  const revert = async (): Promise<void> => {
    if (taken.length > 0 && !dryRun) await allocator.range.release(taken.map((port) => port - allocator.from));
  };
  const take = async (port: number, path: string): Promise<void> => {
    if (mine.has(port)) return;
    if (port < allocator.from || port > allocator.to) {
      throw refused(
        service,
        path,
        port,
        `provided port is not in the valid range. The range of valid ports is ${allocator.from}-${allocator.to}`,
      );
    }
    try {
      await allocator.range.take(port - allocator.from, dryRun);
    } catch (err) {
      if (err instanceof AllocationError) throw refused(service, path, port, err.message);
      throw err;
    }
    taken.push(port);
    mine.add(port);
  };
  const takeAny = async (what: string): Promise<number> => {
    const chosen = new Set([...mine].map((port) => port - allocator.from));
    const offset = await allocator.range.takeAny(dryRun, chosen).catch((err: unknown) => {
      if (err instanceof AllocationError) throw internalError(new Error(`failed to allocate a ${what}: ${err.message}`));
      throw err;
    });
    const port = offset + allocator.from;
    taken.push(port);
    mine.add(port);
    return port;
  };
  try {
    const ports: ServicePort[] = needs.ports ? (service.spec.ports ?? []) : [];
    // Requested ports first, so that none of them is assigned to another port.
    for (const [i, port] of ports.entries()) if (port.nodePort) await take(port.nodePort, `spec.ports[${i}].nodePort`);
    const byNumber = Map.groupBy(ports, ({ port }) => port);
    for (const port of ports) {
      if (port.nodePort) continue;
      const twin = byNumber.get(port.port)?.find((other) => other.protocol !== port.protocol && other.nodePort);
      port.nodePort = twin?.nodePort ?? (await takeAny("nodePort"));
    }
    if (needs.healthCheck) {
      const { healthCheckNodePort } = service.spec;
      if (healthCheckNodePort) await take(healthCheckNodePort, "spec.healthCheckNodePort");
      else service.spec.healthCheckNodePort = await takeAny("HealthCheck NodePort");
    }
  } catch (err) {
    await revert();
    throw err;
  }
  return { commit() {}, revert };
}

function refused(service: Service, path: string, port: number, reason: string): Error {
  return invalid({ group: "", kind: "Service" }, service.metadata.name ?? "", [invalidValue(path, port, reason)]);
}

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

const takenText = "provided port is already allocated";

/** @param portRange both ports inclusive @param storage of the RangeAllocations, called at each use */
export function newNodePortAllocator(portRange: { from: number; to: number }, storage: () => Storage): NodePortAllocator {
  const { from, to } = portRange;
  const range = newRangeAllocator({
    storage,
    key: "servicenodeports",
    range: `${from}-${to}`,
    size: to - from + 1,
    texts: { taken: takenText, full: "range is full" },
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
 * Allocates requested node ports, and sets the others as needed.
 * @param held ports that the service already has and keeps
 * @param needs `ports`: those without a node port get one, and of a new service (`shared`) TCP and UDP with the same port number
 *   the same one; `healthCheck`: the service begins to need a `healthCheckNodePort`
 * @throws 422 for ports that are allocated or outside the range; 500 when the range is full, and for a port of health checks
 */
export async function allocateNodePorts(
  service: Service,
  allocator: NodePortAllocator,
  held: readonly number[],
  needs: { ports: boolean; shared: boolean; healthCheck: boolean },
  dryRun: boolean,
): Promise<Pick<Transaction, "revert">> {
  const taken: number[] = [];
  const mine = new Set(held);
  const revert = async (): Promise<void> => {
    if (taken.length > 0 && !dryRun) await allocator.range.release(taken.map((port) => port - allocator.from));
  };
  const take = async (port: number): Promise<void> => {
    if (mine.has(port)) throw new AllocationError(takenText);
    if (port < allocator.from || port > allocator.to) {
      const text = `The range of valid ports is ${allocator.from}-${allocator.to}`;
      throw new AllocationError(`provided port is not in the valid range. ${text}`);
    }
    await allocator.range.take(port - allocator.from, dryRun);
    taken.push(port);
    mine.add(port);
  };
  const takeAny = async (what: string): Promise<number> => {
    const chosen = new Set([...mine].map((port) => port - allocator.from));
    const offset = await allocator.range
      .takeAny(dryRun, chosen)
      .catch(refusedAs((reason) => internalError(new Error(`failed to allocate a ${what}: ${reason}`))));
    const port = offset + allocator.from;
    taken.push(port);
    mine.add(port);
    return port;
  };
  try {
    const ports: ServicePort[] = service.spec.ports ?? [];
    // Requested ports first, so that none of them is assigned to another port.
    for (const [i, { nodePort = 0 }] of ports.entries()) {
      if (nodePort === 0 || mine.has(nodePort)) continue;
      await take(nodePort).catch(refusedAs((reason) => refused(service, `spec.ports[${i}].nodePort`, nodePort, reason)));
    }
    const byNumber = Map.groupBy(needs.shared ? ports : [], ({ port }) => port);
    for (const port of needs.ports ? ports : []) {
      if (port.nodePort) continue;
      const twin = byNumber.get(port.port)?.find((other) => other.protocol !== port.protocol && other.nodePort);
      port.nodePort = twin?.nodePort ?? (await takeAny("nodePort"));
    }
    if (needs.healthCheck) {
      const { healthCheckNodePort } = service.spec;
      const text = `failed to allocate requested HealthCheck NodePort ${healthCheckNodePort}`;
      if (healthCheckNodePort)
        await take(healthCheckNodePort).catch(refusedAs((reason) => internalError(new Error(`${text}: ${reason}`))));
      else service.spec.healthCheckNodePort = await takeAny("HealthCheck NodePort 0"); // the 0 is upstream's
    }
  } catch (err) {
    await revert();
    throw err;
  }
  return { revert };
}

/** Rethrows errors; a failed allocation as what `refusal` makes of its text. */
const refusedAs =
  (refusal: (reason: string) => Error) =>
  (err: unknown): never => {
    throw err instanceof AllocationError ? refusal(err.message) : err;
  };

function refused(service: Service, path: string, port: number, reason: string): Error {
  return invalid({ group: "", kind: "Service" }, service.metadata.name ?? "", [invalidValue(path, port, reason)]);
}

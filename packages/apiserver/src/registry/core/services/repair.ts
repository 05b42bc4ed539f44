import { isIP, isIPv4 } from "node:net";
import type { Service } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import type { Clock } from "@coxswain/apimachinery/process/clock/clock";
import type { Logger } from "@coxswain/apimachinery/process/logging/logger";
import type { CatalogueConfig } from "../../config.ts";
import type { ClusterIpAllocator } from "./cluster-ip.ts";
import { type NodePortAllocator, nodePortsOf } from "./node-port.ts";
import type { RangeAllocator } from "./range-allocator.ts";
import { newServiceAllocators } from "./strategy.ts";

/** Number of runs that have to find a number unused before it is released: a service that is being created has already allocated it. */
const runsBeforeRelease = 3;
const periodMs = 3 * 60_000;

/**
 * Reconciles the stored ranges with the services: allocates numbers in use (after the range was changed or lost) and releases
 * unused ones (after a crash between allocation and write).
 * Source: pkg/registry/core/service/{ipallocator,portallocator}/controller/repair.go
 */
export interface ServiceRepair {
  runOnce(): Promise<void>;
  /** Repeats every three minutes until aborted, starting after three minutes; call `runOnce` before serving. */
  run(signal: AbortSignal): Promise<void>;
}

/** An address or port of a Service that its range cannot hold, as reported in an event of type Warning. */
interface ServiceFault {
  readonly service: Service;
  readonly source: "ipallocator-repair-controller" | "portallocator-repair-controller";
  readonly reason: string;
  readonly message: string;
}

/** A number that a service holds, with the fault to report if the stored range does not have it. */
interface Held {
  readonly offset: number;
  readonly ifMissing: ServiceFault;
}

/** Its allocators are separate from those of requests; all of them change the stored ranges by compare-and-swap. */
export function newServiceRepair(options: {
  config: Pick<CatalogueConfig, "services" | "serviceClusterIpRange" | "nodePortRange">;
  clock: Clock;
  log: Logger;
  /** Called once per fault and run. */
  onFault: (fault: ServiceFault) => void;
}): ServiceRepair {
  const { config, clock, log } = options;
  const { allocators, nodePorts } = newServiceAllocators(config);
  const leaks = new Map<RangeAllocator, Map<number, number>>();

  async function runOnce(): Promise<void> {
    const { entries } = await config.services().store("", "services").list("", {});
    const services = entries.map((entry) => entry.object<Service>());
    const faults: ServiceFault[] = [];
    const held = addressesOf(services, allocators, faults);
    for (const allocator of allocators.values()) await repairRange(allocator.range, held.get(allocator) ?? [], faults);
    await repairRange(nodePorts.range, portsOf(services, nodePorts, faults), faults);
    for (const fault of faults) {
      log.warn(fault.message, { service: `${fault.service.metadata.namespace}/${fault.service.metadata.name}` });
      options.onFault(fault);
    }
  }

  async function repairRange(range: RangeAllocator, held: readonly Held[], faults: ServiceFault[]): Promise<void> {
    const before = leaks.get(range) ?? new Map<number, number>();
    const offsets = new Set(held.map(({ offset }) => offset));
    let seen = new Map<number, number>();
    let missing: Held[] = [];
    await range.change((bitmap) => {
      seen = new Map();
      missing = held.filter(({ offset }) => !bitmap.has(offset));
      for (const { offset } of missing) bitmap.set(offset);
      for (const offset of [...bitmap.offsets()]) {
        if (offsets.has(offset)) continue;
        const runs = (before.get(offset) ?? 0) + 1;
        if (runs >= runsBeforeRelease) bitmap.clear(offset);
        else seen.set(offset, runs);
      }
    });
    leaks.set(range, seen);
    faults.push(...missing.map(({ ifMissing }) => ifMissing));
  }

  return {
    runOnce,
    async run(signal) {
      while (!signal.aborted) {
        await clock.sleep(periodMs, signal);
        await runOnce().catch((err: unknown) => log.error("cannot repair service addresses and ports", err));
      }
    },
  };
}

/** @returns for each allocator the addresses that services hold; the first service of an address has it */
function addressesOf(
  services: readonly Service[],
  allocators: ReadonlyMap<string, ClusterIpAllocator>,
  faults: ServiceFault[],
): Map<ClusterIpAllocator, Held[]> {
  const held = new Map<ClusterIpAllocator, Map<number, Held>>();
  for (const service of services) {
    const fault = (reason: string, message: string): ServiceFault => ({
      service,
      source: "ipallocator-repair-controller",
      reason,
      message,
    });
    for (const ip of service.spec.clusterIPs ?? []) {
      if (ip === "None") continue;
      const family = isIP(ip) === 0 ? undefined : isIPv4(ip) ? "IPv4" : "IPv6";
      const allocator = family && allocators.get(family);
      if (family === undefined) {
        faults.push(fault("ClusterIPNotValid", `Cluster IP ${ip} is not a valid IP; please recreate service`));
      } else if (allocator === undefined) {
        const text = `Cluster IP ${ip}(${family}) is of ip family that is no longer configured on cluster; please recreate service`;
        faults.push(fault("ClusterIPNotValid", text));
      } else if (!allocator.contains(ip)) {
        const text = `Cluster IP [${family}]:${ip} is not within the service CIDR ${allocator.cidr}; please recreate service`;
        faults.push(fault("ClusterIPOutOfRange", text));
      } else {
        const ofAllocator = held.get(allocator) ?? new Map<number, Held>();
        held.set(allocator, ofAllocator);
        const offset = allocator.offsetOf(ip);
        if (ofAllocator.has(offset)) {
          const text = `Cluster IP [${family}]:${ip} was assigned to multiple services; please recreate service`;
          faults.push(fault("ClusterIPAlreadyAllocated", text));
        } else {
          const ifMissing = fault("ClusterIPNotAllocated", `Cluster IP [${family}]:${ip} is not allocated; repairing`);
          ofAllocator.set(offset, { offset, ifMissing });
        }
      }
    }
  }
  return new Map([...held].map(([allocator, ofAllocator]) => [allocator, [...ofAllocator.values()]]));
}

/** @returns the node ports that services hold; the first service of a port has it */
function portsOf(services: readonly Service[], { from, to }: NodePortAllocator, faults: ServiceFault[]): Held[] {
  const held = new Map<number, Held>();
  for (const service of services) {
    const fault = (reason: string, message: string): ServiceFault => ({
      service,
      source: "portallocator-repair-controller",
      reason,
      message,
    });
    for (const port of nodePortsOf(service)) {
      if (port < from || port > to) {
        const text = `Port ${port} is not within the port range ${from}-${to}; please recreate service`;
        faults.push(fault("PortOutOfRange", text));
      } else if (held.has(port)) {
        faults.push(fault("PortAlreadyAllocated", `Port ${port} was assigned to multiple services; please recreate service`));
      } else {
        held.set(port, { offset: port - from, ifMissing: fault("PortNotAllocated", `Port ${port} is not allocated; repairing`) });
      }
    }
  }
  return [...held.values()];
}

import type { Clock } from "@coxswain/apimachinery/clock/clock";
import type { Logger } from "@coxswain/apimachinery/logging/logger";
import type { Service } from "@coxswain/apimachinery/schema/kinds/core/v1";
import type { CatalogueConfig } from "../../config.ts";
import { nodePortsOf } from "./node-port.ts";
import type { RangeAllocator } from "./range-allocator.ts";
import { newServiceAllocators } from "./strategy.ts";

/** Runs in which a number is found unused before it is released: a service that is being created has allocated it already. */
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

export function newServiceRepair(options: {
  config: Pick<CatalogueConfig, "services" | "serviceClusterIpRange" | "nodePortRange">;
  clock: Clock;
  log: Logger;
}): ServiceRepair {
  const { config, clock, log } = options;
  const { allocators, nodePorts } = newServiceAllocators(config);
  const leaks = new Map<RangeAllocator, Map<number, number>>();

  async function runOnce(): Promise<void> {
    const { entries } = await config.services().store("", "services").list("", {});
    const services = entries.map((entry) => entry.object() as Service);
    for (const allocator of allocators.values()) {
      const held = new Set<number>();
      for (const service of services) {
        for (const ip of service.spec.clusterIPs ?? [])
          if (ip !== "None" && allocator.contains(ip)) held.add(allocator.offsetOf(ip));
      }
      await repairRange(allocator.range, held);
    }
    const held = new Set<number>();
    for (const service of services) {
      for (const port of nodePortsOf(service))
        if (port >= nodePorts.from && port <= nodePorts.to) held.add(port - nodePorts.from);
    }
    await repairRange(nodePorts.range, held);
  }

  async function repairRange(range: RangeAllocator, held: ReadonlySet<number>): Promise<void> {
    const before = leaks.get(range) ?? new Map<number, number>();
    let seen = new Map<number, number>();
    await range.change((bitmap) => {
      seen = new Map();
      for (const offset of held) bitmap.set(offset);
      for (const offset of [...bitmap.offsets()]) {
        if (held.has(offset)) continue;
        const runs = (before.get(offset) ?? 0) + 1;
        if (runs >= runsBeforeRelease) bitmap.clear(offset);
        else seen.set(offset, runs);
      }
    });
    leaks.set(range, seen);
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

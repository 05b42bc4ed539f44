import { invalid } from "@coxswain/apimachinery/objects/errors/status-error";
import type { Service } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import type { CatalogueConfig } from "../../config.ts";
import { dns1035LabelProblems } from "../../field-checks.ts";
import type { Strategy, Transaction } from "../../generic/strategy.ts";
import { validateLoadBalancer } from "../../networking/ingresses/validation.ts";
import { keep, statusStrategyOf } from "../../strategies.ts";
import { allocateClusterIps, type ClusterIpAllocator, newClusterIpAllocator, releaseClusterIps } from "./cluster-ip.ts";
import {
  dropForeignFields,
  isHeadless,
  keepAllocated,
  mayHaveNodePort,
  needsClusterIp,
  needsHealthCheckPort,
  needsNodePort,
  normalizeClusterIps,
} from "./fields.ts";
import { defaultIpFamilies } from "./ip-families.ts";
import { allocateNodePorts, newNodePortAllocator, nodePortsOf } from "./node-port.ts";
import { validateMixedProtocols, validateService, validateServiceUpdate } from "./validation.ts";

/**
 * Addresses and node ports are allocated before the write, released again when it fails, and released when the service is
 * deleted or no longer needs them.
 * Source: pkg/registry/core/service/strategy.go, storage/{storage,alloc}.go
 */
export function newServiceStrategy(config: RangeConfig): Strategy<Service> {
  const { allocators, nodePorts } = newServiceAllocators(config);
  const available = [...allocators.keys()] as ("IPv4" | "IPv6")[]; // cast: the allocators are made for these families

  const fillFamilies = (next: Service, current: Service | undefined): void => {
    const errors = defaultIpFamilies(next, current, available);
    if (errors.length > 0) throw invalid({ group: "", kind: "Service" }, next.metadata.name ?? "", errors);
  };

  return {
    namespaceScoped: true,
    allowCreateOnUpdate: true,
    allowUnconditionalUpdate: true,
    resetFields: ["status"],
    validateName: dns1035LabelProblems,
    prepareForCreate(next) {
      next.status = { loadBalancer: {} };
      normalizeClusterIps(next, undefined);
      fillFamilies(next, undefined);
    },
    prepareForUpdate(next, current) {
      keep(next, current, "status");
      normalizeClusterIps(next, current);
      keepAllocated(next, current);
      dropForeignFields(next, current);
      fillFamilies(next, current);
    },
    *validateInSteps(next, current, ctx) {
      const errors = yield* current === undefined ? validateService(next) : validateServiceUpdate(next, current);
      return [...errors, ...validateMixedProtocols(next, current, ctx.featureEnabled("MixedProtocolLBService"))];
    },
    beginCreate: (next, ctx) => allocate(next, undefined, ctx.dryRun),
    beginUpdate: (next, current, ctx) => allocate(next, current, ctx.dryRun),
    async afterDelete(last, ctx) {
      const { name = "", namespace = "" } = last.metadata;
      // A new service of the same name must not inherit the Endpoints; the endpoints controller would delete them only later.
      const endpoints = config.services().store("", "endpoints");
      await endpoints.delete({ ...ctx, namespace }, name, {}).catch(() => undefined);
      await releaseClusterIps(last.spec.clusterIPs ?? [], allocators.values());
      const ports = nodePortsOf(last).filter((port) => port >= nodePorts.from && port <= nodePorts.to);
      if (ports.length > 0) await nodePorts.range.release(ports.map((port) => port - nodePorts.from));
    },
  };

  async function allocate(next: Service, current: Service | undefined, dryRun: boolean): Promise<Transaction> {
    const oldIps = current && needsClusterIp(current) && !isHeadless(current) ? (current.spec.clusterIPs ?? []) : [];
    const oldPorts = current ? nodePortsOf(current) : [];
    const steps: Pick<Transaction, "revert">[] = [];
    const revert = async (): Promise<void> => {
      for (const step of steps.toReversed()) await step.revert();
    };
    try {
      if (needsClusterIp(next) && !isHeadless(next)) steps.push(await allocateClusterIps(next, allocators, oldIps, dryRun));
      const hadHealthCheck = current !== undefined && needsHealthCheckPort(current);
      const healthCheck = needsHealthCheckPort(next) && !hadHealthCheck;
      const needs = { ports: needsNodePort(next), shared: current === undefined, healthCheck };
      if (mayHaveNodePort(next)) steps.push(await allocateNodePorts(next, nodePorts, oldPorts, needs, dryRun));
    } catch (err) {
      await revert();
      throw err;
    }
    const keptIps = next.spec.clusterIPs ?? [];
    const keptPorts = new Set(nodePortsOf(next));
    return {
      revert,
      async commit() {
        if (dryRun) return;
        const ips = oldIps.filter((ip) => !keptIps.includes(ip));
        if (ips.length > 0) await releaseClusterIps(ips, allocators.values());
        const ports = oldPorts.filter((port) => !keptPorts.has(port) && port >= nodePorts.from && port <= nodePorts.to);
        if (ports.length > 0) await nodePorts.range.release(ports.map((port) => port - nodePorts.from));
      },
    };
  }
}

type RangeConfig = Pick<CatalogueConfig, "services" | "serviceClusterIpRange" | "clusterIpMetrics" | "nodePortRange">;

/** Allocators by IP family, the primary one first, and the node port allocator. */
export function newServiceAllocators(config: RangeConfig) {
  const storage = () => config.services().store("", "rangeallocations").storage;
  const allocators = new Map<string, ClusterIpAllocator>();
  for (const [i, cidr] of config.serviceClusterIpRange.entries()) {
    const allocator = newClusterIpAllocator(cidr, storage, i > 0, config.clusterIpMetrics);
    allocators.set(allocator.family, allocator);
  }
  if (allocators.size === 0) throw new Error("no range of cluster IPs: --service-cluster-ip-range is empty");
  return { allocators, nodePorts: newNodePortAllocator(config.nodePortRange, storage) };
}

export const serviceStatusStrategy: Strategy<Service> = statusStrategyOf({
  namespaced: true,
  validateUpdate: (next) => validateLoadBalancer(next.status?.loadBalancer),
});

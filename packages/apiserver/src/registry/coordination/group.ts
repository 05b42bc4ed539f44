import { inGroup } from "../definition.ts";
import type { ResourceDefinition } from "../generic/resource.ts";
import { leaseStrategy } from "./leases/strategy.ts";
import { leaseTable } from "./leases/table.ts";

export function coordinationResources(): ResourceDefinition[] {
  return inGroup("coordination.k8s.io", [
    { resource: "leases", kind: "Lease", namespaced: true, versions: ["v1"], strategy: leaseStrategy, table: leaseTable },
  ]);
}

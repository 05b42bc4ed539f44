/**
 * The two priority classes of system pods.
 * Source: pkg/apis/scheduling/helpers.go, pkg/registry/scheduling/rest/storage_scheduling.go
 */
import type { Client } from "@coxswain/apimachinery/client/client";
import { priorityClasses } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { ensure } from "./ensure.ts";

const systemClasses = [
  {
    metadata: { name: "system-node-critical" },
    value: 2_000_001_000,
    description: "Used for system critical pods that must not be moved from their current node.",
  },
  {
    metadata: { name: "system-cluster-critical" },
    value: 2_000_000_000,
    description: "Used for system critical pods that must run in the cluster, but can be moved to another node if necessary.",
  },
];

/** Creates the classes that are missing; existing ones are not changed. */
export async function ensurePriorityClasses(client: Client, signal?: AbortSignal): Promise<void> {
  for (const wanted of systemClasses) await ensure(client, priorityClasses, { ...wanted }, undefined, signal);
}

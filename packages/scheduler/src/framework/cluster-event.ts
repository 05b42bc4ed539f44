/**
 * Changes in the cluster that may make a pod fit which did not fit before. A plugin names those that can lift its own
 * refusals; `Update` of a node covers all the kinds of node updates, `*` anything.
 * Source: pkg/scheduler/framework/types.go, internal/queue/events.go
 */
export type EventResource =
  | "Pod"
  | "Node"
  | "PersistentVolume"
  | "PersistentVolumeClaim"
  | "StorageClass"
  | "CSINode"
  | "CSIDriver"
  | "CSIStorageCapacity";

export type NodeUpdate = "UpdateAllocatable" | "UpdateLabel" | "UpdateTaint" | "UpdateUnschedulable" | "UpdateCondition";

export type ClusterEvent = `${EventResource}/${"Add" | "Delete" | "Update" | "*"}` | `Node/${NodeUpdate}` | "*/*";

/** What a plugin that does not say is woken by. */
export const allEvents: readonly ClusterEvent[] = [
  "Pod/*",
  "Node/*",
  "CSINode/*",
  "PersistentVolume/*",
  "PersistentVolumeClaim/*",
  "StorageClass/*",
];

const shortNames: Readonly<Partial<Record<EventResource, string>>> = {
  Pod: "AssignedPod",
  PersistentVolume: "Pv",
  PersistentVolumeClaim: "Pvc",
};

const nodeUpdates: Readonly<Record<NodeUpdate, string>> = {
  UpdateAllocatable: "NodeAllocatableChange",
  UpdateLabel: "NodeLabelChange",
  UpdateTaint: "NodeTaintChange",
  UpdateUnschedulable: "NodeSpecUnschedulableChange",
  UpdateCondition: "NodeConditionChange",
};

/** As metrics call it: `AssignedPodDelete`, `PvcAdd`, `NodeTaintChange`. */
export function labelOf(event: ClusterEvent): string {
  const [resource, action] = event.split("/") as [EventResource, string];
  if (event === "*/*") return "UnschedulableTimeout";
  if (Object.hasOwn(nodeUpdates, action)) return nodeUpdates[action as NodeUpdate];
  return `${shortNames[resource] ?? resource}${action}`;
}

/** Does an interest include what happened? */
export function covers(wanted: ClusterEvent, event: ClusterEvent): boolean {
  if (wanted === event || wanted === "*/*" || event === "*/*") return true;
  const [wantedResource, wantedAction] = wanted.split("/");
  const [resource, action = ""] = event.split("/");
  if (wantedResource !== resource) return false;
  if (wantedAction === "*") return true;
  // Making a node schedulable again takes a taint away.
  if (wantedAction === "UpdateTaint" && action === "UpdateUnschedulable") return true;
  return wantedAction === "Update" && action.startsWith("Update");
}

import { isKeyOf } from "@coxswain/apimachinery/process/narrowing/keys";

/**
 * Changes in the cluster that may make an unschedulable pod schedulable. Each plugin registers for the events that can
 * resolve its own rejections. `Node/Update` covers all kinds of node updates, `*` any action.
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

type NodeUpdate = "UpdateAllocatable" | "UpdateLabel" | "UpdateTaint" | "UpdateUnschedulable" | "UpdateCondition";

export type ClusterEvent = `${EventResource}/${"Add" | "Delete" | "Update" | "*"}` | `Node/${NodeUpdate}` | "*/*";

/** Events of a plugin without `wakeUpOn`. */
export const allEvents: readonly ClusterEvent[] = [
  "Pod/*",
  "Node/*",
  "CSINode/*",
  "PersistentVolume/*",
  "PersistentVolumeClaim/*",
  "StorageClass/*",
];

const shortNames = {
  Pod: "AssignedPod",
  PersistentVolume: "Pv",
  PersistentVolumeClaim: "Pvc",
} as const satisfies Partial<Record<EventResource, string>>;

const nodeUpdates: Readonly<Record<NodeUpdate, string>> = {
  UpdateAllocatable: "NodeAllocatableChange",
  UpdateLabel: "NodeLabelChange",
  UpdateTaint: "NodeTaintChange",
  UpdateUnschedulable: "NodeSpecUnschedulableChange",
  UpdateCondition: "NodeConditionChange",
};

/** The event's name in metrics, e.g. `AssignedPodDelete`, `PvcAdd`, `NodeTaintChange`. */
export function labelOf(event: ClusterEvent): string {
  if (event === "*/*") return "UnschedulableTimeout";
  const [resource, action] = event.split("/");
  if (isKeyOf(nodeUpdates, action)) return nodeUpdates[action];
  return `${isKeyOf(shortNames, resource) ? shortNames[resource] : resource}${action}`;
}

/** True when the registered event pattern `wanted` includes `event`. */
export function covers(wanted: ClusterEvent, event: ClusterEvent): boolean {
  if (wanted === event || wanted === "*/*" || event === "*/*") return true;
  const [wantedResource, wantedAction] = wanted.split("/");
  const [resource, action = ""] = event.split("/");
  if (wantedResource !== resource) return false;
  if (wantedAction === "*") return true;
  // Uncordoning a node also removes its unschedulable taint.
  if (wantedAction === "UpdateTaint" && action === "UpdateUnschedulable") return true;
  return wantedAction === "Update" && action.startsWith("Update");
}

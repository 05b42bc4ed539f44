import assert from "node:assert/strict";
import { test } from "node:test";
import { allEvents, type ClusterEvent, covers, labelOf } from "./cluster-event.ts";

const rows: [ClusterEvent, string][] = [
  ["*/*", "UnschedulableTimeout"],
  ["Pod/Add", "AssignedPodAdd"],
  ["Pod/Update", "AssignedPodUpdate"],
  ["Pod/Delete", "AssignedPodDelete"],
  ["Node/Add", "NodeAdd"],
  ["Node/UpdateAllocatable", "NodeAllocatableChange"],
  ["Node/UpdateLabel", "NodeLabelChange"],
  ["Node/UpdateTaint", "NodeTaintChange"],
  ["Node/UpdateUnschedulable", "NodeSpecUnschedulableChange"],
  ["Node/UpdateCondition", "NodeConditionChange"],
  ["PersistentVolume/Update", "PvUpdate"],
  ["PersistentVolumeClaim/Add", "PvcAdd"],
  ["StorageClass/Add", "StorageClassAdd"],
  ["CSINode/Update", "CSINodeUpdate"],
  ["CSIDriver/Add", "CSIDriverAdd"],
  ["CSIStorageCapacity/Update", "CSIStorageCapacityUpdate"],
];
test("events have upstream's names in metrics", () => {
  assert.deepEqual(
    rows.map(([event]) => [event, labelOf(event)]),
    rows,
  );
});

test("a plugin that names no events is retried on all changes of pods, nodes, volumes, claims and classes", () => {
  const resources = ["Pod", "Node", "CSINode", "PersistentVolume", "PersistentVolumeClaim", "StorageClass"];
  assert.deepEqual(
    allEvents.map((event) => event.split("/")),
    resources.map((resource) => [resource, "*"]),
  );
});

for (const [wanted, event, want] of [
  ["Pod/*", "Pod/Delete", true],
  ["Pod/Delete", "Pod/Delete", true],
  ["Pod/Add", "Pod/Delete", false],
  ["Pod/*", "Node/Add", false],
  ["*/*", "Pod/Add", true],
  ["Pod/Add", "*/*", true],
  ["Node/Update", "Node/UpdateLabel", true],
  ["Node/Update", "Node/Add", false],
  ["Node/UpdateLabel", "Node/UpdateTaint", false],
  ["Node/UpdateTaint", "Node/UpdateUnschedulable", true],
  ["Node/UpdateUnschedulable", "Node/UpdateTaint", false],
] as const) {
  test(`${wanted} ${want ? "covers" : "does not cover"} ${event}`, () => assert.equal(covers(wanted, event), want));
}

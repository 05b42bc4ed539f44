import assert from "node:assert/strict";
import { test } from "node:test";
import { type ClusterEvent, labelOf } from "./cluster-event.ts";

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
];
test("events have upstream's names in metrics", () => {
  assert.deepEqual(
    rows.map(([event]) => [event, labelOf(event)]),
    rows,
  );
});

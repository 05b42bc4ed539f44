import assert from "node:assert/strict";
import { test } from "node:test";
import { tableOf } from "@coxswain/apimachinery/process/narrowing/keys";
import { emptyPluginSet, type PluginSets, pluginPoints } from "../config/plugin-sets.ts";
import { newTestCluster } from "../testing/test-cluster.ts";
import { plugins } from "./catalogue.ts";

const allPlugins: PluginSets = {
  ...tableOf(pluginPoints, () => emptyPluginSet),
  multiPoint: { enabled: Object.keys(plugins).map((name) => ({ name, weight: 0 })), disabled: [] },
};

/** Source: EventsToRegister of each plugin */
const wakeUps: Readonly<Record<string, readonly string[]>> = {
  InterPodAffinity: ["Pod/*", "Node/Add", "Node/UpdateLabel"],
  NodeAffinity: ["Node/Add", "Node/UpdateLabel"],
  NodeName: ["Node/Add"],
  NodePorts: ["Pod/Delete", "Node/Add"],
  NodeResourcesFit: ["Pod/Delete", "Node/Add", "Node/UpdateAllocatable"],
  NodeUnschedulable: ["Node/Add", "Node/UpdateTaint"],
  NodeVolumeLimits: ["CSINode/Add", "Pod/Delete"],
  PodTopologySpread: ["Pod/*", "Node/Add", "Node/Delete", "Node/UpdateLabel"],
  TaintToleration: ["Node/Add", "Node/UpdateTaint"],
  VolumeRestrictions: ["Pod/Delete", "Node/Add", "PersistentVolumeClaim/Add", "PersistentVolumeClaim/Update"],
  VolumeZone: [
    "StorageClass/Add",
    "Node/Add",
    "Node/UpdateLabel",
    "PersistentVolumeClaim/Add",
    "PersistentVolume/Add",
    "PersistentVolume/Update",
  ],
  VolumeBinding: [
    "StorageClass/Add",
    "StorageClass/Update",
    "PersistentVolumeClaim/Add",
    "PersistentVolumeClaim/Update",
    "PersistentVolume/Add",
    "PersistentVolume/Update",
    "Node/Add",
    "Node/UpdateLabel",
    "CSINode/Add",
    "CSINode/Update",
    "CSIDriver/Add",
    "CSIDriver/Update",
    "CSIStorageCapacity/Add",
    "CSIStorageCapacity/Update",
  ],
  ...Object.fromEntries(
    ["EBSLimits", "GCEPDLimits", "AzureDiskLimits", "CinderLimits"].map((name) => [name, ["Node/Add", "Pod/Delete"]]),
  ),
};

test("each plugin that refuses pods is retried on the events that upstream's registers for", () => {
  const { profile } = newTestCluster({ sets: allPlugins, gates: { CSIStorageCapacity: true } });
  const refusing = profile.plugins.filter(({ preFilter, filter }) => preFilter !== undefined || filter !== undefined);
  const sorted = (of: Readonly<Record<string, readonly string[] | undefined>>) =>
    Object.fromEntries(Object.entries(of).map(([name, events]) => [name, events?.toSorted()]));
  assert.deepEqual(sorted(Object.fromEntries(refusing.map(({ name, wakeUpOn }) => [name, wakeUpOn]))), sorted(wakeUps));
});

test("each plugin of the catalogue is made under its own name", () => {
  const names = Object.keys(plugins);
  const { profile } = newTestCluster({ sets: allPlugins });
  assert.deepEqual(
    profile.plugins.map(({ name }) => name),
    names,
  );
});

test("drivers and their capacities wake pods only where capacity is checked", () => {
  const { profile } = newTestCluster({ gates: { CSIStorageCapacity: false } });
  const events = profile.plugins.find(({ name }) => name === "VolumeBinding")?.wakeUpOn ?? [];
  assert.deepEqual(
    events.filter((event) => /CSIDriver|CSIStorageCapacity/.test(event)),
    [],
  );
});

import assert from "node:assert/strict";
import { test } from "node:test";
import type { Unstructured } from "@coxswain/apimachinery/objects/meta/types";
import { agesAt } from "../../generic/ages.ts";
import { persistentVolumeTable } from "./table.ts";

const now = Date.parse("2022-01-01T00:10:00Z");
const row = (volume: object): unknown[] => [...persistentVolumeTable.cells(volume as unknown as Unstructured, agesAt(now))];

test("the row of a volume, and what stands for what it does not say", () => {
  const creationTimestamp = "2022-01-01T00:00:00Z";
  const spec = {
    capacity: { storage: "5Gi" },
    accessModes: ["ReadWriteOnce"],
    persistentVolumeReclaimPolicy: "Retain",
    claimRef: { namespace: "default", name: "data" },
    storageClassName: "new",
    volumeMode: "Block",
  };
  const annotations = { "volume.beta.kubernetes.io/storage-class": "old" };
  const whole = { metadata: { name: "v", creationTimestamp, annotations }, spec, status: { phase: "Bound", reason: "r" } };
  assert.deepEqual(row(whole), ["v", "5Gi", "RWO", "Retain", "Bound", "default/data", "old", "r", "10m", "Block"]);
  const ending = { ...whole, metadata: { name: "v", creationTimestamp, deletionTimestamp: creationTimestamp } };
  assert.deepEqual(row(ending).slice(4, 7), ["Terminating", "default/data", "new"]);
  assert.deepEqual(row({ metadata: { name: "v", creationTimestamp } }), ["v", "0", "", "", "", "", "", "", "10m", "<unset>"]);
});

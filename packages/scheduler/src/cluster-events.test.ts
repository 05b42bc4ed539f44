import assert from "node:assert/strict";
import { test } from "node:test";
import type { InformerFactory } from "@coxswain/apimachinery/informers/factory";
import { watchCluster } from "./cluster-events.ts";
import type { ClusterEvent } from "./framework/cluster-event.ts";
import { listersOver, newTestCluster } from "./testing/test-cluster.ts";

/** The resources that are watched for plugins that wait for these events. */
function watchedFor(...plugins: readonly (readonly ClusterEvent[] | undefined)[]): string[] {
  const { cache, nominator, profile } = newTestCluster();
  const watched: string[] = [];
  const source = listersOver([]);
  const informers = {
    for(ref: Parameters<InformerFactory["for"]>[0]) {
      watched.push(ref.resource);
      return source.for(ref);
    },
  } as InformerFactory;
  const profiles = plugins.map((wakeUpOn) => ({ ...profile, plugins: [{ name: "own", ...(wakeUpOn && { wakeUpOn }) }] }));
  const queue = {} as Parameters<typeof watchCluster>[0]["queue"];
  watchCluster({ informers, profiles, cache, queue, nominator, isOurs: () => true, namespaceLabels: () => undefined });
  return watched.toSorted();
}

for (const { plugins, more } of [
  { plugins: [[]], more: [] },
  { plugins: [["Pod/Delete", "Node/Add"]], more: [] },
  { plugins: [["CSINode/Add"]], more: ["csinodes"] },
  { plugins: [["Pod/Delete"], ["Node/Add", "CSIDriver/Update"]], more: ["csidrivers"] },
  { plugins: [["StorageClass/Update"], ["CSIStorageCapacity/Delete"]], more: ["csistoragecapacities", "storageclasses"] },
  {
    plugins: [["PersistentVolume/Update", "PersistentVolumeClaim/Add"]],
    more: ["persistentvolumeclaims", "persistentvolumes"],
  },
] satisfies { plugins: ClusterEvent[][]; more: string[] }[]) {
  test(`for plugins that wait for ${JSON.stringify(plugins)} ${more.join(" and ") || "nothing"} is watched beside nodes and pods`, () => {
    assert.deepEqual(watchedFor(...plugins), [...more, "nodes", "pods"].toSorted());
  });
}

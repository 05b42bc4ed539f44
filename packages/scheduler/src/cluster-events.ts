import type { InformerFactory } from "@coxswain/apimachinery/informers/factory";
import type { Lister } from "@coxswain/apimachinery/informers/lister";
import { semanticEqual } from "@coxswain/apimachinery/objects/meta/deep-equal";
import type { KubeObject } from "@coxswain/apimachinery/objects/meta/types";
import type { Node, Pod } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import {
  csiDrivers,
  csiNodes,
  csiStorageCapacities,
  nodes,
  persistentVolumeClaims,
  persistentVolumes,
  pods,
  storageClasses,
} from "@coxswain/apimachinery/objects/schema/kinds/resources";
import type { StorageClass } from "@coxswain/apimachinery/objects/schema/kinds/storage/v1";
import { entriesOf } from "@coxswain/apimachinery/process/narrowing/keys";
import { matchesAffinityTerm } from "./cache/affinity-terms.ts";
import type { ClusterCache } from "./cache/cluster-cache.ts";
import { isLarge, type NodeInfo, newNodeInfo, newPodInfo } from "./cache/node-info.ts";
import { type ClusterEvent, covers, type EventResource } from "./framework/cluster-event.ts";
import type { Nominator } from "./framework/nominator.ts";
import { fitsAtAll } from "./node-pre-check.ts";
import { interestsOf, type Profile } from "./profile.ts";
import type { SchedulingQueue } from "./queue/scheduling-queue.ts";

/** Dependencies of `watchCluster`. */
interface ClusterWatch {
  readonly informers: InformerFactory;
  readonly profiles: readonly Profile[];
  readonly cache: ClusterCache;
  readonly queue: SchedulingQueue;
  readonly nominator: Nominator;
  readonly isOurs: (pod: Pod) => boolean;
  readonly namespaceLabels: (namespace: string) => Readonly<Record<string, string>> | undefined;
}

/** Resources besides pods, nodes and storage classes whose events plugins can register for. */
const others = {
  PersistentVolume: persistentVolumes,
  PersistentVolumeClaim: persistentVolumeClaims,
  CSINode: csiNodes,
  CSIDriver: csiDrivers,
  CSIStorageCapacity: csiStorageCapacities,
} as const satisfies Partial<Record<EventResource, unknown>>;

/**
 * Registers the event handlers that keep the cache current, enqueue unassigned pods, and move unschedulable pods back to
 * the queue when an event may have made them schedulable.
 * @returns lister of all pods that are not terminated
 * Source: pkg/scheduler/eventhandlers.go
 */
export function watchCluster(watch: ClusterWatch): Lister<Pod> {
  const { informers, profiles, queue } = watch;
  const wanted = interestsOf(profiles);
  const wakeUpIfWanted = (event: ClusterEvent): void => {
    if ([...wanted].some((interest) => covers(interest, event))) queue.wakeUp(event);
  };
  const isWanted = (resource: string): boolean => [...wanted].some((interest) => interest.split("/")[0] === resource);
  for (const [resource, ref] of entriesOf(others)) {
    if (!isWanted(resource)) continue;
    informers.for<KubeObject>(ref).addHandler({
      added: () => wakeUpIfWanted(`${resource}/Add`),
      updated: () => wakeUpIfWanted(`${resource}/Update`),
      deleted: () => wakeUpIfWanted(`${resource}/Delete`),
    });
  }
  if (isWanted("StorageClass")) {
    informers.for<StorageClass>(storageClasses).addHandler({
      // Unbound claims of a class with immediate binding keep a pod unschedulable, so adding such a class cannot help.
      added: ({ volumeBindingMode }) => {
        if (volumeBindingMode === "WaitForFirstConsumer") wakeUpIfWanted("StorageClass/Add");
      },
      updated: () => wakeUpIfWanted("StorageClass/Update"),
    });
  }
  watchNodes(watch);
  return watchPods(watch);
}

function watchPods({ informers, cache, queue, nominator, isOurs, namespaceLabels }: ClusterWatch): Lister<Pod> {
  const informer = informers.for<Pod>(pods, { fieldSelector: "status.phase!=Succeeded,status.phase!=Failed" });
  const assigned = (pod: Pod, event: ClusterEvent): void => {
    cache.setPod(pod);
    const labels = namespaceLabels(pod.metadata.namespace ?? "");
    queue.wakeUp(event, (waiting) => hasAffinityTo(waiting, pod, labels));
  };
  const waits = (pod: Pod): void => {
    if (!isOurs(pod)) return;
    queue.add(pod);
    nominator.set(pod);
  };
  informer.addHandler({
    added(pod) {
      if (pod.spec.nodeName) assigned(pod, "Pod/Add");
      else waits(pod);
    },
    updated(old, pod) {
      if (pod.spec.nodeName) {
        if (!old.spec.nodeName) {
          queue.delete(pod);
          nominator.delete(pod);
        }
        assigned(pod, "Pod/Update");
      } else if (old.spec.nodeName) {
        // Happens only after etcd was restored to a state before the binding: the pod has to be scheduled again.
        cache.removePod(old);
        queue.wakeUp("Pod/Delete");
        waits(pod);
      } else if (isOurs(pod) && !cache.isAssumed(pod)) {
        queue.update(old, pod);
        nominator.update(old, pod);
      }
    },
    deleted(pod) {
      nominator.delete(pod);
      if (pod.spec.nodeName) {
        cache.removePod(pod);
        queue.wakeUp("Pod/Delete");
      } else {
        queue.delete(pod);
        if (!cache.isAssumed(pod)) return;
        cache.forget(pod);
        queue.wakeUp("Pod/Delete");
      }
    },
  });
  return informer.lister;
}

/**
 * True when a required pod affinity of the waiting pod selects the assigned pod. A large pod is tried again instead, at most after each
 * back-off: thousands of terms of each waiting pod would be compared with each change of each pod.
 */
function hasAffinityTo(waiting: Pod, pod: Pod, namespaceLabels: Readonly<Record<string, string>> | undefined): boolean {
  if (waiting.spec.affinity?.podAffinity === undefined) return false;
  if (isLarge(waiting)) return true;
  return newPodInfo(waiting).affinity?.required.some((term) => matchesAffinityTerm(term, pod, namespaceLabels)) ?? false;
}

function watchNodes({ informers, cache, queue }: ClusterWatch): void {
  const checkOf = (node: Node): ((pod: Pod) => boolean) => {
    // Lazy: often no pod is waiting, and then the check is never called.
    let info: NodeInfo | undefined;
    return (pod) => {
      if (isLarge(pod)) return true; // tried again in steps, instead of all such pods being compared with the node in one turn
      info ??= cache.snapshot().get(node.metadata.name ?? "") ?? newNodeInfo(node);
      return fitsAtAll(newPodInfo(pod), info);
    };
  };
  informers.for<Node>(nodes).addHandler({
    added(node) {
      cache.setNode(node);
      queue.wakeUp("Node/Add", checkOf(node));
    },
    updated(old, node) {
      cache.setNode(node);
      const event = nodeChange(old, node);
      if (event !== undefined) queue.wakeUp(event, checkOf(node));
    },
    deleted: (node) => cache.removeNode(node),
  });
}

/** @returns undefined when the change cannot make a pod schedulable. Source: eventhandlers.go nodeSchedulingPropertiesChange */
function nodeChange(old: Node, node: Node): ClusterEvent | undefined {
  if (old.spec?.unschedulable && !node.spec?.unschedulable) return "Node/UpdateUnschedulable";
  if (!semanticEqual(old.status?.allocatable, node.status?.allocatable)) return "Node/UpdateAllocatable";
  if (!semanticEqual(old.metadata.labels, node.metadata.labels)) return "Node/UpdateLabel";
  if (!semanticEqual(old.spec?.taints, node.spec?.taints)) return "Node/UpdateTaint";
  const conditions = (of: Node): unknown =>
    Object.fromEntries((of.status?.conditions ?? []).map(({ type, status }) => [type, status]));
  return semanticEqual(conditions(old), conditions(node)) ? undefined : "Node/UpdateCondition";
}

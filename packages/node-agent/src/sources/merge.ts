import { fullName, type NodePod } from "../pod/pod.ts";
import { withBoundedTimes } from "./bounded-times.ts";

export type SourceName = "api" | "file" | "http";

/** Receives the changes of the merged Pods. */
interface SourceHandler {
  added(pod: NodePod): void;
  updated(pod: NodePod, previous: NodePod): void;
  removed(pod: NodePod): void;
  /** A source listed two Pods with one name: the second one is ignored. */
  duplicate?(pod: NodePod, source: SourceName): void;
}

/** The wanted Pods of all sources. */
export interface PodSources {
  /** Replaces all Pods of a source and marks it as synced. */
  set(source: SourceName, pods: readonly NodePod[]): void;
  /** Adds or updates one Pod of a source. */
  upsert(source: SourceName, pod: NodePod): void;
  remove(source: SourceName, uid: string): void;
  markSynced(source: SourceName): void;
  /** True when every expected source has reported; before that no Pod may be considered unwanted. */
  allSynced(): boolean;
  list(): NodePod[];
  get(uid: string): NodePod | undefined;
}

/** Merges the Pods of all sources. Source: pkg/kubelet/config/config.go */
export function newPodSources(expected: readonly SourceName[], handler: SourceHandler): PodSources {
  const bySource = new Map<SourceName, Map<string, NodePod>>(expected.map((source) => [source, new Map()]));
  const synced = new Set<SourceName>();
  const of = (source: SourceName): Map<string, NodePod> => bySource.getOrInsertComputed(source, () => new Map());

  function upsert(source: SourceName, given: NodePod): void {
    const pod = withBoundedTimes(given);
    const pods = of(source);
    const before = pods.get(pod.metadata.uid);
    pods.set(pod.metadata.uid, pod);
    if (before === undefined) handler.added(pod);
    else if (before !== pod) handler.updated(pod, before);
  }

  function remove(source: SourceName, uid: string): void {
    const pods = of(source);
    const pod = pods.get(uid);
    if (pod === undefined) return;
    pods.delete(uid);
    handler.removed(pod);
  }

  return {
    set(source, list) {
      const byName = new Map<string, NodePod>();
      for (const pod of list) if (byName.getOrInsert(fullName(pod), pod) !== pod) handler.duplicate?.(pod, source);
      const wanted = new Set([...byName.values()].map((pod) => pod.metadata.uid));
      for (const uid of [...of(source).keys()]) if (!wanted.has(uid)) remove(source, uid);
      for (const pod of byName.values()) upsert(source, pod);
      synced.add(source);
    },
    upsert,
    remove,
    markSynced: (source) => void synced.add(source),
    allSynced: () => expected.every((source) => synced.has(source)),
    list: () => [...bySource.values()].flatMap((pods) => [...pods.values()]),
    get(uid) {
      for (const pods of bySource.values()) {
        const pod = pods.get(uid);
        if (pod !== undefined) return pod;
      }
      return undefined;
    },
  };
}

import type { KubeObject, Unstructured } from "@coxswain/apimachinery/objects/meta/types";
import { sliceMs, Turns } from "@coxswain/apimachinery/process/event-loop/turns";
import { ByteShare } from "@coxswain/apimachinery/process/memory/byte-share";
import { EntryMemory } from "./entry.ts";
import type { StoredResource } from "./object-codec.ts";
import type { Entry, Storage, WatchEvent, WatchStream } from "./storage.ts";

/** Memory of a test's own entries. */
export function unlimitedEntries(): EntryMemory {
  return new EntryMemory(new ByteShare(Number.POSITIVE_INFINITY));
}

export const suiteResource: StoredResource = {
  group: "",
  resource: "configmaps",
  kind: "ConfigMap",
  namespaced: true,
  hub: "v1",
  versions: [{ version: "v1" }],
  selectableFields: (object) => ({ "data.color": (object as ConfigMap).data?.["color"] ?? "" }),
  cacheIndexes: ["data.color"],
};

export type ConfigMap = KubeObject & { data?: Record<string, string> };

export function aConfigMap(
  name: string,
  data: Record<string, string> = {},
  labels?: Record<string, string>,
  namespace = "web",
): ConfigMap {
  return {
    kind: "ConfigMap",
    apiVersion: "v1",
    metadata: { name, namespace, uid: `uid-of-${name}`, ...(labels !== undefined && { labels }) },
    data,
  };
}

/** Reads a watch event by event; each read has a timeout, so that a missing event fails the test instead of hanging it. */
export async function follow(
  storage: Storage,
  request: Omit<Parameters<Storage["watch"]>[0], "signal">,
): Promise<{ next(count: number): Promise<WatchEvent[]>; stop(): void; stream: WatchStream }> {
  const stream = await storage.watch({ ...request, signal: AbortSignal.timeout(20_000) });
  const waiting: WatchEvent[] = [];
  return {
    stream,
    stop: () => stream.stop(),
    async next(count) {
      while (waiting.length < count) {
        if (!(await stream.ready())) throw new Error(`the watch ended after ${shapes(waiting).join(", ") || "nothing"}`);
        waiting.push(...stream.take());
      }
      return waiting.splice(0, count);
    },
  };
}

/** Events as short texts for assertions: `ADDED web/a`. */
export function shapes(events: readonly WatchEvent[]): string[] {
  return events.map((event) => {
    if (event.type === "BOOKMARK") return `BOOKMARK ${event.revision}`;
    return event.type === "ERROR" ? `ERROR ${event.error.message}` : `${event.type} ${event.entry.key}`;
  });
}

export const keys = (entries: readonly Entry[]): string[] => entries.map((entry) => entry.key);

/** A copy of the object of `entry` with `data` merged in. */
export function withData(entry: Entry | undefined, data: Record<string, string>): KubeObject {
  const object = entry?.object() as Unstructured & ConfigMap;
  return { ...object, data: { ...object.data, ...data } } as KubeObject;
}

/** Turns in which `count` pieces of long work wait, each as long as a slice. Other work takes no time. */
export function crowdedTurns(count: number) {
  const coming: (() => void)[] = [];
  let [ms, served] = [0, 0];
  const turns = new Turns(
    () => ms,
    (run) => coming.push(run),
  );
  void turns.next();
  ms = sliceMs;
  for (let i = 0; i < count; i++) {
    void turns.next()?.then(() => {
      served++;
      ms += sliceMs;
    });
  }
  return {
    turns,
    /** @returns how many of the pieces were served before `isDone` was true; all of them when it never was */
    async servedBefore(isDone: () => boolean): Promise<number> {
      while (!isDone() && served < count) {
        coming.shift()?.();
        await new Promise(setImmediate);
      }
      return served;
    },
  };
}

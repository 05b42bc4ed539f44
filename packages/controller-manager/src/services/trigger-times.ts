import { keyOf, type ObjectKey } from "@coxswain/apimachinery/meta/object-key";
import type { Pod, Service } from "@coxswain/apimachinery/schema/kinds/core/v1";
import { readyCondition } from "../pods/pod-state.ts";

/** On Endpoints and EndpointSlices: when that happened for which they were last written. */
export const lastChangeAnnotation = "endpoints.kubernetes.io/last-change-trigger-time";

/**
 * When what changed about a service since the last look happened: the earliest of the Pods whose readiness changed. Whoever
 * reads endpoints measures by it how long a change took to get there.
 * Source: pkg/controller/util/endpoint/trigger_time_tracker.go
 */
export interface TriggerTimes {
  /**
   * To be asked at each look, whatever comes of it. @returns an RFC 3339 time: the service's own the first time; undefined
   * when nothing changed
   */
  look(service: Service, pods: readonly Pod[]): string | undefined;
  forget(service: ObjectKey): void;
}

interface Seen {
  /** By the Pods' names. Times are as the server writes them, which sort as text. */
  readonly pods: ReadonlyMap<string, string>;
  readonly service: string;
}

export function newTriggerTimes(): TriggerTimes {
  const seen = new Map<ObjectKey, Seen>();
  return {
    look(service, pods) {
      const key = keyOf(service);
      const before = seen.get(key);
      const made = service.metadata.creationTimestamp ?? "";
      const now = new Map<string, string>();
      let earliest: string | undefined;
      const note = (time: string, last: string): void => {
        if (time > last && (earliest === undefined || time < earliest)) earliest = time;
      };
      for (const pod of pods) {
        const { name = "" } = pod.metadata;
        const time = readyCondition(pod)?.lastTransitionTime;
        if (!time) continue;
        now.set(name, time);
        note(time, before?.pods.get(name) ?? "");
      }
      note(made, before?.service ?? "");
      seen.set(key, { pods: now, service: made });
      return before === undefined ? made || undefined : earliest;
    },
    forget: (service) => void seen.delete(service),
  };
}

/** Annotations with that time; without it, they lose the one of before. */
export function withTriggerTime(
  annotations: Readonly<Record<string, string>> | undefined,
  time: string | undefined,
): Record<string, string> {
  const { [lastChangeAnnotation]: _, ...others } = { ...annotations };
  return time === undefined ? others : { ...others, [lastChangeAnnotation]: time };
}

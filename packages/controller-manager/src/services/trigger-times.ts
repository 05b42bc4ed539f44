import { keyOf, type ObjectKey } from "@coxswain/apimachinery/objects/meta/object-key";
import type { Pod, Service } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { readyCondition } from "../pods/pod-state.ts";

/** Annotation of Endpoints and EndpointSlices with the time of the change that triggered the last write. */
export const lastChangeAnnotation = "endpoints.kubernetes.io/last-change-trigger-time";

/**
 * Computes the time of the earliest change of a Service or its Pods' readiness since the last call. Consumers measure
 * the programming latency of endpoints with it.
 * Source: pkg/controller/util/endpoint/trigger_time_tracker.go
 */
export interface TriggerTimes {
  /**
   * Must be called in every reconciliation.
   * @returns RFC 3339 time; the Service's creation time on the first call; undefined when nothing changed
   */
  update(service: Service, pods: readonly Pod[]): string | undefined;
  forget(service: ObjectKey): void;
}

interface Observed {
  /** Times by Pod name, in the API's format, which sorts lexically. */
  readonly pods: ReadonlyMap<string, string>;
  readonly service: string;
}

export function newTriggerTimes(): TriggerTimes {
  const observed = new Map<ObjectKey, Observed>();
  return {
    update(service, pods) {
      const key = keyOf(service);
      const before = observed.get(key);
      const made = service.metadata.creationTimestamp ?? "";
      const now = new Map<string, string>();
      let earliest: string | undefined;
      const consider = (time: string, last: string): void => {
        if (time > last && (earliest === undefined || time < earliest)) earliest = time;
      };
      for (const pod of pods) {
        const { name = "" } = pod.metadata;
        const time = readyCondition(pod)?.lastTransitionTime;
        if (!time) continue;
        now.set(name, time);
        consider(time, before?.pods.get(name) ?? "");
      }
      consider(made, before?.service ?? "");
      observed.set(key, { pods: now, service: made });
      return before === undefined ? made || undefined : earliest;
    },
    forget: (service) => void observed.delete(service),
  };
}

/** Sets the trigger time annotation; removes it when `time` is undefined. */
export function withTriggerTime(
  annotations: Readonly<Record<string, string>> | undefined,
  time: string | undefined,
): Record<string, string> {
  const { [lastChangeAnnotation]: _, ...others } = { ...annotations };
  return time === undefined ? others : { ...others, [lastChangeAnnotation]: time };
}

import type { KubeObject } from "@coxswain/apimachinery/objects/meta/types";
import type { Event as CoreEvent } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import type { Event as NewEvent } from "@coxswain/apimachinery/objects/schema/kinds/events/v1";

/** Field names in events.k8s.io and in core v1. Source: pkg/apis/events/v1/conversion.go */
const renamed: readonly (readonly [keyof NewEvent, keyof CoreEvent])[] = [
  ["regarding", "involvedObject"],
  ["note", "message"],
  ["reportingController", "reportingComponent"],
  ["deprecatedSource", "source"],
  ["deprecatedFirstTimestamp", "firstTimestamp"],
  ["deprecatedLastTimestamp", "lastTimestamp"],
  ["deprecatedCount", "count"],
];

/** From any version of events.k8s.io to core v1, the hub; the argument is not modified. */
export function eventToCore(object: KubeObject): KubeObject {
  const event: Record<string, unknown> = { ...object };
  for (const [from, to] of renamed) move(event, from, to);
  event.apiVersion = "v1";
  return event as unknown as KubeObject; // cast: renaming fields keeps the metadata
}

/** @param apiVersion `events.k8s.io/v1` or `events.k8s.io/v1beta1`; both have the same fields */
export function eventFromCore(apiVersion: string): (object: KubeObject) => KubeObject {
  return (object) => {
    const event: Record<string, unknown> = { ...object };
    for (const [to, from] of renamed) move(event, from, to);
    event.apiVersion = apiVersion;
    return event as unknown as KubeObject; // cast: renaming fields keeps the metadata
  };
}

function move(event: Record<string, unknown>, from: string, to: string): void {
  if (event[from] === undefined) return;
  event[to] = event[from];
  delete event[from];
}

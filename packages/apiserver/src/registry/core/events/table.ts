import { parseTime } from "@coxswain/apimachinery/objects/meta/time";
import type { Event } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { nameColumn, tableOf, text, wide } from "../../cells.ts";
import type { Ages } from "../../generic/strategy.ts";

/** kubectl get events. Source: pkg/printers/internalversion/printers.go printEvent */
export const eventTable = tableOf<Event>(
  [
    text("Last Seen", "The time at which the most recent occurrence of this event was recorded."),
    text("Type", "Type of this event (Normal, Warning), new types could be added in the future"),
    text(
      "Reason",
      "This should be a short, machine understandable string that gives the reason for the transition into the object's current status.",
    ),
    text("Object", "The object that this event is about."),
    wide(
      "Subobject",
      'If referring to a piece of an object instead of an entire object, this string should contain a valid JSON/Go field access statement, such as desiredState.manifest.containers[2]. For example, if the object reference is to a container within a pod, this would take on a value like: "spec.containers{name}" (where "name" refers to the name of the container that triggered the event) or if no container name is specified "spec.containers[2]" (container with index 2 in this pod). This syntax is chosen only to have some well-defined way of referencing a part of an object.',
    ),
    wide("Source", "The component reporting this event. Should be a short machine understandable string."),
    text("Message", "A human-readable description of the status of this operation."),
    wide("First Seen", "The time at which the event was first recorded. (Time of server receipt is in TypeMeta.)"),
    wide("Count", "The number of times this event has occurred."),
    { ...nameColumn, priority: 1 },
  ],
  (event, ages) => {
    const first = translate(event.firstTimestamp, ages) ?? translate(event.eventTime, ages) ?? "<unknown>";
    let last = translate(event.lastTimestamp, ages) ?? translate(event.firstTimestamp, ages) ?? first;
    let count = event.count ?? 0;
    if (event.series) {
      last = translate(event.series.lastObservedTime, ages) ?? "<unknown>";
      count = (event.series.count ?? 0) + 1; // series.count does not include the first event
    } else if (count === 0) {
      count = 1; // a single event of a recorder that does not set count
    }
    const involved = event.involvedObject ?? {};
    const target = involved.name
      ? `${(involved.kind ?? "").toLowerCase()}/${involved.name}`
      : (involved.kind ?? "").toLowerCase();
    return [
      last,
      event.type ?? "",
      event.reason ?? "",
      target,
      involved.fieldPath ?? "",
      sourceText(event),
      (event.message ?? "").trim(),
      first,
      count,
      event.metadata.name ?? "",
    ];
  },
);

function translate(time: string | null | undefined, ages: Ages): string | undefined {
  const ms = time ? parseTime(time) : undefined;
  return ms === undefined ? undefined : ages.since(ms);
}

function sourceText(event: Event): string {
  const component = event.source?.component || event.reportingComponent || "";
  const host = event.source?.host || (event.source?.component ? "" : (event.reportingInstance ?? ""));
  return host === "" ? component : `${component}, ${host}`;
}

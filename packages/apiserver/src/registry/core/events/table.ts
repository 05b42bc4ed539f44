import { parseTime } from "@coxswain/apimachinery/objects/meta/time";
import type { Event } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { tableOf } from "../../cells.ts";
import type { Ages } from "../../generic/strategy.ts";

/** kubectl get events. Source: pkg/printers/internalversion/printers.go printEvent */
export const eventTable = tableOf<Event>("events", (event, ages) => {
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
  const target = involved.name ? `${(involved.kind ?? "").toLowerCase()}/${involved.name}` : (involved.kind ?? "").toLowerCase();
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
});

function translate(time: string | null | undefined, ages: Ages): string | undefined {
  const ms = time ? parseTime(time) : undefined;
  return ms === undefined ? undefined : ages.since(ms);
}

function sourceText(event: Event): string {
  const component = event.source?.component || event.reportingComponent || "";
  const host = event.source?.host || (event.source?.component ? "" : (event.reportingInstance ?? ""));
  return host === "" ? component : `${component}, ${host}`;
}

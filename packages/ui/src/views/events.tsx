/** Events as a time line: how many in each minute of the last hour, and below each of them, newest first. */
import type { JSX } from "preact";
import { useMemo } from "preact/hooks";
import type { EventRow } from "../model/row.ts";
import { age, clockTime } from "../model/text.ts";
import { useApp, useCluster, useNarrow, useNow } from "../parts/app.ts";
import { Mark } from "../parts/marks.tsx";
import { type Column, Rows } from "../parts/rows.tsx";
import { useRows } from "../parts/sorted.ts";

const newestFirst = (a: EventRow, b: EventRow): number => b.lastMs - a.lastMs || (a.uid < b.uid ? -1 : 1);

const columns: readonly Column<EventRow>[] = [
  { name: "time", title: "Time", cell: ({ lastMs }) => <time class="mono">{clockTime(lastMs)}</time> },
  {
    name: "reason",
    title: "Reason",
    cell: ({ isWarning, reason, count }) => (
      <span class={isWarning ? "reason text-bad" : "reason"}>
        <Mark health={isWarning ? "bad" : "good"} />
        <span class="cut">{reason}</span>
        {count > 1 && <span class="times">×{count}</span>}
      </span>
    ),
  },
  {
    name: "about",
    title: "Object",
    cell: ({ aboutKind, aboutName, aboutNamespace }) => (
      <>
        <span class="dim">{aboutKind.toLowerCase()}/</span>
        {aboutName}
        {aboutNamespace !== "" && <span class="dim"> in {aboutNamespace}</span>}
      </>
    ),
  },
  { name: "message", title: "Message", cell: ({ message }) => message },
];

export function EventsView(): JSX.Element {
  const { cluster, go } = useApp();
  useCluster();
  const isNarrow = useNarrow();
  const events = useRows<EventRow>(["events"], newestFirst);
  const open = (event: EventRow): void => {
    const row = cluster.get(event.about);
    if (row !== undefined) go({ object: { resource: row.resource, namespace: row.namespace, name: row.name }, tab: "events" });
  };
  return (
    <div class="view event-rows">
      <TimeLine events={events} />
      <Rows
        label="Events"
        items={events}
        keyOf={({ uid }) => uid}
        columns={columns}
        rowHeight={isNarrow ? 64 : 36}
        onOpen={open}
        empty={cluster.source("events").state === "denied" ? cluster.source("events").message : "No event matches."}
      />
    </div>
  );
}

const minutes = 60;
const minuteMs = 60_000;
const plotHeight = 56;

function TimeLine({ events }: { readonly events: readonly EventRow[] }): JSX.Element {
  const now = useNow(10_000);
  const bars = useMemo(() => {
    const made = Array.from({ length: minutes }, () => ({ normal: 0, warning: 0 }));
    for (const { lastMs, isWarning } of events) {
      const bar = made[minutes - 1 - Math.floor((now - lastMs) / minuteMs)] ?? (lastMs > now ? made[minutes - 1] : undefined);
      if (bar !== undefined) bar[isWarning ? "warning" : "normal"]++;
    }
    return made;
  }, [events, now]);
  const most = Math.max(4, ...bars.map(({ normal, warning }) => normal + warning));
  const heightOf = (count: number): number => (count === 0 ? 0 : Math.max(2, (count / most) * plotHeight));
  const warnings = bars.reduce((sum, { warning }) => sum + warning, 0);
  const all = bars.reduce((sum, { normal, warning }) => sum + normal + warning, 0);
  return (
    <figure class="time-line">
      <svg
        viewBox={`0 0 ${minutes * 10} ${plotHeight}`}
        preserveAspectRatio="none"
        role="img"
        aria-label={`${all} events in the last hour, ${warnings} of them warnings`}
      >
        {bars.map(({ normal, warning }, i) => {
          const [low, high] = [heightOf(normal), heightOf(warning)];
          return [
            <rect key={`n${i}`} class="fill-normal" x={i * 10 + 1} width={8} y={plotHeight - low} height={low} />,
            <rect key={`w${i}`} class="fill-bad" x={i * 10 + 1} width={8} y={plotHeight - low - high} height={high} />,
          ];
        })}
      </svg>
      <figcaption>
        <span>{clockTime(now - minutes * minuteMs).slice(0, 5)}</span>
        <span>
          {all.toLocaleString("en")} in the last hour{warnings > 0 && <span class="text-bad">, {warnings} warnings</span>}
        </span>
        <span>{clockTime(now).slice(0, 5)}</span>
      </figcaption>
    </figure>
  );
}

/** Of one object, in its panel. */
export function EventList({ uid }: { readonly uid: string }): JSX.Element {
  const { cluster } = useApp();
  useCluster();
  const now = useNow();
  const events = [...cluster.all<EventRow>("events").values()].filter(({ about }) => about === uid).sort(newestFirst);
  if (events.length === 0) return <p class="empty">No event about it in the last hour.</p>;
  return (
    <ol class="event-list">
      {events.map((event) => (
        <li key={event.uid} class={event.isWarning ? "bad" : "good"}>
          <div class="event-head">
            <strong>{event.reason}</strong>
            {event.count > 1 && <span class="times">×{event.count}</span>}
            <span class="dim end">{age(event.lastMs, now)} ago</span>
          </div>
          <p>{event.message}</p>
          <p class="dim">{event.source}</p>
        </li>
      ))}
    </ol>
  );
}

import { keyOf, revisionOf, type SeenEvent, type WatchSession } from "./records.ts";
import { type ExpectedEvent, isEvent, type Timeline } from "./timeline.ts";

/**
 * Checks that each watch delivered etcd's history from its start: each event once, in order, without gaps, none from before the
 * start, and no bookmark ahead of a missing event. A watch may end at any point.
 */
export function checkWatches(watches: readonly WatchSession[], timeline: Timeline): string[] {
  return watches.flatMap((watch) => {
    const broken = watch.revision ? follow(watch, watch.events, watch.revision, timeline) : fromPresent(watch, timeline);
    return broken === undefined ? [] : [broken];
  });
}

const nameOf = ({ client, prefix, revision }: WatchSession): string =>
  `${client}'s watch of ${prefix || "everything"} from ${revision ?? "now"}`;
const show = (event: SeenEvent | ExpectedEvent | undefined): string =>
  event === undefined
    ? "nothing"
    : "object" in event
      ? `${event.type} ${keyOf(event.object)}@${revisionOf(event.object)}`
      : `${event.type} ${event.key}@${event.revision}`;

function follow(watch: WatchSession, events: readonly SeenEvent[], after: number, timeline: Timeline): string | undefined {
  const expected = timeline.events(watch.prefix, watch.selection, after);
  let next = 0;
  let reached = after;
  for (const [place, event] of events.entries()) {
    if (event.type === "ERROR") {
      if (place < events.length - 1) return `${nameOf(watch)} went on after an error`;
      continue;
    }
    const revision = revisionOf(event.object);
    if (event.type === "BOOKMARK") {
      const missed = expected[next];
      if (missed !== undefined && missed.revision <= revision)
        return `${nameOf(watch)}: a bookmark of ${revision} before ${show(missed)}`;
      if (revision < reached) return `${nameOf(watch)}: a bookmark of ${revision} after ${reached}`;
    } else {
      const wanted = expected[next++];
      if (wanted === undefined || !isEvent(event, wanted))
        return `${nameOf(watch)} saw ${show(event)} instead of ${show(wanted)}`;
    }
    reached = revision;
  }
  return undefined;
}

/** Watches without revision start with the state at some revision, in key order; tries all revisions. */
function fromPresent(watch: WatchSession, timeline: Timeline): string | undefined {
  const { events, prefix, selection } = watch;
  if (events.length === 0 || events[0]?.type === "ERROR") return undefined;
  const candidates = [0, ...timeline.versions.map(({ revision }) => revision)];
  let complaint: string | undefined;
  for (const revision of candidates) {
    const state = timeline.state(prefix, revision).filter(({ object }) => object !== undefined && selection.matches(object));
    const shown = events.slice(0, state.length);
    // An interrupted watch may have delivered only a part of the state.
    const fits = shown.every(
      (event, i) =>
        event.type === "ADDED" && keyOf(event.object) === state[i]?.key && revisionOf(event.object) === state[i]?.revision,
    );
    if (!fits) continue;
    complaint = follow(watch, events.slice(state.length), revision, timeline);
    if (complaint === undefined) return undefined;
  }
  return complaint ?? `${nameOf(watch)} began with what was the state at no revision`;
}

import { isList } from "./check-reads.ts";
import { type Read, type Recording, revisionOf, type Write } from "./records.ts";
import type { Timeline } from "./timeline.ts";

/**
 * Checks linearizability of writes and most-recent reads. etcd's revisions define the order of writes, so each operation has a
 * position: a write its revision, a read the range of revisions during which its result was current. The positions are consistent
 * with real time when no operation is positioned before one that had ended before it began. This is a single order for all keys,
 * hence stronger than linearizability per key.
 */
export function checkOrder(recording: Recording, timeline: Timeline): string[] {
  const placed = [
    ...recording.writes.flatMap((w) => placeOfWrite(w, timeline)),
    ...recording.reads.flatMap((r) => placesOfRead(r, timeline)),
  ];
  const moments = placed.flatMap((operation) => [
    { at: operation.start, operation, ends: false },
    ...(operation.end === undefined ? [] : [{ at: operation.end, operation, ends: true }]),
  ]);
  moments.sort((a, b) => a.at - b.at || Number(a.ends) - Number(b.ends));

  const broken: string[] = [];
  /** Highest revision known to be applied, because some operation that observed it has ended. */
  let floor = 0;
  const floors = new Map<Placed, number>();
  for (const { operation, ends } of moments) {
    if (!ends) {
      floors.set(operation, floor);
      if (operation.end === undefined && fitting(operation, floor) === undefined) broken.push(complaint(operation, floor));
      continue;
    }
    const begun = floors.get(operation) as number;
    const place = fitting(operation, begun);
    if (place === undefined) broken.push(complaint(operation, begun));
    else floor = Math.max(floor, place);
  }
  return broken;
}

interface Placed {
  name: string;
  start: number;
  end: number | undefined;
  /** Ranges of revisions at which it may have taken effect, ascending. */
  spans: readonly { from: number; to: number }[];
  /** A write must be after everything observed before it; a read may be at the same revision. */
  isWrite: boolean;
}

/** The earliest possible revision at or after `floor`. */
function fitting({ spans, isWrite }: Placed, floor: number): number | undefined {
  const span = spans.find(({ to }) => (isWrite ? to > floor : to >= floor));
  return span === undefined ? undefined : Math.max(span.from, floor);
}

const complaint = ({ name, spans }: Placed, floor: number): string =>
  `${name} belongs at revision ${spans.at(-1)?.from ?? "none"}, but ${floor} had been seen before it began`;

function placeOfWrite(write: Write, timeline: Timeline): Placed[] {
  const version = write.tag === undefined ? undefined : timeline.tagged(write.tag)[0];
  if (version === undefined) return [];
  const { start, client, verb, key } = write;
  // Without a success response it may take effect at any time after it was sent.
  const end = write.code !== undefined && write.code < 300 ? write.end : undefined;
  const at = { from: version.revision, to: version.revision };
  return [{ name: `${client}'s ${verb} of ${key}`, start, end, spans: [at], isWrite: true }];
}

function placesOfRead(read: Read, timeline: Timeline): Placed[] {
  const { start, end, client, prefix, revision, previous, code } = read;
  if (end === undefined || revision !== undefined || previous !== undefined || (code !== 200 && code !== 404)) return [];
  const name = `${client}'s read of ${prefix || "everything"}`;
  const spans = isList(read) ? spanOfList(read, timeline) : spansOfGet(read, timeline);
  return [{ name, start, end, spans, isWrite: false }];
}

function spanOfList({ listRevision = 0, prefix }: Read, timeline: Timeline): Placed["spans"] {
  let from = 0;
  let to = Number.POSITIVE_INFINITY;
  for (const { key, revision } of timeline.versions) {
    if (!key.startsWith(prefix)) continue;
    if (revision <= listRevision) from = revision;
    else {
      to = revision - 1;
      break;
    }
  }
  return [{ from, to }];
}

function spansOfGet({ items, prefix }: Read, timeline: Timeline): Placed["spans"] {
  const [object] = items;
  if (object !== undefined) return [{ from: revisionOf(object), to: endOf(prefix, revisionOf(object), timeline) }];
  const deletions = timeline.of(prefix).filter((version) => version.object === undefined);
  return [0, ...deletions.map(({ revision }) => revision)].map((from) => ({ from, to: endOf(prefix, from, timeline) }));
}

const endOf = (key: string, from: number, timeline: Timeline): number =>
  (timeline.next(key, from)?.revision ?? Number.POSITIVE_INFINITY) - 1;

import { keyOf, type Read, revisionOf } from "./records.ts";
import { type Timeline, textOf } from "./timeline.ts";

/**
 * Checks that each read returned the state at one revision: objects at their own revision, lists at the list's. Not older than
 * the requested revision, equal to it for exact reads, and the same for all pages of a list.
 */
export function checkReads(reads: readonly Read[], timeline: Timeline): string[] {
  return reads
    .filter(({ code }) => code === 200)
    .flatMap((read) => [...(isList(read) ? ofList(read, timeline) : ofGet(read, timeline))]);
}

export const isList = ({ prefix }: Read): boolean => prefix === "" || prefix.endsWith("/");
const nameOf = ({ client, prefix, revision, exact }: Read): string =>
  `${client}'s read of ${prefix || "everything"}${revision === undefined ? "" : ` ${exact ? "at" : "from"} ${revision}`}`;

function* ofGet(read: Read, timeline: Timeline): Generator<string> {
  const [object] = read.items;
  if (object === undefined) return;
  const at = revisionOf(object);
  const version = timeline.at(read.prefix, at);
  if (version?.revision !== at || version.object === undefined) yield `${nameOf(read)} showed revision ${at}, which never was`;
  else if (textOf(version.object) !== textOf(object)) yield `${nameOf(read)} showed another object than revision ${at}`;
  const next = timeline.next(read.prefix, at);
  if (read.revision !== undefined && next !== undefined && next.revision <= read.revision) {
    yield `${nameOf(read)} showed revision ${at}, though ${next.revision} was requested`;
  }
}

function* ofList(read: Read, timeline: Timeline): Generator<string> {
  const at = read.listRevision ?? 0;
  const { previous } = read;
  if (read.exact && at !== read.revision) yield `${nameOf(read)} is of revision ${at}`;
  if (read.revision !== undefined && at < read.revision) yield `${nameOf(read)} is of the older revision ${at}`;
  // After a 410 the list continues with a new token at another revision.
  if (previous?.code === 200 && previous.listRevision !== at) {
    yield `${nameOf(read)}: a page of revision ${previous.listRevision} is followed by one of ${at}`;
  }
  const last = lastKeyBefore(read);
  const all = timeline
    .state(read.prefix, at)
    .filter(({ key, object }) => (last === undefined || key > last) && object !== undefined && read.selection.matches(object));
  const want = read.limit === undefined ? all : all.slice(0, read.limit);
  if ((read.continueToken !== undefined) !== want.length < all.length) yield `${nameOf(read)} at ${at}: wrong about what follows`;
  const shown = read.items.map((item) => `${keyOf(item)}@${revisionOf(item)} ${textOf(item)}`);
  const wanted = want.map(({ key, revision, object }) => `${key}@${revision} ${object === undefined ? "" : textOf(object)}`);
  if (shown.join("\n") !== wanted.join("\n")) {
    const missing = wanted.filter((line) => !shown.includes(line)).map((line) => line.split(" ")[0]);
    const surplus = shown.filter((line) => !wanted.includes(line)).map((line) => line.split(" ")[0]);
    yield `${nameOf(read)} is not the state at ${at}: missing ${missing.join() || "nothing"}, surplus ${surplus.join() || "nothing"}`;
  }
}

/** Last key of the previous pages; failed pages have no items. */
function lastKeyBefore(read: Read): string | undefined {
  for (let page = read.previous; page !== undefined; page = page.previous) {
    const last = page.items.at(-1);
    if (last !== undefined) return keyOf(last);
  }
  return undefined;
}

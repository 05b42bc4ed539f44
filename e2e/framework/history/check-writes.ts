import { revisionOf, type Write } from "./records.ts";
import { type Timeline, textOf } from "./timeline.ts";

/**
 * Checks writes: acknowledged ones are in etcd as reported, exactly once; rejected ones are absent; those without a response
 * are applied completely or not at all; and no write replaced another version than the one it was based on.
 */
export function checkWrites(writes: readonly Write[], timeline: Timeline): string[] {
  return writes.flatMap((write) => [...(write.verb === "delete" ? ofDeletion(write, timeline) : ofChange(write, timeline))]);
}

const wasDone = ({ code }: Write): boolean => code !== undefined && code < 300;
/** Definitely not applied, in contrast to 5xx responses. */
const wasRefused = ({ code }: Write): boolean => code !== undefined && code >= 300 && code < 500;
const nameOf = ({ client, verb, key, tag }: Write): string =>
  `${client}'s ${verb} of ${key}${tag === undefined ? "" : ` (${tag})`}`;

function* ofChange(write: Write, timeline: Timeline): Generator<string> {
  const { key, answer, basedOn } = write;
  const found = timeline.tagged(write.tag as string);
  const [version] = found;
  if (found.length > 1) yield `${nameOf(write)} was applied ${found.length} times`;
  if (wasRefused(write) && version !== undefined) yield `${nameOf(write)} was answered ${write.code} and is in etcd`;
  if (wasDone(write) && version === undefined) yield `${nameOf(write)} was acknowledged and is not in etcd`;
  if (version?.object === undefined) return;
  if (version.key !== key) yield `${nameOf(write)} changed ${version.key}`;
  if (answer !== undefined && wasDone(write)) {
    if (revisionOf(answer) !== version.revision)
      yield `${nameOf(write)} was answered revision ${revisionOf(answer)}, etcd has ${version.revision}`;
    if (textOf(answer) !== textOf(version.object)) yield `${nameOf(write)} was answered with another object than etcd holds`;
  }
  const before = timeline.at(key, version.revision - 1);
  if (write.verb === "create" && before !== undefined) yield `${nameOf(write)} replaced revision ${before.revision}`;
  // Server-side apply creates missing objects, regardless of the resourceVersion.
  const makes = write.verb === "apply" && before === undefined;
  if (basedOn !== undefined && before?.revision !== basedOn && !makes) {
    yield `${nameOf(write)} was based on revision ${basedOn} and replaced ${before?.revision ?? "nothing"}`;
  }
}

function* ofDeletion(write: Write, timeline: Timeline): Generator<string> {
  if (!wasDone(write)) return;
  const uid = (write.answer as { details?: { uid?: string } } | undefined)?.details?.uid;
  const gone = timeline.of(write.key).some(({ object, revision }) => {
    return object === undefined && timeline.at(write.key, revision - 1)?.object?.metadata.uid === uid;
  });
  if (!gone) yield `${nameOf(write)} was acknowledged and ${uid} was never deleted`;
}

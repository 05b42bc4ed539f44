import { spawn } from "node:child_process";
import { createReadStream, existsSync, statSync } from "node:fs";
import { createInterface } from "node:readline";
import { Failure } from "./failure.ts";

export interface LogSource {
  readonly name: string;
  readonly file: string;
}

interface LogSelection {
  /** Only lines since this time, in ms since the epoch. */
  readonly sinceMs: number | undefined;
  /** Only this many last lines of each log. */
  readonly tail: number | undefined;
  /** Current time, to complete klog's timestamps, which have no year. */
  readonly now: number;
}

/** One line with a timestamp and following lines without, such as a stack trace. */
interface Entry {
  readonly time: number;
  readonly lines: string[];
}

const klogForm = /^[IWEF](\d\d)(\d\d) (\d\d):(\d\d):(\d\d)\.(\d{3})/;
/** Default format of etcd 3.4, local time. */
const capnslogForm = /^(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3})\d* [A-Z] \| /;
const isoForm = /(?:^|"ts":"|\btime="|"time":"|"timestamp":")(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:?\d\d))/;

/**
 * Timestamp of a line: klog's header (local time without year), or the formats of etcd, containerd and JSON logs.
 * @param now klog lines get the latest year that does not put them after this time
 * @returns ms since the epoch; undefined for a line without timestamp
 */
export function timeOfLine(line: string, now: number): number | undefined {
  const klog = klogForm.exec(line);
  if (klog !== null) {
    const [month, day, hour, minute, second, ms] = klog.slice(1).map(Number) as [number, number, number, number, number, number]; // cast: the pattern has six groups
    const year = new Date(now).getFullYear();
    const time = new Date(year, month - 1, day, hour, minute, second, ms).getTime();
    return time <= now + 86_400_000 ? time : new Date(year - 1, month - 1, day, hour, minute, second, ms).getTime();
  }
  const capnslog = capnslogForm.exec(line)?.[1];
  if (capnslog !== undefined) return new Date(capnslog.replace(" ", "T")).getTime();
  const iso = isoForm.exec(line.slice(0, 500))?.[1];
  if (iso === undefined) return undefined;
  const time = Date.parse(iso.replace(/([+-]\d\d)(\d\d)$/, "$1:$2"));
  return Number.isNaN(time) ? undefined : time;
}

/**
 * Merges the lines of several logs by time; lines of the same log keep their order.
 * @param ends receives the size of each log that was read, as the offset for following it
 */
export async function* mergedLines(
  sources: readonly LogSource[],
  selection: LogSelection,
  ends: Map<string, number> = new Map(),
): AsyncGenerator<{ name: string; text: string }> {
  const heads = await Promise.all(
    sources.map(async (source) => {
      const end = existsSync(source.file) ? statSync(source.file).size : 0;
      ends.set(source.name, end);
      const entries = select(entriesOf(source.file, end, selection.now), selection);
      return { name: source.name, entries, head: await entries.next() };
    }),
  );
  for (;;) {
    let first: (typeof heads)[number] | undefined;
    for (const each of heads) {
      if (each.head.done) continue;
      if (first === undefined || each.head.value.time < first.head.value.time) first = each;
    }
    if (first === undefined) return;
    for (const text of (first.head.value as Entry).lines) yield { name: first.name, text }; // cast: sources that are done were skipped above
    first.head = await first.entries.next();
  }
}

/** Lines before the first timestamp sort first (time 0), and join the first entry. */
async function* entriesOf(file: string, end: number, now: number): AsyncGenerator<Entry> {
  if (end === 0) return;
  const stream = createReadStream(file, { end: end - 1 });
  let failure: Error | undefined;
  stream.once("error", (err) => {
    failure = err;
  });
  let entry: { time: number; lines: string[] } | undefined;
  for await (const line of createInterface({ input: stream, crlfDelay: Number.POSITIVE_INFINITY })) {
    const time = timeOfLine(line, now);
    if (entry === undefined) entry = { time: time ?? 0, lines: [line] };
    else if (time === undefined || entry.lines.length > 10_000) entry.lines.push(line);
    else {
      yield entry;
      entry = { time, lines: [line] };
    }
  }
  if (failure !== undefined) throw new Failure(`cannot read ${file}: ${failure.message}`);
  if (entry !== undefined) yield entry;
}

async function* select(entries: AsyncGenerator<Entry>, { sinceMs, tail }: LogSelection): AsyncGenerator<Entry> {
  const last: Entry[] = [];
  let kept = 0;
  for await (const entry of entries) {
    if (sinceMs !== undefined && entry.time < sinceMs) continue;
    if (tail === undefined) {
      yield entry;
      continue;
    }
    last.push(entry);
    kept += entry.lines.length;
    while (last[0] !== undefined && kept - last[0].lines.length >= tail) kept -= last.shift()!.lines.length;
  }
  const surplus = tail === undefined ? 0 : Math.max(0, kept - tail);
  for (const [index, entry] of last.entries()) yield index === 0 ? { ...entry, lines: entry.lines.slice(surplus) } : entry;
}

/** Follows a log from an offset with tail -F, across file replacement, until this process exits. */
export function followLog(
  source: LogSource,
  offset: number,
  write: (name: string, line: string) => Promise<void>,
): Promise<void> {
  const child = spawn("tail", ["--quiet", `--bytes=+${offset + 1}`, "-F", source.file], { stdio: ["ignore", "pipe", "ignore"] });
  process.once("exit", () => child.kill());
  for (const [name, code] of [
    ["SIGINT", 130],
    ["SIGTERM", 143],
    ["SIGHUP", 129],
  ] as const)
    process.once(name, () => process.exit(code));
  return new Promise((resolve, reject) => {
    child.once("error", (err) => reject(new Failure(`cannot follow ${source.file}: ${err.message}`)));
    void (async () => {
      for await (const line of createInterface({ input: child.stdout })) await write(source.name, line);
      resolve();
    })().catch(reject);
  });
}

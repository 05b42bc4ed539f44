import { formatMicroTime } from "@coxswain/apimachinery/objects/meta/time";
import type { LogLines } from "./rules.ts";

/** Options of a log request. */
export interface LogOptions {
  readonly follow: boolean;
  readonly timestamps: boolean;
  readonly tailLines: number | undefined;
  readonly limitBytes: number | undefined;
  /** ms since the epoch. */
  readonly sinceMs: number | undefined;
}

/** @param query of the kubelet's `/containerLogs`, already validated by the API server */
export function logOptionsOf(query: URLSearchParams, nowMs: number): LogOptions {
  const isSet = (name: string): boolean => /^(?!0$|false$)./.test(query.get(name) ?? "");
  const number = (name: string): number | undefined => {
    const text = query.get(name) ?? "";
    return /^\d{1,15}$/.test(text) ? Number(text) : undefined;
  };
  const seconds = number("sinceSeconds");
  const since = Date.parse(query.get("sinceTime") ?? "");
  return {
    follow: isSet("follow"),
    timestamps: isSet("timestamps"),
    tailLines: number("tailLines"),
    limitBytes: number("limitBytes"),
    sinceMs: seconds !== undefined ? nowMs - seconds * 1000 : Number.isNaN(since) ? undefined : since,
  };
}

/**
 * The bytes sent to the client.
 * @param source existing lines have the time `startedMs`; lines of an async iterable have the time at which they arrive, and
 * `tailLines` does not apply to them while they are followed
 */
export async function* logText(
  source: LogLines,
  options: LogOptions,
  { startedMs, now }: { readonly startedMs: number; readonly now: () => number },
): AsyncGenerator<Buffer> {
  const { follow, tailLines, sinceMs = Number.NEGATIVE_INFINITY, limitBytes = Number.POSITIVE_INFINITY } = options;
  let left = limitBytes;
  const bytesOf = (line: string, atMs: number): Buffer => {
    const stamp = options.timestamps ? `${formatMicroTime(atMs).replace("Z", "000Z")} ` : "";
    const bytes = Buffer.from(`${stamp}${line}\n`).subarray(0, left);
    left -= bytes.length;
    return bytes;
  };
  if (typeof source === "string" || Array.isArray(source)) {
    const lines = linesOf(source as string | readonly string[]);
    const wanted = startedMs < sinceMs ? [] : lines.slice(lines.length - Math.min(lines.length, tailLines ?? lines.length));
    for (const line of wanted) if (left > 0) yield bytesOf(line, startedMs);
    return;
  }
  const kept: [line: string, atMs: number][] = [];
  for await (const piece of source as AsyncIterable<string>) {
    for (const line of linesOf(piece)) {
      if (tailLines === undefined || follow) yield bytesOf(line, now());
      else if (tailLines > 0) {
        kept.push([line, now()]);
        if (kept.length > tailLines) kept.shift();
      }
    }
    if (left <= 0) return;
  }
  for (const [line, atMs] of kept) if (left > 0) yield bytesOf(line, atMs);
}

function linesOf(source: string | readonly string[]): readonly string[] {
  if (typeof source !== "string") return source.flatMap(linesOf);
  return source.replace(/\n$/, "").split("\n");
}

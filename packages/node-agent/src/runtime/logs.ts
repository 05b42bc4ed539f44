import { constants, watch } from "node:fs";
import { type FileHandle, open, realpath, stat } from "node:fs/promises";
import { basename, dirname, join, sep } from "node:path";
import { errorCode } from "@coxswain/apimachinery/process/narrowing/error-code";

/** The parameters of `GET …/pods/<name>/log` that apply to the log reader. */
export interface LogOptions {
  tailLines?: number | undefined;
  /** Milliseconds since the epoch; older lines are left out. */
  since?: number | undefined;
  timestamps?: boolean | undefined;
  limitBytes?: number | undefined;
  follow?: boolean | undefined;
}

/** A container's log file. */
export interface LogSource {
  path: string;
  /** The file's resolved directory must be below this one, so that a directory replaced by a link cannot expose host files. */
  root?: string | undefined;
  /** Called while following, when there is no more to read; the log ends when the container is not running. */
  isRunning?: (() => Promise<boolean>) | undefined;
  signal?: AbortSignal | undefined;
}

const chunkBytes = 64 * 1024;
/** Runtimes write at most 16 kB of text per line; longer lines are not container logs. */
const maxLineBytes = 1024 * 1024;
const pollMs = 500;

/**
 * The text of a container's log, as `kubectl logs` prints it. Each line of the file is
 * `<RFC 3339 time with nanoseconds> <stdout|stderr> <F|P> <text>`; P marks a partial line that continues in the next one.
 * @throws Error with `code` ENOENT when there is no log, ELOOP when the file is a link, EACCES when it is outside of `root`
 * or not a regular file
 * Source: pkg/kubelet/kuberuntime/logs/logs.go
 */
export async function* readLog(source: LogSource, options: LogOptions): AsyncGenerator<Buffer> {
  let file = await openLog(source);
  let left = options.limitBytes ?? Number.POSITIVE_INFINITY;
  try {
    let position = options.tailLines === undefined ? 0 : await tailStart(file, options.tailLines);
    let pending: Buffer = Buffer.alloc(0);
    for (;;) {
      const chunk = await readAt(file, position);
      if (chunk.length === 0) {
        if (!options.follow || source.signal?.aborted) return;
        const next = await waitForChange(file, position, source);
        if (next === "ended") return;
        if (next !== "grown") {
          const old = file;
          file = next;
          await old.close();
          position = 0;
          pending = Buffer.alloc(0);
        }
        continue;
      }
      position += chunk.length;
      const { lines, rest } = splitLines(pending.length === 0 ? chunk : Buffer.concat([pending, chunk]));
      pending = rest.length > maxLineBytes ? Buffer.alloc(0) : rest;
      const out: Buffer[] = [];
      for (const line of lines) {
        const text = formatLine(line, options);
        if (text === undefined) continue;
        const cut = text.length > left ? text.subarray(0, left) : text;
        out.push(cut);
        left -= cut.length;
        if (left <= 0) break;
      }
      if (out.length > 0) yield Buffer.concat(out);
      if (left <= 0) return;
    }
  } finally {
    await file.close();
  }
}

/** The end of a log, for termination messages, up to `lines` and `limitBytes`; `""` when there is no log. */
export async function readLogTail(path: string, lines: number, limitBytes: number): Promise<string> {
  const pieces: Buffer[] = [];
  try {
    for await (const piece of readLog({ path }, { tailLines: lines })) pieces.push(piece);
  } catch {
    return "";
  }
  const text = Buffer.concat(pieces);
  return text.subarray(Math.max(0, text.length - limitBytes)).toString("utf8");
}

/** Pure: formats one line of the file (without newline); undefined when it is older than `since` or malformed. */
export function formatLine(line: Buffer, options: Pick<LogOptions, "since" | "timestamps">): Buffer | undefined {
  const afterTime = line.indexOf(0x20);
  const afterStream = afterTime < 0 ? -1 : line.indexOf(0x20, afterTime + 1);
  if (afterStream < 0) return undefined;
  const stream = line.toString("latin1", afterTime + 1, afterStream);
  if (stream !== "stdout" && stream !== "stderr") return undefined;
  const afterTags = line.indexOf(0x20, afterStream + 1);
  const tags = line.toString("latin1", afterStream + 1, afterTags < 0 ? line.length : afterTags).split(":");
  const [, seconds = "", fraction = "", zone = ""] = timePattern.exec(line.toString("latin1", 0, afterTime)) ?? [];
  if (zone === "") return undefined;
  const time = `${seconds}.${fraction.padEnd(9, "0")}${zone}`;
  if (options.since !== undefined && Date.parse(time) < options.since) return undefined;
  const text = afterTags < 0 ? Buffer.alloc(0) : line.subarray(afterTags + 1);
  const ending = tags[0] === "P" ? Buffer.alloc(0) : newline;
  return options.timestamps ? Buffer.concat([Buffer.from(`${time} `), text, ending]) : Buffer.concat([text, ending]);
}

/** Runtimes omit trailing zeros of the fraction; clients get all nine digits. */
const timePattern = /^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?(Z|[+-]\d\d:\d\d)$/;
const newline = Buffer.from("\n");

function splitLines(bytes: Buffer): { lines: Buffer[]; rest: Buffer } {
  const lines: Buffer[] = [];
  let start = 0;
  for (;;) {
    const end = bytes.indexOf(0x0a, start);
    if (end < 0) return { lines, rest: bytes.subarray(start) };
    lines.push(bytes.subarray(start, end));
    start = end + 1;
  }
}

async function openLog(source: LogSource): Promise<FileHandle> {
  let path = source.path;
  if (source.root !== undefined) {
    const [root, folder] = await Promise.all([realpath(source.root), realpath(dirname(source.path))]);
    if (folder !== root && !folder.startsWith(root + sep))
      throw withCode("EACCES", `log ${source.path} is outside of ${source.root}`);
    path = join(folder, basename(source.path));
  }
  const file = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  try {
    if (!(await file.stat()).isFile()) throw withCode("EACCES", `log ${source.path} is not a regular file`);
    return file;
  } catch (err) {
    await file.close();
    throw err;
  }
}

function withCode(code: string, message: string): Error {
  return Object.assign(new Error(message), { code });
}

async function readAt(file: FileHandle, position: number): Promise<Buffer> {
  const buffer = Buffer.allocUnsafe(chunkBytes);
  const { bytesRead } = await file.read(buffer, 0, chunkBytes, position);
  return buffer.subarray(0, bytesRead);
}

/** Offset of the last `lines` lines; a partial line counts as a line, as upstream counts. */
async function tailStart(file: FileHandle, lines: number): Promise<number> {
  const { size } = await file.stat();
  if (lines <= 0) return size;
  let end = size;
  let found = 0;
  while (end > 0) {
    const start = Math.max(0, end - chunkBytes);
    const buffer = Buffer.allocUnsafe(end - start);
    const { bytesRead } = await file.read(buffer, 0, buffer.length, start);
    for (let i = bytesRead - 1; i >= 0; i--) {
      // The newline at the end of the file terminates the last line.
      if (buffer[i] !== 0x0a || start + i === size - 1) continue;
      found++;
      if (found === lines) return start + i + 1;
    }
    end = start;
  }
  return 0;
}

/** Waits until the file grows, is replaced (log rotation), or the container has exited. */
async function waitForChange(file: FileHandle, position: number, source: LogSource): Promise<"grown" | "ended" | FileHandle> {
  for (;;) {
    if (source.signal?.aborted) return "ended";
    const running = (await source.isRunning?.()) ?? false;
    const now = await file.stat();
    if (now.size > position) return "grown";
    try {
      const current = await stat(source.path);
      // The old file may have got more lines since it was last read.
      if (current.ino !== now.ino) return (await file.stat()).size > position ? "grown" : await openLog(source);
    } catch (err) {
      // During a rotation there is briefly no file.
      if (errorCode(err) !== "ENOENT") throw err;
      if (!running) return "ended";
    }
    if (!running) return "ended";
    await changed(source.path, source.signal);
  }
}

/** Resolves when the file changes, or after `pollMs`. */
function changed(path: string, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve) => {
    const done = (): void => {
      clearTimeout(timer);
      watcher?.close();
      signal?.removeEventListener("abort", done);
      resolve();
    };
    const timer = setTimeout(done, pollMs);
    signal?.addEventListener("abort", done, { once: true });
    let watcher: ReturnType<typeof watch> | undefined;
    try {
      watcher = watch(path, done);
      watcher.on("error", done);
    } catch {
      // e.g. no inotify watches left: rely on the timer
    }
  });
}

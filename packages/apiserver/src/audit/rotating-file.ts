/**
 * A log file with rotation by size: `audit.log` is renamed to `audit-2022-01-31T10-20-30.123.log` (UTC); backups are removed
 * by count and age, and optionally compressed to `.gz`. Writes during a pending write are batched, so that many requests
 * share one write.
 * Source: gopkg.in/natefinch/lumberjack.v2
 */

import { createReadStream, createWriteStream } from "node:fs";
import { type FileHandle, open, readdir, rename, stat, unlink } from "node:fs/promises";
import { basename, dirname, extname, join } from "node:path";
import { pipeline } from "node:stream/promises";
import { createGzip } from "node:zlib";
import type { Clock } from "@coxswain/apimachinery/process/clock/clock";
import { makeFolder } from "@coxswain/apimachinery/process/files/make-folder";

export interface RotatingFileOptions {
  readonly path: string;
  /** Size that triggers rotation; 0 selects 100 MiB. */
  readonly maxBytes: number;
  /** 0: unlimited. */
  readonly maxAgeDays: number;
  /** 0: unlimited. */
  readonly maxBackups: number;
  readonly compress: boolean;
}

export interface RotatingFile {
  /** Resolves when the bytes are written. @throws Error when the write fails or the bytes exceed maxBytes. */
  write(bytes: Buffer | string): Promise<void>;
  /** Resolves when pending writes and the cleanup of backups are done. */
  close(): Promise<void>;
}

const defaultMaxBytes = 100 * 1024 * 1024;
const dayMs = 24 * 60 * 60 * 1000;

interface Waiting {
  readonly bytes: Buffer;
  readonly resolve: () => void;
  readonly reject: (err: unknown) => void;
}

export function newRotatingFile(options: RotatingFileOptions, clock: Clock, onError: (err: unknown) => void): RotatingFile {
  const maxBytes = options.maxBytes > 0 ? options.maxBytes : defaultMaxBytes;
  let waiting: Waiting[] = [];
  let running: Promise<void> | undefined;
  let cleaning = Promise.resolve();
  let file: FileHandle | undefined;
  let size = 0;

  const openFile = async (mode?: number): Promise<FileHandle> => {
    const opened = await openToAppend(options.path, mode);
    size = opened.size;
    return opened.file;
  };
  const clean = (): void => {
    cleaning = cleaning.then(() => cleanBackups(options, clock.now(), onError)).catch(onError);
  };
  const closeFile = async (): Promise<void> => {
    const closing = file;
    file = undefined; // also when closing fails: a closed file cannot be written
    await closing?.close();
  };
  const rotate = async (): Promise<FileHandle> => {
    await closeFile();
    const found = await stat(options.path).catch(ifAbsent);
    if (found !== undefined) await rename(options.path, backupName(options.path, clock.now()));
    const opened = await openFile(found && found.mode & 0o777);
    clean();
    return opened;
  };

  const flush = async (): Promise<void> => {
    while (waiting.length > 0) {
      const all = waiting;
      waiting = [];
      for (let from = 0; from < all.length; ) {
        let to = from;
        try {
          file ??= await openFile();
          if (size > 0 && size + all[from]!.bytes.length > maxBytes) file = await rotate();
          let bytes = 0;
          do bytes += all[to++]!.bytes.length;
          while (to < all.length && size + bytes + all[to]!.bytes.length <= maxBytes);
          const batch = all.slice(from, to).map((one) => one.bytes);
          await file.appendFile(batch.length === 1 ? batch[0]! : Buffer.concat(batch));
          size += bytes;
          for (const one of all.slice(from, to)) one.resolve();
        } catch (err) {
          to = Math.max(to, from + 1);
          for (const one of all.slice(from, to)) one.reject(err);
          await closeFile().catch(onError); // opened again, with its size, by the next write
        }
        from = to;
      }
    }
    // Cleared in the same turn in which the queue was found empty: a later write has to start the loop again.
    running = undefined;
  };

  return {
    write(written) {
      const bytes = typeof written === "string" ? Buffer.from(written) : written;
      if (bytes.length > maxBytes) {
        return Promise.reject(new Error(`write length ${bytes.length} exceeds maximum file size ${maxBytes}`));
      }
      return new Promise((resolve, reject) => {
        waiting.push({ bytes, resolve, reject });
        running ??= flush();
      });
    },
    async close() {
      while (running !== undefined) await running;
      await cleaning;
      await closeFile();
    },
  };
}

/** Creates the file, and its folder, if necessary. */
async function openToAppend(path: string, mode = 0o600): Promise<{ file: FileHandle; size: number }> {
  await makeFolder(dirname(path), 0o755);
  const file = await open(path, "a", mode);
  try {
    return { file, size: (await file.stat()).size };
  } catch (err) {
    await file.close();
    throw err;
  }
}

function ifAbsent(err: NodeJS.ErrnoException): undefined {
  if (err.code !== "ENOENT") throw err;
}

/** Backup name with the time in UTC: `dir/audit-2022-01-31T10-20-30.123.log` */
function backupName(path: string, nowMs: number): string {
  const { prefix, extension } = partsOf(path);
  const time = new Date(nowMs).toISOString().slice(0, 23).replaceAll(":", "-");
  return join(dirname(path), `${prefix}${time}${extension}`);
}

function partsOf(path: string): { prefix: string; extension: string } {
  const name = basename(path);
  // A dot file such as `.log` is all extension, unlike in Node's extname.
  const extension = extname(name) || (name.startsWith(".") ? name : "");
  return { prefix: `${name.slice(0, name.length - extension.length)}-`, extension };
}

interface Backup {
  /** File name without `.gz`. */
  readonly name: string;
  readonly path: string;
  readonly timeMs: number;
  readonly packed: boolean;
}

/** A backup that cannot be removed or compressed is reported, and tried again after the next rotation. */
async function cleanBackups(options: RotatingFileOptions, nowMs: number, onError: (err: unknown) => void): Promise<void> {
  const { maxBackups, maxAgeDays, compress } = options;
  if (maxBackups === 0 && maxAgeDays === 0 && !compress) return;
  const backups = await listBackups(options.path);
  const names = [...new Set(backups.map(({ name }) => name))];
  const kept = new Set(maxBackups > 0 ? names.slice(0, maxBackups) : names);
  for (const backup of backups) {
    const old = maxAgeDays > 0 && backup.timeMs < nowMs - maxAgeDays * dayMs;
    if (old || !kept.has(backup.name)) await unlink(backup.path).catch(onError);
    else if (compress && !backup.packed) await pack(backup.path).catch(onError);
  }
}

/** Backups, newest first. */
async function listBackups(path: string): Promise<Backup[]> {
  const { prefix, extension } = partsOf(path);
  const folder = dirname(path);
  const backups: Backup[] = [];
  for (const found of await readdir(folder)) {
    const packed = found.endsWith(".gz");
    const name = packed ? found.slice(0, -3) : found;
    if (!name.startsWith(prefix) || !name.endsWith(extension)) continue;
    const match = /^(\d{4}-\d\d-\d\dT)(\d\d)-(\d\d)-(\d\d\.\d{3})$/.exec(
      name.slice(prefix.length, name.length - extension.length),
    );
    if (match === null) continue;
    const timeMs = Date.parse(`${match[1]}${match[2]}:${match[3]}:${match[4]}Z`);
    if (!Number.isNaN(timeMs)) backups.push({ name, path: join(folder, found), timeMs, packed });
  }
  return backups.sort((a, b) => b.timeMs - a.timeMs);
}

async function pack(path: string): Promise<void> {
  const { mode } = await stat(path);
  await pipeline(createReadStream(path), createGzip(), createWriteStream(`${path}.gz`, { mode: mode & 0o777 }));
  await unlink(path);
}

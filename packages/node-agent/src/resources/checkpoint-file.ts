import { readFileSync, renameSync, writeFileSync } from "node:fs";
import { errorCode } from "@coxswain/apimachinery/process/narrowing/error-code";

/**
 * State of a resource manager, persisted in one small file. Reads and writes are synchronous: an allocation must be on disk
 * before the next one is decided.
 */
export interface CheckpointFile<T> {
  /** @returns undefined when the file does not exist. @throws Error when it cannot be read or its checksum does not match */
  load(): T | undefined;
  save(state: T): void;
}

/** Encoding of a checkpoint's contents. */
export interface CheckpointForm<T> {
  encode(state: T): string;
  /** @throws Error when the text is malformed or its checksum does not match */
  decode(text: string): T;
}

/** Upstream's error text for a checksum mismatch. */
export const corrupt = "checkpoint is corrupted";

/** @throws Error with a readable message, also for JSON of an unexpected shape */
export function decodeCheckpoint<T>(form: CheckpointForm<T>, text: string): T {
  try {
    return form.decode(text);
  } catch (err) {
    if (err instanceof TypeError || err instanceof RangeError) throw new Error(corrupt, { cause: err });
    throw err;
  }
}

/** Creates a checkpoint at `path`; writes are atomic and flushed to disk. */
export function newCheckpointFile<T>(path: string, form: CheckpointForm<T>): CheckpointFile<T> {
  return {
    load() {
      let text: string;
      try {
        text = readFileSync(path, "utf8");
      } catch (err) {
        if (errorCode(err) === "ENOENT") return undefined;
        throw err;
      }
      return decodeCheckpoint(form, text);
    },
    save(state) {
      const temporary = `${path}.tmp`;
      // Flushed before the rename: after a crash, a truncated file would keep the agent from starting.
      writeFileSync(temporary, form.encode(state), { mode: 0o600, flush: true });
      renameSync(temporary, path);
    },
  };
}

/** Own enumerable entries of a parsed JSON value; empty for anything that is not an object. */
export function entriesOf(value: unknown): [string, unknown][] {
  return typeof value === "object" && value !== null ? Object.entries(value) : [];
}

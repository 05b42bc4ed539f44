import { readFileSync, renameSync, writeFileSync } from "node:fs";

/**
 * What a resource manager keeps over a restart, in one small file. Read and written at once, without waiting: what was
 * given to a container has to be on disk before anything else is decided.
 */
export interface CheckpointFile<T> {
  /** @returns undefined when there is none. @throws Error for one that cannot be read, or is not what was written */
  load(): T | undefined;
  save(state: T): void;
}

export interface CheckpointForm<T> {
  encode(state: T): string;
  /** @throws Error */
  decode(text: string): T;
}

export const corrupt = "checkpoint is corrupted";

export function newCheckpointFile<T>(path: string, form: CheckpointForm<T>): CheckpointFile<T> {
  return {
    load() {
      let text: string;
      try {
        text = readFileSync(path, "utf8");
      } catch (err) {
        if ((err as NodeJS.ErrnoException).code === "ENOENT") return undefined;
        throw err;
      }
      return form.decode(text);
    },
    save(state) {
      const temporary = `${path}.tmp`;
      // On the disk before it takes the other's place: half a file would keep the agent from starting.
      writeFileSync(temporary, form.encode(state), { mode: 0o600, flush: true });
      renameSync(temporary, path);
    },
  };
}

/** Own keys of an object that was parsed, none inherited. */
export function entriesOf(value: unknown): [string, unknown][] {
  return typeof value === "object" && value !== null ? Object.entries(value) : [];
}

import { type FSWatcher, readFileSync, watch } from "node:fs";
import { readFile } from "node:fs/promises";
import { dirname } from "node:path";
import { type Clock, realClock } from "../process/clock/clock.ts";

/**
 * Calls `changed` after the content of one of the files changed. Watches directories, because files are often replaced through a
 * symlink, and rereads everything once a minute, for file systems without notifications.
 */
export function watchFiles(files: readonly string[], changed: () => void, clock: Clock = realClock): { close(): void } {
  // Read at once: a change that follows the caller's own read must not be taken for the first state.
  let known = stateOf(files.map(contentOf));
  let closed = false;
  let pending: { cancel(): void } | undefined;
  const look = async (): Promise<void> => {
    pending = undefined;
    const now = stateOf(await Promise.all(files.map((file) => readFile(file).catch(() => absent))));
    const differs = known !== now;
    known = now;
    if (differs && !closed) changed();
  };
  const soon = (): void => {
    if (closed) return;
    // Certificate and key are replaced one after the other; wait for both.
    pending ??= clock.after(100, () => void look());
  };
  const watchers: FSWatcher[] = [];
  for (const directory of new Set(files.map((file) => dirname(file)))) {
    try {
      const watcher = watch(directory, { persistent: false }, soon);
      watcher.on("error", () => watcher.close());
      watchers.push(watcher);
    } catch {
      // The periodic check has to suffice.
    }
  }
  const timer = clock.every(60_000, () => void look());
  return {
    close() {
      closed = true;
      timer.cancel();
      pending?.cancel();
      for (const watcher of watchers) watcher.close();
    },
  };
}

const absent = Buffer.alloc(0);

function contentOf(file: string): Buffer {
  try {
    return readFileSync(file);
  } catch {
    return absent;
  }
}

const stateOf = (contents: readonly Buffer[]): string => contents.map((bytes) => bytes.toString("base64")).join();

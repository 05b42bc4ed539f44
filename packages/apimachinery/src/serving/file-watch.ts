import { type FSWatcher, watch } from "node:fs";
import { readFile } from "node:fs/promises";
import { dirname } from "node:path";
import { type Clock, realClock } from "../process/clock/clock.ts";

/**
 * Calls `changed` after the content of one of the files changed. Watches directories, because files are often replaced through a
 * symlink, and rereads everything once a minute, for file systems without notifications.
 */
export function watchFiles(files: readonly string[], changed: () => void, clock: Clock = realClock): { close(): void } {
  let known: string | undefined;
  let closed = false;
  let pending = false;
  const look = async (): Promise<void> => {
    pending = false;
    const contents = await Promise.all(files.map((file) => readFile(file).catch(() => Buffer.alloc(0))));
    const now = contents.map((bytes) => bytes.toString("base64")).join();
    const differs = known !== undefined && known !== now;
    known = now;
    if (differs && !closed) changed();
  };
  const soon = (): void => {
    if (pending || closed) return;
    pending = true;
    // Certificate and key are replaced one after the other; wait for both.
    clock.after(100, () => void look());
  };
  void look();
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
      for (const watcher of watchers) watcher.close();
    },
  };
}

import { watch } from "node:fs";
import { readdir, readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import type { Clock } from "@coxswain/apimachinery/clock/clock";
import type { Logger } from "@coxswain/apimachinery/logging/logger";
import type { NodePod } from "../pods/pod.ts";
import type { PodSources } from "./merge.ts";
import { staticPod } from "./static-pod.ts";

export interface FileSourceOptions {
  /** A file, or a folder whose files are Pods; those that begin with a dot are passed over. */
  path: string;
  nodeName: string;
  frequencyMs: number;
  sources: PodSources;
  clock: Clock;
  log: Logger;
}

/** Reads static Pods at once, then whenever the folder changes and every `frequencyMs`. Source: pkg/kubelet/config/file.go */
export async function runFileSource(options: FileSourceOptions, signal: AbortSignal): Promise<void> {
  const { clock, log, path } = options;
  /** Pods by file and content, so that a file that did not change gives the same object. */
  const known = new Map<string, { text: string; pod: NodePod }>();
  let isChanging = false;
  while (!signal.aborted) {
    // From before it is read: what is written meanwhile is a reason to read again.
    const watched = watchFor(path);
    try {
      options.sources.set("file", await readAll(options, known, isChanging));
    } catch (err) {
      if ((err as NodeJS.ErrnoException).code === "ENOENT") options.sources.set("file", []);
      else log.error("Unable to read config path", err, { path });
    }
    await clock.sleep(options.frequencyMs, AbortSignal.any([signal, watched.change])).catch(() => undefined);
    isChanging = watched.change.aborted;
    watched.close();
  }
}

/** @param isChanging somebody is writing: a file that cannot be read may be half of one, and its Pod is still wanted */
async function readAll(
  options: FileSourceOptions,
  known: Map<string, { text: string; pod: NodePod }>,
  isChanging: boolean,
): Promise<NodePod[]> {
  const info = await stat(options.path);
  const files = info.isDirectory()
    ? (await readdir(options.path))
        .filter((name) => !name.startsWith("."))
        .sort()
        .map((name) => join(options.path, name))
    : [options.path];
  const pods: NodePod[] = [];
  for (const file of files) {
    try {
      if (!(await stat(file)).isFile()) continue;
      const text = await readFile(file, "utf8");
      const before = known.get(file);
      if (before?.text === text) {
        pods.push(before.pod);
        continue;
      }
      const pod = staticPod(text, "file", file, options.nodeName, options.clock.now());
      known.set(file, { text, pod });
      pods.push(pod);
    } catch (err) {
      options.log.error("Can't process manifest file", err, { path: file });
      const before = (err as NodeJS.ErrnoException).code === "ENOENT" ? undefined : known.get(file);
      if (isChanging && before !== undefined) pods.push(before.pod);
      else known.delete(file);
    }
  }
  return pods;
}

function watchFor(path: string): { change: AbortSignal; close(): void } {
  const change = new AbortController();
  let watcher: ReturnType<typeof watch> | undefined;
  try {
    watcher = watch(path, () => change.abort());
    watcher.on("error", () => change.abort());
  } catch {
    // not there yet: the timer will see it
  }
  return { change: change.signal, close: () => watcher?.close() };
}

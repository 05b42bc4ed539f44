import { watch } from "node:fs";
import { readdir, readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import type { Clock } from "@coxswain/apimachinery/process/clock/clock";
import type { Turns } from "@coxswain/apimachinery/process/event-loop/turns";
import type { Logger } from "@coxswain/apimachinery/process/logging/logger";
import { errorCode } from "@coxswain/apimachinery/process/narrowing/error-code";
import type { NodePod } from "../pod/pod.ts";
import type { PodSources } from "./merge.ts";
import { manifestTooLong, maxManifestBytes, staticPod } from "./static-pod.ts";

interface FileSourceOptions {
  /** A file, or a directory of manifests; names that begin with a dot are ignored. */
  path: string;
  nodeName: string;
  frequencyMs: number;
  sources: PodSources;
  clock: Clock;
  turns: Turns;
  log: Logger;
}

/** Reads static Pods now, on changes of the path, and every `frequencyMs`. Source: pkg/kubelet/config/file.go */
export async function runFileSource(options: FileSourceOptions, signal: AbortSignal): Promise<void> {
  const { clock, log, path } = options;
  /** Pods by file and contents: an unchanged file yields the same object. */
  const known = new Map<string, { text: string; pod: NodePod }>();
  let isChanging = false;
  while (!signal.aborted) {
    // Start watching before reading, so that concurrent changes trigger another read.
    const watched = watchFor(path);
    try {
      options.sources.set("file", await readAll(options, known, isChanging));
    } catch (err) {
      if (errorCode(err) === "ENOENT") {
        known.clear();
        options.sources.set("file", []);
      } else log.error("Unable to read config path", err, { path });
    }
    await clock.sleep(options.frequencyMs, AbortSignal.any([signal, watched.change])).catch(() => undefined);
    isChanging = watched.change.aborted;
    watched.close();
  }
}

/**
 * @param isChanging true after a change event: an unreadable file may be partially written, so that its last Pod is kept
 * @throws Error when the path is a file that cannot be used: its last Pod is kept
 */
async function readAll(
  options: FileSourceOptions,
  known: Map<string, { text: string; pod: NodePod }>,
  isChanging: boolean,
): Promise<NodePod[]> {
  const isFolder = (await stat(options.path)).isDirectory();
  const files = isFolder
    ? (await readdir(options.path))
        .filter((name) => !name.startsWith("."))
        .sort()
        .map((name) => join(options.path, name))
    : [options.path];
  const present = new Set(files);
  for (const file of known.keys()) if (!present.has(file)) known.delete(file);
  const pods: NodePod[] = [];
  for (const file of files) {
    try {
      const info = await stat(file);
      if (!info.isFile() && isFolder) continue;
      if (!info.isFile()) throw new Error("path is not a directory or file");
      if (info.size >= maxManifestBytes) throw new Error(manifestTooLong);
      const text = await readFile(file, "utf8");
      const before = known.get(file);
      if (before?.text === text) {
        pods.push(before.pod);
        continue;
      }
      const { nodeName, clock, turns } = options;
      const pod = await staticPod(text, { source: "file", from: file, nodeName, now: clock.now(), turns });
      known.set(file, { text, pod });
      pods.push(pod);
    } catch (err) {
      if (!isFolder) throw err;
      options.log.error("Can't process manifest file", err, { path: file });
      const before = errorCode(err) === "ENOENT" ? undefined : known.get(file);
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
    // the path does not exist yet: rely on the timer
  }
  return { change: change.signal, close: () => watcher?.close() };
}

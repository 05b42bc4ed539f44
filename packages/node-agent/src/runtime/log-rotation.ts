import { createReadStream, createWriteStream, lstatSync } from "node:fs";
import { readdir, rename, rm } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { pipeline } from "node:stream/promises";
import { createGzip } from "node:zlib";
import type { Clock } from "@coxswain/apimachinery/process/clock/clock";
import type { Logger } from "@coxswain/apimachinery/process/logging/logger";
import { type ContainerRuntime, containerState } from "./runtime.ts";

interface LogRotationOptions {
  runtime: ContainerRuntime;
  clock: Clock;
  log: Logger;
  maxSizeBytes: number;
  /** Including the current file: 5 keeps four rotated files. */
  maxFiles: number;
}

const periodMs = 10_000;

/** Limits the log size of running containers. Source: pkg/kubelet/logs/container_log_manager.go */
export async function runLogRotation(options: LogRotationOptions, signal: AbortSignal): Promise<void> {
  const paths: LogPaths = new Map();
  while (!signal.aborted) {
    try {
      await rotateLogs(options, paths);
    } catch (err) {
      options.log.error("cannot rotate container logs", err);
    }
    try {
      await options.clock.sleep(periodMs, signal);
    } catch {
      return;
    }
  }
}

/** Paths of logs by container, `""` for none; a container keeps its own. */
type LogPaths = Map<string, string>;

/**
 * Rotates the logs that exceed their size, once.
 * @param paths those that an earlier call has found, and after the call those of the running containers
 */
export async function rotateLogs(options: LogRotationOptions, paths: LogPaths = new Map()): Promise<void> {
  const containers = (await options.runtime.listContainers()).filter(({ state }) => state === containerState.running);
  const running = new Set(containers.map(({ id }) => id));
  for (const id of paths.keys()) if (!running.has(id)) paths.delete(id);
  for (const container of containers) {
    try {
      const path = paths.get(container.id) ?? (await options.runtime.containerStatus(container.id)).logPath;
      paths.set(container.id, path);
      if (path !== "") await rotateLog(options, container.id, path);
    } catch (err) {
      options.log.error("cannot rotate a container's log", err, { container: container.id });
    }
  }
}

async function rotateLog(options: LogRotationOptions, containerId: string, path: string): Promise<void> {
  // Synchronous: it takes microseconds, a trip to another thread for each container would wake an idle kubelet a hundred times a minute.
  const info = lstatSync(path, { throwIfNoEntry: false });
  // An earlier rotation was interrupted after the rename: the runtime still writes to the renamed file.
  if (info === undefined) return options.runtime.reopenContainerLog(containerId);
  if (!info.isFile() || info.size < options.maxSizeBytes) return;
  const folder = dirname(path);
  const closed = (await readdir(folder)).filter((name) => name.startsWith(`${basename(path)}.`)).sort();
  for (const name of closed.filter((candidate) => candidate.endsWith(".tmp"))) await rm(join(folder, name), { force: true });
  const kept = closed.filter((name) => !name.endsWith(".tmp"));
  // Leave space for the file rotated now and for the new current file.
  const surplus = kept.splice(0, Math.max(0, kept.length - (options.maxFiles - 2)));
  for (const name of surplus) await rm(join(folder, name), { force: true });
  for (const name of kept.filter((candidate) => !candidate.endsWith(".gz"))) await compress(join(folder, name));
  const rotated = `${path}.${timestamp(options.clock.now())}`;
  await rename(path, rotated);
  try {
    await options.runtime.reopenContainerLog(containerId);
  } catch (err) {
    await rename(rotated, path); // the runtime still writes to this file
    throw err;
  }
}

async function compress(path: string): Promise<void> {
  const temporary = `${path}.tmp`;
  await pipeline(createReadStream(path), createGzip(), createWriteStream(temporary));
  await rename(temporary, `${path}.gz`);
  await rm(path, { force: true });
}

function timestamp(now: number): string {
  return new Date(now).toISOString().replace(/^(\d+)-(\d+)-(\d+)T(\d+):(\d+):(\d+).*$/, "$1$2$3-$4$5$6");
}

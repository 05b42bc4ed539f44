import type { Clock } from "@coxswain/apimachinery/process/clock/clock";
import type { Logger } from "@coxswain/apimachinery/process/logging/logger";
import { removeContainer } from "./containers.ts";
import { labelNames } from "./labels.ts";
import { type ContainerRuntime, containerState, isRuntimeNotFound, sandboxState } from "./runtime.ts";

export interface ContainerGcOptions {
  runtime: ContainerRuntime;
  clock: Clock;
  log: Logger;
  containerLogsDir: string;
  /** `--maximum-dead-containers-per-container`; a negative value keeps all. */
  maxPerContainer: number;
  /** `--maximum-dead-containers`; a negative value means no limit. */
  maxTotal: number;
  /** `--minimum-container-ttl-duration` */
  minAgeMs: number;
  /** True when the Pod is wanted or still being terminated by its worker. */
  isKnown: (uid: string) => boolean;
  allSourcesSynced: () => boolean;
}

/** A recently created container may not have been started yet. */
const beginsMs = 5 * 60_000;

/**
 * Removes exited and never started containers, and their sandboxes, beyond the number that is kept for logs.
 * Source: pkg/kubelet/kuberuntime/kuberuntime_gc.go
 */
export async function collectContainers(options: ContainerGcOptions): Promise<void> {
  const { runtime } = options;
  const [containers, sandboxes] = await Promise.all([runtime.listContainers(), runtime.listPodSandboxes()]);
  const ageMs = (container: { createdAt: number }): number => options.clock.now() - container.createdAt / 1e6;
  const dead = containers.filter(
    (container) =>
      container.state !== containerState.running &&
      container.labels[labelNames.podUid] !== undefined &&
      ageMs(container) >= (container.state === containerState.created ? Math.max(options.minAgeMs, beginsMs) : options.minAgeMs),
  );
  const groups = new Map<string, typeof dead>();
  for (const container of dead.sort((a, b) => b.createdAt - a.createdAt)) {
    const key = `${container.labels[labelNames.podUid]}/${container.labels[labelNames.containerName]}`;
    groups.getOrInsertComputed(key, () => []).push(container);
  }
  const surplus: typeof dead = [];
  for (const [key, group] of groups) {
    const uid = key.slice(0, key.indexOf("/"));
    if (!options.isKnown(uid) && options.allSourcesSynced()) {
      surplus.push(...group);
      groups.set(key, []);
    } else if (options.maxPerContainer >= 0) {
      surplus.push(...group.splice(options.maxPerContainer));
    }
  }
  const kept = (): typeof dead => [...groups.values()].flat();
  if (options.maxTotal >= 0 && kept().length > options.maxTotal) {
    // First keeps the same number for each container, at least one; then removes the oldest of all.
    const used = [...groups.values()].filter((group) => group.length > 0);
    const each = Math.max(1, Math.floor(options.maxTotal / used.length));
    for (const group of used) surplus.push(...group.splice(each));
    const left = kept().sort((a, b) => a.createdAt - b.createdAt);
    surplus.push(...left.slice(0, Math.max(0, left.length - options.maxTotal)));
  }
  const removed = new Set<string>();
  for (const container of surplus) {
    const pod = {
      name: container.labels[labelNames.podName] ?? "",
      namespace: container.labels[labelNames.podNamespace] ?? "",
    };
    const name = container.labels[labelNames.containerName] ?? "";
    try {
      const { logPath } = await runtime.containerStatus(container.id);
      await removeContainer(options, pod, { id: container.id, name, logPath });
      removed.add(container.id);
    } catch (err) {
      if (!isRuntimeNotFound(err)) options.log.error("cannot remove an ended container", err, { container: container.id });
    }
  }

  const inUse = new Set(containers.filter((container) => !removed.has(container.id)).map((container) => container.podSandboxId));
  const newestOf = new Map<string, number>();
  for (const sandbox of sandboxes) {
    const uid = sandbox.labels[labelNames.podUid] ?? "";
    newestOf.set(uid, Math.max(newestOf.get(uid) ?? 0, sandbox.createdAt));
  }
  for (const sandbox of sandboxes) {
    const uid = sandbox.labels[labelNames.podUid];
    if (uid === undefined || sandbox.state === sandboxState.ready || inUse.has(sandbox.id)) continue;
    // The newest sandbox of a wanted Pod holds the attempt number for the next one.
    const isGone = !options.isKnown(uid) && options.allSourcesSynced();
    if (!isGone && sandbox.createdAt === newestOf.get(uid)) continue;
    try {
      await runtime.stopPodSandbox(sandbox.id);
      await runtime.removePodSandbox(sandbox.id);
    } catch (err) {
      if (!isRuntimeNotFound(err)) options.log.error("cannot remove a sandbox", err, { sandbox: sandbox.id });
    }
  }
}

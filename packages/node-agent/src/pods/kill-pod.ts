import { type ContainerDependencies, killContainer, removeContainer } from "../runtime/containers.ts";
import { type PodRecord, podIps } from "../runtime/pod-record.ts";
import { isRuntimeNotFound } from "../runtime/runtime.ts";
import { findContainer, type NodePod } from "./pod.ts";
import type { TerminateOptions } from "./pod-runner.ts";

/**
 * Ends every container of a Pod, then its sandboxes.
 * @throws Error the first of those that could not be ended; no sandbox is stopped then
 */
export async function killPod(
  containers: ContainerDependencies,
  pod: NodePod,
  record: PodRecord,
  terminate: TerminateOptions,
): Promise<void> {
  const ip = podIps(record)[0] ?? "";
  const results = await Promise.allSettled(
    record.containers.filter(isAlive).map((container) => {
      const found = terminate.runtimeOnly ? undefined : findContainer(pod, container.name);
      return killContainer(containers, {
        pod: terminate.runtimeOnly ? undefined : pod,
        container: found?.container,
        kind: found?.kind ?? "regular",
        record: container,
        message: "",
        podIp: ip,
        graceSecondsOverride: terminate.graceSecondsOverride,
      });
    }),
  );
  const failed = results.find((result) => result.status === "rejected");
  if (failed !== undefined) throw failed.reason;
  for (const sandbox of record.sandboxes) {
    try {
      await containers.runtime.stopPodSandbox(sandbox.id);
    } catch (err) {
      if (!isRuntimeNotFound(err)) throw err;
    }
  }
}

/** Ended init containers, but for the newest `keep` of each name: a new sandbox runs them all again. */
export async function removeInitContainers(
  containers: ContainerDependencies,
  pod: NodePod,
  record: PodRecord,
  keep: number,
): Promise<void> {
  for (const { name } of pod.spec.initContainers ?? []) {
    const ended = record.containers.filter((container) => container.name === name && !isAlive(container));
    for (const container of ended.slice(keep)) await removeContainer(containers, pod.metadata, container);
  }
}

export function isAlive(container: { state: string }): boolean {
  return container.state !== "exited";
}

import { findContainer, type NodePod } from "../pod/pod.ts";
import type { TerminateOptions } from "../pod/pod-verdict.ts";
import { type ContainerDependencies, killContainer, removeContainer } from "../runtime/containers.ts";
import { restoreContainer, restorePod } from "../runtime/labels.ts";
import { type PodRecord, podIps } from "../runtime/pod-record.ts";
import { isRuntimeNotFound } from "../runtime/runtime.ts";

/**
 * Stops all containers of a Pod, then its sandboxes, which kills containers that could not be stopped.
 * @throws Error the first failure
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
        pod: terminate.runtimeOnly ? restorePod(pod, container.annotations) : pod,
        container: found?.container ?? restoreContainer(container.name, container.annotations),
        kind: found?.kind ?? "regular",
        record: container,
        message: "",
        podIp: ip,
        graceSecondsOverride: terminate.graceSecondsOverride,
      });
    }),
  );
  const failures: unknown[] = results.flatMap((result) => (result.status === "rejected" ? [result.reason] : []));
  for (const sandbox of record.sandboxes) {
    try {
      await containers.runtime.stopPodSandbox(sandbox.id);
    } catch (err) {
      if (!isRuntimeNotFound(err)) failures.push(err);
    }
  }
  if (failures.length > 0) throw failures[0];
}

/** Removes all containers of a Pod that has ended, with their logs. @throws RuntimeError */
export async function removeContainers(containers: ContainerDependencies, pod: NodePod, record: PodRecord): Promise<void> {
  for (const container of record.containers) await removeContainer(containers, pod.metadata, container);
}

/** Removes exited init containers except the newest `keep` of each name. A new sandbox runs all init containers again. */
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

/** False once the container has exited; created and unknown containers count as alive. */
export function isAlive(container: { state: string }): boolean {
  return container.state !== "exited";
}

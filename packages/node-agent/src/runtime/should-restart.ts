import type { NodePod } from "../pod/pod.ts";
import { newestContainer, type PodRecord } from "./pod-record.ts";

/** Whether a container should be (re)started, according to the restart policy and its exit code. */
export function shouldRestart(pod: NodePod, record: PodRecord, name: string): boolean {
  if (pod.metadata.deletionTimestamp != null) return false;
  const newest = newestContainer(record, name);
  if (newest === undefined) return true;
  if (newest.state === "running") return false;
  if (newest.state === "unknown" || newest.state === "created") return true;
  if (pod.spec.restartPolicy === "Never") return false;
  if (pod.spec.restartPolicy === "OnFailure") return newest.exitCode !== 0;
  return true;
}

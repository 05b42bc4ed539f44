import assert from "node:assert/strict";
import { getJson, isNotFound, kubectl, tryKubectl } from "./kubectl.ts";
import { waitFor } from "./wait-for.ts";

/** Fields of a pod used by tests. */
export interface PodView {
  metadata: { name: string; uid: string; labels: Record<string, string>; deletionTimestamp?: string };
  spec: { nodeName?: string; containers: { name: string; image: string }[]; volumes?: { name: string }[] };
  status: {
    phase: string;
    podIP?: string;
    reason?: string;
    conditions?: { type: string; status: string }[];
    containerStatuses?: {
      name: string;
      ready: boolean;
      restartCount: number;
      containerID?: string;
      state: Record<string, { reason?: string; exitCode?: number }>;
      lastState: Record<string, { reason?: string; exitCode?: number }>;
    }[];
    initContainerStatuses?: { name: string; state: Record<string, { reason?: string }> }[];
  };
}

export async function podsOf(namespace: string, selector: string): Promise<PodView[]> {
  return (await getJson<{ items: PodView[] }>("pods", "-n", namespace, "-l", selector)).items;
}

export const isReady = (pod: PodView): boolean =>
  pod.metadata.deletionTimestamp === undefined &&
  (pod.status.conditions ?? []).some(({ type, status }) => type === "Ready" && status === "True");

/** Waits until exactly `count` pods exist and all are ready. */
export function readyPods(namespace: string, selector: string, count: number, timeoutMs = 180_000): Promise<PodView[]> {
  return waitFor(
    `${count} ready pods of ${selector} in ${namespace}`,
    async () => {
      const pods = await podsOf(namespace, selector);
      return pods.length === count && pods.every(isReady) && pods;
    },
    { timeoutMs },
  );
}

/** Creates a pod. @returns when it is created, not yet running. */
export async function createPod(namespace: string, name: string, spec: object, metadata: object = {}): Promise<void> {
  const pod = { apiVersion: "v1", kind: "Pod", metadata: { name, namespace, labels: { name }, ...metadata }, spec };
  await kubectl("create", "-f", "-", { input: JSON.stringify(pod) });
}

/** Waits until `holds` is true for a pod, which need not exist yet. @param what describes the condition in the failure */
export function waitForPod(
  namespace: string,
  name: string,
  what: string,
  holds: (pod: PodView) => boolean,
  timeoutMs = 180_000,
): Promise<PodView> {
  return waitFor(
    `pod ${name} ${what}`,
    async () => {
      const pod = await getJson<PodView>("pod", name, "-n", namespace);
      return holds(pod) && pod;
    },
    { timeoutMs, retry: isNotFound },
  );
}

/** A container of the local busybox image that runs a shell script. */
export const busybox = (name: string, script: string, more: object = {}): object => ({
  name,
  image: "busybox:1.35",
  command: ["sh", "-c", script],
  ...more,
});

/** Runs a pod to completion. @returns the output of its container. @throws Error when it fails. */
export async function runToEnd(namespace: string, name: string, spec: object): Promise<string> {
  await createPod(namespace, name, { restartPolicy: "Never", terminationGracePeriodSeconds: 1, ...spec });
  const pod = await waitForPod(
    namespace,
    name,
    "ends",
    ({ status }) => status.phase === "Succeeded" || status.phase === "Failed",
  );
  const logs = await tryKubectl(["logs", name, "-n", namespace, "--all-containers"]);
  assert.equal(pod.status.phase, "Succeeded", `${JSON.stringify(pod.status)}\n${logs.stdout}${logs.stderr}`);
  return logs.stdout;
}
